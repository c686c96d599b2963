#!/usr/bin/env python3
"""Renders the picture of the README: the terminal of a real run of `fluorite up`, as an SVG of text.

usage: picture.py --fluorite BINARY [--out docs/up.svg] [--seconds 60]

Runs `up` with its built-in example on a pseudo terminal, waits until the tree has settled, takes the screen as a terminal would show
it, and stops the program. Nothing outside of a temporary folder is written but the picture. Needs Linux and Python, no other tool.
"""
import argparse
import fcntl
import html
import os
import pty
import re
import select
import signal
import struct
import sys
import tempfile
import termios
import time

COLUMNS, ROWS = 118, 40
CELL_WIDTH, LINE_HEIGHT, MARGIN = 8.43, 19, 20
COLOURS = {"✔": "#3fb950", "✗": "#f85149", "►": "#58a6ff", "◎": "#d29922"}
CONTROL = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|\x1b[()][A-Za-z0-9]|\x1b[=>]")


class Screen:
    """As much of a terminal as `up` uses: lines, moving up, and erasing."""

    def __init__(self):
        self.lines, self.row, self.column = [""], 0, 0

    def feed(self, text):
        at = 0
        while at < len(text):
            control = CONTROL.match(text, at)
            if control:
                self.control(control.group(1) or "", control.group(2) or "")
                at = control.end()
                continue
            self.put(text[at])
            at += 1

    def put(self, character):
        if character == "\n":
            self.row += 1
            while len(self.lines) <= self.row:
                self.lines.append("")
        elif character == "\r":
            self.column = 0
        elif character >= " ":
            line = self.lines[self.row].ljust(self.column)
            self.lines[self.row] = line[: self.column] + character + line[self.column + 1 :]
            self.column += 1

    def control(self, numbers, command):
        count = int(numbers) if numbers.isdigit() else 1
        if command == "F":  # to the begin of an earlier line
            self.row, self.column = max(0, self.row - count), 0
        elif command == "A":
            self.row = max(0, self.row - count)
        elif command == "J":  # erase to the end of the screen
            self.lines[self.row] = self.lines[self.row][: self.column]
            del self.lines[self.row + 1 :]
        elif command == "K":
            self.lines[self.row] = self.lines[self.row][: self.column]
        elif command not in "mhl":  # colours and modes do not matter
            sys.exit("the program uses a control sequence this script does not know: %s%s" % (numbers, command))

    def shown(self):
        lines = [line.rstrip() for line in self.lines]
        while lines and not lines[-1]:
            lines.pop()
        return lines


def run(binary, folder, seconds):
    """The screen once `up` has settled."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        environment = dict(os.environ, HOME=folder, XDG_STATE_HOME=os.path.join(folder, "state"), TERM="xterm", LANG="C.UTF-8")
        os.execve(binary, ["fluorite", "up"], environment)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    screen, pending, changed, end = Screen(), b"", time.monotonic(), time.monotonic() + seconds
    try:
        # Settled: the one part of the example that has a mistake is reported, and nothing has changed for three seconds.
        while time.monotonic() < end:
            if select.select([terminal], [], [], 0.2)[0]:
                data = os.read(terminal, 65536)
                text, pending = decode(pending + data)
                screen.feed(text)
                changed = time.monotonic()
            elif time.monotonic() - changed > 3 and any("✗" in line for line in screen.shown()):
                return screen.shown()
        sys.exit("`up` did not settle within %d s:\n%s" % (seconds, "\n".join(screen.shown())))
    finally:
        os.kill(pid, signal.SIGINT)
        stop(pid, terminal)


def decode(data):
    """The text of whole characters, and the bytes of one that is not complete."""
    for cut in range(4):
        try:
            return data[: len(data) - cut].decode(), data[len(data) - cut :]
        except UnicodeDecodeError:
            continue
    return data.decode(errors="replace"), b""


def stop(pid, terminal):
    end = time.monotonic() + 20
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                os.read(terminal, 65536)
            except OSError:
                break
        if os.waitpid(pid, os.WNOHANG)[0]:
            return
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def svg(lines):
    width = int(max(len(line) for line in lines) * CELL_WIDTH + 2 * MARGIN)
    height = len(lines) * LINE_HEIGHT + 2 * MARGIN
    out = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="fluorite up in a terminal">' % (width, height),
        '<rect width="100%" height="100%" rx="8" fill="#0d1117"/>',
        '<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,\'DejaVu Sans Mono\',monospace" font-size="14" fill="#c9d1d9" xml:space="preserve">',
    ]
    for row, line in enumerate(lines):
        if not line:
            continue
        glyph = next((c for c in line if c in COLOURS), None)
        text = html.escape(line, quote=False)
        if line.startswith("$"):
            text = '<tspan fill="#8b949e">$</tspan>' + text[1:]
        elif glyph:
            text = text.replace(glyph, '<tspan fill="%s">%s</tspan>' % (COLOURS[glyph], glyph), 1)
        length = "%.0f" % (len(line) * CELL_WIDTH)
        y = MARGIN + (row + 1) * LINE_HEIGHT - 5
        out.append('<text x="%d" y="%d" textLength="%s" lengthAdjust="spacingAndGlyphs">%s</text>' % (MARGIN, y, length, text))
    out += ["</g>", "</svg>", ""]
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fluorite", required=True)
    parser.add_argument("--out", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docs", "up.svg"))
    parser.add_argument("--seconds", type=int, default=60)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fluorite-picture-") as folder:
        lines = run(os.path.abspath(options.fluorite), folder, options.seconds)
        # The reader's home directory stands for the temporary folder.
        lines = [line.replace(os.path.realpath(folder), "~").replace(folder, "~") for line in lines]
    with open(options.out, "w", encoding="utf-8") as file:
        file.write(svg(["$ fluorite up"] + lines))
    print("%d lines in %s" % (len(lines) + 1, os.path.relpath(options.out)))


if __name__ == "__main__":
    main()
