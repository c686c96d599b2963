"""Runs two programs alternately on two charts and compares median time and peak memory. See helm.sh."""

import os
import statistics
import sys
import time

ROUNDS = int(os.environ.get("ROUNDS", "15"))


def run(argv):
    """Seconds, peak KiB and output size of one process."""
    read, write = os.pipe()
    start = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        os.dup2(write, 1)
        os.close(read)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        os.execv(argv[0], argv)
    os.close(write)
    size = 0
    while chunk := os.read(read, 1 << 20):
        size += len(chunk)
    os.close(read)
    _, status, usage = os.wait4(pid, 0)
    if status:
        sys.exit("%s failed with %d" % (" ".join(argv), status))
    return time.perf_counter() - start, usage.ru_maxrss, size


def compare(label, ours, helm, chart, args):
    tail = ["template", "bench", chart, "--kube-version", "1.34.0", *args]
    commands = {"ours": [ours, "helm", *tail], "helm": [helm, *tail]}
    samples = {name: [run(argv) for _ in range(2)][:0] for name, argv in commands.items()}
    for _ in range(ROUNDS):
        for name, argv in commands.items():
            samples[name].append(run(argv))
    if len({s[2] for rows in samples.values() for s in rows}) != 1:
        print("%s: outputs differ in size" % label)
    mid = {n: (statistics.median(s[0] for s in rows), statistics.median(s[1] for s in rows)) for n, rows in samples.items()}
    for name, (seconds, kib) in mid.items():
        print("%-6s %-5s %8.2f ms %8.1f MiB" % (label, name, seconds * 1e3, kib / 1024))
    print("%-6s ratio %7.1fx faster, memory 1/%.1f" % (label, mid["helm"][0] / mid["ours"][0], mid["helm"][1] / mid["ours"][1]))


def main():
    ours, helm, small, large, *args = sys.argv[1:]
    compare("small", os.path.abspath(ours), os.path.abspath(helm), small, [])
    compare("large", os.path.abspath(ours), os.path.abspath(helm), large, args)


main()
