#!/usr/bin/env python3
"""Memory of the source controller while it clones a repository with a long history, shallowly.

usage: git_memory.py --fluorite BINARY [--history 1000] [--tip 50] [--commits 1000] [--bar 64] [--json FILE]

Makes a repository of --history MB in --commits commits whose last tree has --tip MB, serves it on loopback with git
http-backend, and lets `fluorite run --components source` fetch it, on a `fluorite apiserver` of its own. Then one more commit
is pushed and fetched by a reconcile request. Prints one table: the resident memory idle, its peak while fetching, the growth,
and the seconds each took. Ends with 1 when the growth is over the bar. Needs git and Linux.
"""
import http.server
import os
import shutil
import socketserver
import subprocess
import sys
import threading
import time

from source_memory import MB, Api, arguments, peak, report, reset_peak, run_engine, wait_for

GIT = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"], "HOME": "/nonexistent"}
PATH = "/apis/source.toolkit.fluxcd.io/v1/namespaces/default/gitrepositories"


def main():
    ap = arguments(__doc__, bar=64)
    ap.add_argument("--history", type=int, default=1000, help="MB of all objects")
    ap.add_argument("--tip", type=int, default=50, help="MB of the last tree")
    ap.add_argument("--commits", type=int, default=1000)
    report(ap.parse_args(), measure)


def measure(o, work, processes):
    root = os.path.join(work, "git")
    os.makedirs(root)
    begin = time.time()
    size = make_repository(os.path.join(root, "big.git"), o)
    print(f"a repository of {size / MB:.0f} MB in {o.commits} commits, made in {time.time() - begin:.0f} s", file=sys.stderr)
    address = serve(root)
    api = Api(o.fluorite, work, processes)
    engine = run_engine(o.fluorite, work, api, processes)
    time.sleep(3)

    rows = []
    spec = {"interval": "1h", "timeout": f"{o.timeout}s", "url": f"{address}/big.git", "ref": {"branch": "main"}}
    idle, begin = reset_peak(engine.pid), time.time()
    api.request("POST", PATH, {"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
                               "metadata": {"name": "big"}, "spec": spec})
    fetched(api, engine, root, o)
    rows.append(("first clone", idle, peak(engine.pid), time.time() - begin))

    add_commit(os.path.join(root, "big.git"), o)
    time.sleep(3)
    idle, begin = reset_peak(engine.pid), time.time()
    api.request("PATCH", f"{PATH}/big", {"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": "1"}}},
                "application/merge-patch+json")
    fetched(api, engine, root, o)
    rows.append(("one more commit", idle, peak(engine.pid), time.time() - begin))
    return rows


def fetched(api, engine, root, o):
    tip = head(root)
    wait_for(api, engine, f"{PATH}/big", lambda status: tip in status.get("artifact", {}).get("revision", ""), o.timeout)


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


if __name__ == "__main__":
    main()
