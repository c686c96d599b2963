#!/usr/bin/env python3
"""`helm template` of the real helm against ours, in one run: time, processor time and peak memory, and their ratios.

    bench/helm.py BINARY HELM CHART [ARGS…]

CHART is the large chart: a folder, an archive, or a folder of folders with archives, of which the largest is taken. The
small one is bench/helm-small. ARGS go to both programs for the large chart. ROUNDS (15) is how often each runs; they take
turns, so that a busy machine is busy for both. Targets: at least 10 times faster on both, at most a quarter of the memory
on the large one; exits with 1 when one is missed.
"""

import glob
import os
import statistics
import sys
import time

ROUNDS = int(os.environ.get("ROUNDS", "15"))
SMALL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "helm-small")


def run(argv):
    """Seconds, processor seconds, peak KiB and output size of one process."""
    read, write = os.pipe()
    start = time.perf_counter()
    # Not a fork: a copy of this process would count as memory and time of the program.
    pid = os.posix_spawn(argv[0], argv, os.environ, file_actions=[
        (os.POSIX_SPAWN_DUP2, write, 1),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ])
    os.close(write)
    size = 0
    while chunk := os.read(read, 1 << 20):
        size += len(chunk)
    os.close(read)
    _, status, usage = os.wait4(pid, 0)
    if status:
        sys.exit("%s failed with %d" % (" ".join(argv), status))
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss, size


def compare(label, ours, helm, chart, args):
    """Prints both programs and their ratios; the ratios of time and memory come back."""
    tail = ["template", "bench", chart, "--kube-version", "1.34.0", *args]
    commands = {"ours": [ours, "helm", *tail], "helm": [helm, *tail]}
    samples = {name: [] for name in commands}
    for name, argv in commands.items():
        run(argv)
    for _ in range(ROUNDS):
        for name, argv in commands.items():
            samples[name].append(run(argv))
    if len({s[3] for rows in samples.values() for s in rows}) != 1:
        print("%s: outputs differ in size" % label)
    mid = {name: [statistics.median(column) for column in zip(*rows)] for name, rows in samples.items()}
    for name, (seconds, processor, kib, _) in mid.items():
        print("%-6s %-5s %8.2f ms %8.2f ms of processor time %8.1f MiB" % (label, name, seconds * 1e3, processor * 1e3, kib / 1024))
    faster, lighter, smaller = (mid["helm"][i] / mid["ours"][i] for i in range(3))
    print("%-6s ratio %7.1fx faster, %.1fx less processor time, memory 1/%.1f" % (label, faster, lighter, smaller))
    return faster, smaller


def largest(chart):
    archives = glob.glob(os.path.join(chart, "*", "*.tgz"))
    if os.path.exists(os.path.join(chart, "Chart.yaml")) or not archives:
        return chart
    found = max(archives, key=os.path.getsize)
    print("large chart: %s" % os.path.basename(os.path.dirname(found)))
    return found


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    ours, helm, chart, *args = sys.argv[1:]
    ours, helm = os.path.abspath(ours), os.path.abspath(helm)
    small, _ = compare("small", ours, helm, SMALL, [])
    large, memory = compare("large", ours, helm, largest(chart), args)
    sys.exit(0 if small >= 10 and large >= 10 and memory >= 4 else 1)


main()
