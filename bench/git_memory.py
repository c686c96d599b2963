#!/usr/bin/env python3
"""Memory of the source controller while it clones a repository with a long history, shallowly.

usage: git_memory.py --fluorite BINARY [--history 1000] [--tip 50] [--commits 1000] [--bar 64] [--json FILE]

Makes a repository of --history MB in --commits commits whose last tree has --tip MB, serves it on loopback with git
http-backend, and lets `fluorite run --components source` fetch it, on a `fluorite apiserver` of its own. Then one more commit
is pushed and fetched by a reconcile request. Prints one table: the resident memory idle, its peak while fetching, the growth,
and the seconds each took. Ends with 1 when the growth is over the bar. Needs git and Linux.
"""
import argparse
import http.server
import json
import os
import re
import shutil
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

TOKEN = "bench-token"
MB = 1_000_000
GIT = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"], "HOME": "/nonexistent"}
PATH = "/apis/source.toolkit.fluxcd.io/v1/namespaces/default/gitrepositories"


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--fluorite", required=True)
    ap.add_argument("--history", type=int, default=1000, help="MB of all objects")
    ap.add_argument("--tip", type=int, default=50, help="MB of the last tree")
    ap.add_argument("--commits", type=int, default=1000)
    ap.add_argument("--bar", type=float, default=64, help="MiB that fetching may add")
    ap.add_argument("--timeout", type=int, default=600, help="seconds a fetch may take")
    ap.add_argument("--json")
    o = ap.parse_args()
    work = tempfile.mkdtemp(prefix="bench-git-")
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


def measure(o, work, processes):
    root = os.path.join(work, "git")
    os.makedirs(root)
    begin = time.time()
    size = make_repository(os.path.join(root, "big.git"), o)
    print(f"a repository of {size / MB:.0f} MB in {o.commits} commits, made in {time.time() - begin:.0f} s", file=sys.stderr)
    address = serve(root)
    api = Api(o, work, processes)
    engine = run_engine(o, work, api, processes)
    time.sleep(3)

    rows = []
    spec = {"interval": "1h", "timeout": f"{o.timeout}s", "url": f"{address}/big.git", "ref": {"branch": "main"}}
    idle, begin = reset_peak(engine.pid), time.time()
    api.request("POST", PATH, {"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
                               "metadata": {"name": "big"}, "spec": spec})
    tip = head(root)
    wait_for(api, engine, tip, o.timeout)
    rows.append(("first clone", idle, peak(engine.pid), time.time() - begin))

    add_commit(os.path.join(root, "big.git"), o)
    tip = head(root)
    time.sleep(3)
    idle, begin = reset_peak(engine.pid), time.time()
    api.request("PATCH", f"{PATH}/big", {"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": "1"}}},
                "application/merge-patch+json")
    wait_for(api, engine, tip, o.timeout)
    rows.append(("one more commit", idle, peak(engine.pid), time.time() - begin))
    return rows


