#!/usr/bin/env python3
"""The scenarios recorded from Flux on the real control plane, run by Fluorite on the embedded API server.

    bench/flux_embedded.py --fluorite BINARY --bin DIR --checker corpus/check_flux.py --scenarios DIR [--filter ks-] [--simulate]

--bin holds what the checker wants (etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok, registry, helm). The
checker gets a folder in which etcd does nothing and kube-apiserver is `fluorite apiserver`; the controllers of Kubernetes and
kwok are the real ones, unless --simulate lets the embedded server do their work. What follows `--` goes to the checker.
Standard library only.
"""
import argparse
import os
import shlex
import stat
import subprocess
import sys
import tempfile

NOTHING = """
import signal, socket, sys
address = next((a.split("//", 1)[1] for f, a in zip(sys.argv, sys.argv[1:]) if f == "--listen-client-urls"), None)
if address:  # somebody looks whether the port is open
    host, port = address.rsplit(":", 1)
    listener = socket.create_server((host, int(port)))
signal.sigwait([signal.SIGTERM, signal.SIGINT])
"""

API_SERVER = """
import os, shutil, subprocess, sys, time, signal
flags = dict(a[2:].split("=", 1) for a in sys.argv[1:] if a.startswith("--") and "=" in a)
token = open(flags["token-auth-file"]).read().split(",", 1)[0]
data = os.path.join(flags["cert-dir"], "..", "fluorite")
server = subprocess.Popen([@FLUORITE@, "apiserver", "--listen", "127.0.0.1:" + flags["secure-port"], "--data-dir", data,
                           *@EXTRA@], env=dict(os.environ, FLUORITE_APISERVER_TOKEN=token))
signal.signal(signal.SIGTERM, lambda *_: server.terminate())
authority = os.path.join(data, "pki", "ca.crt")
while server.poll() is None and not os.path.exists(authority):
    time.sleep(0.02)
time.sleep(0.1)
shutil.copy(authority, os.path.join(flags["cert-dir"], "apiserver.crt"))
sys.exit(server.wait())
"""


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--fluorite", required=True)
    ap.add_argument("--bin", required=True)
    ap.add_argument("--checker", required=True)
    ap.add_argument("--scenarios", required=True)
    ap.add_argument("--filter", default="")
    ap.add_argument("--simulate", action="store_true", help="no controllers of Kubernetes: the embedded server simulates them")
    ap.add_argument("rest", nargs="*")
    o = ap.parse_args()
    fluorite = os.path.abspath(o.fluorite)
    with tempfile.TemporaryDirectory(prefix="embedded-") as folder:
        for name in os.listdir(o.bin):
            os.symlink(os.path.join(os.path.abspath(o.bin), name), os.path.join(folder, name))
        extra = ["--simulate-workloads"] if o.simulate else []
        scripts = {"etcd": NOTHING, "kube-apiserver": API_SERVER.replace("@FLUORITE@", repr(fluorite)).replace("@EXTRA@", repr(extra))}
        if o.simulate:
            scripts |= {name: NOTHING for name in ("kube-controller-manager", "kube-scheduler", "kwok")}
        for name, text in scripts.items():
            path = os.path.join(folder, name)
            if os.path.lexists(path):
                os.remove(path)
            with open(path, "w") as f:
                f.write(f"#!{sys.executable}\n{text}")
            os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        command = [sys.executable, "-u", o.checker, "run", "--bin", folder, "--engine-bin", os.path.dirname(fluorite),
                   "--scenarios", o.scenarios, "--filter", o.filter, *o.rest]
        print(shlex.join(command), flush=True)
        sys.exit(subprocess.run(command).returncode)


if __name__ == "__main__":
    main()
