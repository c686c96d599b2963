#!/usr/bin/env python3
"""Memory of the source controller while it reads the index of a large Helm repository, and a chart of it.

usage: helm_index.py --fluorite BINARY [--size 100] [--bar 25] [--json FILE]

Makes an index.yaml of --size MB, serves it on loopback, and lets `fluorite run --components source` fetch it for a
HelmRepository and look up a HelmChart in it, on a `fluorite apiserver` of its own. Prints one table: the resident memory idle,
its peak while reading, the growth, and the seconds each took. Ends with 1 when the growth is over the bar. Needs Linux.
"""
import functools
import gzip
import hashlib
import http.server
import io
import os
import tarfile
import threading
import time

from source_memory import MB, Api, arguments, peak, report, reset_peak, run_engine, wait_for

GROUP = "/apis/source.toolkit.fluxcd.io/v1/namespaces/default"
CHART = "chart-00500"
VERSION = "1.7.0"


def main():
    ap = arguments(__doc__, bar=25)
    ap.add_argument("--size", type=int, default=100, help="MB of the index")
    report(ap.parse_args(), measure)


def measure(o, work, processes):
    root = os.path.join(work, "repository")
    os.makedirs(root)
    package = chart()
    with open(os.path.join(root, "chart.tgz"), "wb") as f:
        f.write(package)
    write_index(os.path.join(root, "index.yaml"), o.size * MB, hashlib.sha256(package).hexdigest())
    handler = functools.partial(Quiet, directory=root)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    api = Api(o.fluorite, work, processes)
    engine = run_engine(o.fluorite, work, api, processes, f"--helm-index-max-size={2 * o.size * MB}")
    time.sleep(3)

    def step(what, kind, plural, spec):
        idle, begin = reset_peak(engine.pid), time.time()
        api.request("POST", f"{GROUP}/{plural}", {"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": kind,
                                                  "metadata": {"name": "big"}, "spec": spec})
        wait_for(api, engine, f"{GROUP}/{plural}/big", ready, o.timeout)
        row = (what, idle, peak(engine.pid), time.time() - begin)
        time.sleep(3)
        return row

    address = f"http://127.0.0.1:{server.server_address[1]}"
    repository = {"interval": "1h", "timeout": f"{o.timeout}s", "url": address}
    source = {"kind": "HelmRepository", "name": "big"}
    return [step("the index", "HelmRepository", "helmrepositories", repository),
            step("a chart of it", "HelmChart", "helmcharts",
                 {"interval": "1h", "chart": CHART, "version": "1.x", "sourceRef": source})]


def ready(status):
    return any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions", []))


def chart():
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        text = f"apiVersion: v2\nname: {CHART}\nversion: {VERSION}\n".encode()
        entry = tarfile.TarInfo(f"{CHART}/Chart.yaml")
        entry.size = len(text)
        tar.addfile(entry, io.BytesIO(text))
    return gzip.compress(raw.getvalue(), mtime=0)


def write_index(path, size, digest):
    """Charts with eight versions each, of which every one has a description as long as those of real repositories."""
    with open(path, "w") as f:
        f.write("apiVersion: v1\nentries:\n")
        n = 0
        while f.tell() < size:
            name = f"chart-{n:05}"
            f.write(f"  {name}:\n")
            for minor in range(7, -1, -1):
                f.write(f"  - apiVersion: v2\n    name: {name}\n    version: 1.{minor}.0\n    appVersion: \"{n}.{minor}\"\n"
                        f"    created: \"2026-01-0{minor + 1}T10:00:00Z\"\n    description: {'a chart of many ' * 20}\n"
                        f"    digest: {digest}\n    keywords: [one, two, three]\n    urls:\n    - chart.tgz\n")
            n += 1
        f.write("generated: \"2026-01-09T10:00:00Z\"\n")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


if __name__ == "__main__":
    main()