def make_repository(path, o):
    """Random content, so that nothing compresses: the files of the tip, then one file that every commit replaces."""
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", path], check=True, env=GIT)
    p = subprocess.Popen(["git", "-C", path, "-c", "core.compression=0", "-c", "core.looseCompression=0", "fast-import", "--quiet"],
                         stdin=subprocess.PIPE, env=GIT)
    out = p.stdin
    per_commit = max((o.history - o.tip) * MB // o.commits, 1)
    files = max(o.tip * MB // 100_000, 1)
    for i in range(o.commits):
        out.write(b"commit refs/heads/main\nmark :%d\ncommitter b <b@example.com> %d +0000\ndata 1\nc\n" % (i + 1, 1_700_000_000 + i))
        if i:
            out.write(b"from :%d\n" % i)
        else:
            for n in range(files):
                blob(out, "tree/%02d/%04d.bin" % (n % 50, n), os.urandom(100_000))
        blob(out, "history/bulk.bin", os.urandom(per_commit))
        out.write(b"\n")
    out.close()
    if p.wait() != 0:
        sys.exit("git fast-import failed")
    return sum(os.path.getsize(os.path.join(d, f)) for d, _, names in os.walk(path) for f in names)


def blob(out, path, data):
    out.write(b"M 100644 inline %s\ndata %d\n" % (path.encode(), len(data)))
    out.write(data)
    out.write(b"\n")


def add_commit(path, o):
    p = subprocess.Popen(["git", "-C", path, "-c", "core.compression=0", "fast-import", "--quiet"], stdin=subprocess.PIPE, env=GIT)
    p.stdin.write(b"commit refs/heads/main\ncommitter b <b@example.com> 1800000000 +0000\ndata 1\nd\nfrom refs/heads/main^0\n")
    blob(p.stdin, "tree/00/0000.bin", os.urandom(100_000))
    p.stdin.close()
    if p.wait() != 0:
        sys.exit("git fast-import failed")


def head(root):
    done = subprocess.run(["git", "-C", os.path.join(root, "big.git"), "rev-parse", "refs/heads/main"], check=True, env=GIT,
                          capture_output=True, text=True)
    return done.stdout.strip()


def serve(root):
    """git http-backend on loopback; answers are passed on as they come."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.cgi(b"")

        def do_POST(self):
            self.cgi(self.rfile.read(int(self.headers.get("Content-Length", 0))))

        def cgi(self, body):
            path, _, query = self.path.partition("?")
            env = {**GIT, "GIT_PROJECT_ROOT": root, "GIT_HTTP_EXPORT_ALL": "1", "REQUEST_METHOD": self.command,
                   "PATH_INFO": path, "QUERY_STRING": query, "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                   "CONTENT_LENGTH": str(len(body)), "GIT_PROTOCOL": self.headers.get("Git-Protocol", "")}
            p = subprocess.Popen(["git", "http-backend"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
            p.stdin.write(body)
            p.stdin.close()
            status, headers = 200, []
            while line := p.stdout.readline().strip().decode():
                name, _, value = line.partition(": ")
                if name == "Status":
                    status = int(value.split()[0])
                else:
                    headers.append((name, value))
            self.send_response(status)
            for name, value in headers:
                self.send_header(name, value)
            self.send_header("Connection", "close")
            self.end_headers()
            try:
                shutil.copyfileobj(p.stdout, self.wfile, 1 << 16)
            finally:
                p.stdout.close()
                p.wait()

        def log_message(self, *_):
            pass

    class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
        daemon_threads = True

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}"


class Api:
    """The API server of this run, with the definitions of the sources."""

    def __init__(self, o, work, processes):
        self.kubeconfig = os.path.join(work, "kubeconfig")
        p = subprocess.Popen([o.fluorite, "apiserver", "--insecure-http", "--listen", "127.0.0.1:0", "--token", TOKEN,
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
        export = subprocess.run([o.fluorite, "install", "--export"], check=True, capture_output=True, text=True).stdout
        for document in export.split("\n---\n"):
            if re.search(r"^kind: CustomResourceDefinition$", document, re.M):
                name = re.search(r"^  name: (\S+)$", document, re.M).group(1)
                self.request("PATCH", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}?fieldManager=bench&force=true",
                             document.encode(), "application/apply-patch+yaml")
        while PATH.rsplit("/", 1)[1] not in json.dumps(self.get("/apis/source.toolkit.fluxcd.io/v1")):
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


def run_engine(o, work, api, processes):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        store = f"127.0.0.1:{s.getsockname()[1]}"
    storage = os.path.join(work, "storage")
    os.makedirs(storage)
    log = open(os.path.join(work, "engine.log"), "w")
    p = subprocess.Popen([o.fluorite, "run", "--components=source", "--kubeconfig", api.kubeconfig, f"--storage-path={storage}",
                          f"--storage-adv-addr={store}", f"--storage-addr={store}", "--metrics-addr=0", "--health-addr=0"],
                         stdout=log, stderr=log, env={**os.environ, "TMPDIR": work})
    processes.append(p)
    p.log = log.name
    return p


def wait_for(api, engine, commit, timeout):
    end = time.time() + timeout
    while time.time() < end:
        status = api.get(f"{PATH}/big").get("status", {})
        if commit in status.get("artifact", {}).get("revision", ""):
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


if __name__ == "__main__":
    main()
