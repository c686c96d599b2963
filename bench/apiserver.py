#!/usr/bin/env python3
"""Throughput, start time and memory of `fluorite apiserver` and of kube-apiserver + etcd, one after the other.

usage: apiserver.py --fluorite BINARY --client BENCH_APISERVER_PY [--reference START_APISERVER_PY --bin-dir DIR] [-n 2000]
                    [--load LOAD] [--nothing NOTHING]

The client is the shared `bench_apiserver.py`, the same for every server. It is one Python process: with 16 connections
its own work is what is measured once a server answers more than some 2,500 requests a second. LOAD, the example `load`
of the crate fl-apiserver, sends the same requests and does not have that limit; its figures come under "load". NOTHING,
the example `nothing`, answers without doing anything: what it gets, without TLS and with it, is the most the clients can do
here (LOAD speaks TLS only). Prints one JSON line per server.
"""
import argparse, json, os, signal, subprocess, sys, tempfile, time, urllib.request

import cleanup  # noqa: F401

ap = argparse.ArgumentParser()
ap.add_argument("--fluorite", required=True)
ap.add_argument("--client", required=True)
ap.add_argument("--reference")
ap.add_argument("--bin-dir")
ap.add_argument("-n", type=int, default=2000)
ap.add_argument("--load")
ap.add_argument("--nothing")
a = ap.parse_args()
TOKEN = "bench-token"


def rss_mb(pid):
    for line in open("/proc/%d/status" % pid):
        if line.startswith("VmRSS"):
            return round(int(line.split()[1]) / 1024, 1)


def load(url, token):
    if not a.load:
        return {}
    out = subprocess.run([a.load, url, token, str(2 * a.n), "16"], capture_output=True, text=True)
    return {"load": json.loads(out.stdout) if out.returncode == 0 else {"error": out.stderr[-300:]}}


def client(url, token, pids):
    out = subprocess.run([sys.executable, a.client, "--server", url, "--token", token, "-n", str(a.n), "--pids", pids],
                         capture_output=True, text=True)
    return json.loads(out.stdout.splitlines()[-1]) if out.returncode == 0 else {"error": (out.stderr or out.stdout)[-300:]}


def fluorite(sync):
    with tempfile.TemporaryDirectory() as d:
        started = time.time()
        p = subprocess.Popen([a.fluorite, "apiserver", "--listen", "127.0.0.1:0", "--data-dir", d + "/data", "--token", TOKEN,
                              "--kubeconfig-out", d + "/kubeconfig", "--sync", sync], stderr=subprocess.PIPE, text=True)
        try:
            url = p.stderr.readline().split()[-1]
            import ssl
            ctx = ssl._create_unverified_context()
            while True:
                try:
                    urllib.request.urlopen(url + "/readyz", context=ctx).read()
                    break
                except OSError:
                    time.sleep(0.002)
            ready = time.time() - started
            time.sleep(1)
            idle = rss_mb(p.pid)
            result = {**client(url, TOKEN, "fluorite=%d" % p.pid), **load(url, TOKEN)}
            return {"server": "fluorite", "sync": sync, "ready_s": round(ready, 3), "idle_mb": idle, **result}
        finally:
            p.send_signal(signal.SIGTERM)
            p.wait()


def reference():
    with tempfile.TemporaryDirectory() as d:
        p = subprocess.Popen([sys.executable, a.reference, a.bin_dir, d, "--no-controllers"], stdout=subprocess.PIPE, text=True)
        try:
            info = json.loads(p.stdout.readline())
            time.sleep(1)
            pids = info["pids"]
            idle = sum(rss_mb(pid) or 0 for pid in pids.values())
            named = ",".join("%s=%d" % kv for kv in pids.items())
            return {"server": "kube-apiserver+etcd", "ready_s": info["ready_seconds"], "idle_mb": idle,
                    **client(info["server"], info["token"], named), **load(info["server"], info["token"])}
        finally:
            p.send_signal(signal.SIGTERM)
            p.wait()


def nothing(tls):
    p = subprocess.Popen([a.nothing] + ["--tls"] * tls, stdout=subprocess.PIPE, text=True)
    try:
        url = p.stdout.readline().strip()
        return {"server": "nothing", "tls": tls, **client(url, TOKEN, ""), **(load(url, TOKEN) if tls else {})}
    finally:
        p.terminate()
        p.wait()


if a.nothing:
    for tls in (False, True):
        print(json.dumps(nothing(tls)), flush=True)
for sync in ("always", "relaxed"):
    print(json.dumps(fluorite(sync)), flush=True)
if a.reference:
    print(json.dumps(reference()), flush=True)
