"""What the benchmarks of the source controller's memory share: an API server and an engine of their own, and how memory is read.

Standard library only. Needs Linux.
"""
import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

import cleanup  # noqa: F401

TOKEN = "bench-token"
MB = 1_000_000


def arguments(doc, bar):
    ap = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--fluorite", required=True)
    ap.add_argument("--bar", type=float, default=bar, help="MiB that fetching may add")
    ap.add_argument("--timeout", type=int, default=600, help="seconds a fetch may take")
    ap.add_argument("--json")
    return ap


def report(o, measure):
    """Runs measure(o, work, processes), prints its rows and ends with 1 when the growth is over the bar."""
    work = tempfile.mkdtemp(prefix="bench-memory-")
    processes = []
    try:
        rows = measure(o, work, processes)
    finally:
        for p in reversed(processes):
            p.terminate()
            try:
                p.wait(10)
            except subprocess.TimeoutExpired:
                p.kill()
        shutil.rmtree(work, ignore_errors=True)
    print(f"{'':24}{'idle MiB':>10}{'peak MiB':>10}{'growth MiB':>12}{'seconds':>9}")
    for name, idle, peak, seconds in rows:
        print(f"{name:24}{idle:10.1f}{peak:10.1f}{peak - idle:12.1f}{seconds:9.2f}")
    worst = max(peak - idle for _, idle, peak, _ in rows)
    print(f"the bar is {o.bar:.0f} MiB: {'met' if worst <= o.bar else 'missed'}")
    if o.json:
        with open(o.json, "w") as f:
            json.dump([dict(zip(("what", "idle_mib", "peak_mib", "seconds"), row)) for row in rows], f)
    sys.exit(0 if worst <= o.bar else 1)


class Api:
    """The API server of this run, with the definitions of the sources."""

    def __init__(self, fluorite, work, processes):
        self.kubeconfig = os.path.join(work, "kubeconfig")
        p = subprocess.Popen([fluorite, "apiserver", "--insecure-http", "--listen", "127.0.0.1:0", "--token", TOKEN,
                              "--kubeconfig-out", self.kubeconfig], stderr=subprocess.PIPE, text=True)
        processes.append(p)
        self.url = p.stderr.readline().split()[-1]
        threading.Thread(target=p.stderr.read, daemon=True).start()
        for _ in range(1000):
            try:
                self.request("GET", "/readyz")
                break
            except OSError:
                time.sleep(0.01)
        export = subprocess.run([fluorite, "install", "--export"], check=True, capture_output=True, text=True).stdout
        for document in export.split("\n---\n"):
            if re.search(r"^kind: CustomResourceDefinition$", document, re.M):
                name = re.search(r"^  name: (\S+)$", document, re.M).group(1)
                self.request("PATCH", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}?fieldManager=bench&force=true",
                             document.encode(), "application/apply-patch+yaml")
        while "gitrepositories" not in json.dumps(self.get("/apis/source.toolkit.fluxcd.io/v1")):
            time.sleep(0.05)

    def request(self, method, path, body=None, kind="application/json"):
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method,
                                         headers={"Authorization": "Bearer " + TOKEN, "Content-Type": kind})
        try:
            return urllib.request.urlopen(request, timeout=30).read()
        except urllib.error.HTTPError as e:
            if method == "GET":
                return b"{}"
            sys.exit(f"{method} {path}: {e.code} {e.read().decode()[:500]}")

    def get(self, path):
        return json.loads(self.request("GET", path) or b"{}")


def run_engine(fluorite, work, api, processes, *flags):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        store = f"127.0.0.1:{s.getsockname()[1]}"
    storage = os.path.join(work, "storage")
    os.makedirs(storage)
    log = open(os.path.join(work, "engine.log"), "w")
    p = subprocess.Popen([fluorite, "run", "--components=source", "--kubeconfig", api.kubeconfig, f"--storage-path={storage}",
                          f"--storage-adv-addr={store}", f"--storage-addr={store}", "--metrics-addr=0", "--health-addr=0", *flags],
                         stdout=log, stderr=log, env={**os.environ, "TMPDIR": work})
    processes.append(p)
    p.log = log.name
    return p


def wait_for(api, engine, path, done, timeout):
    """Waits until the status of an object is as wanted."""
    end = time.time() + timeout
    while time.time() < end:
        status = api.get(path).get("status", {})
        if done(status):
            return
        if engine.poll() is not None:
            sys.exit("the engine ended:\n" + open(engine.log).read()[-2000:])
        time.sleep(0.05)
    sys.exit(f"not fetched within {timeout} s: {json.dumps(status)[:2000]}\n" + open(engine.log).read()[-2000:])


def memory(pid, key):
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith(key + ":")) / 1024


def reset_peak(pid):
    """Starts the peak anew; answers the resident MiB now."""
    with open(f"/proc/{pid}/clear_refs", "w") as f:
        f.write("5")
    return memory(pid, "VmRSS")


def peak(pid):
    return memory(pid, "VmHWM")
