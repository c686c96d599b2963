#!/usr/bin/env python3
"""Real trees with Flux objects through `fluorite up`: no crash, and a reason for everything that is not ready.

usage: up_trees.py --fluorite BINARY --trees DIR [--filter TEXT] [--timeout 20] [--all]

Each `tree.json` is written to a folder and delivered with `--dirty`; the repository it was taken from is served from that
folder too (`--serve`), so that GitRepositories that name it are found. Whatever lies elsewhere cannot be reached when this
runs without a network, which is how it should be run (`unshare -n`); the objects must say so.
"""
import argparse, json, os, re, subprocess, sys, tempfile

ap = argparse.ArgumentParser()
ap.add_argument("--fluorite", required=True)
ap.add_argument("--trees", required=True)
ap.add_argument("--filter", default="")
ap.add_argument("--timeout", type=int, default=20)
ap.add_argument("--all", action="store_true", help="also trees without Flux objects")
a = ap.parse_args()
bad = passed = ready = 0
for folder, _, files in sorted(os.walk(a.trees)):
    name = os.path.relpath(folder, a.trees)
    if "tree.json" not in files or a.filter not in name:
        continue
    tree = json.load(open(os.path.join(folder, "tree.json")))
    text = "\n".join(v if isinstance(v, str) else json.dumps(v) for v in tree["files"].values())
    if "toolkit.fluxcd.io" not in text and not a.all:
        continue
    with tempfile.TemporaryDirectory() as work:
        source, state = os.path.join(work, "source"), os.path.join(work, "state")
        for path, content in tree["files"].items():
            place = os.path.join(source, path)
            os.makedirs(os.path.dirname(place), exist_ok=True)
            if isinstance(content, str):
                open(place, "w").write(content)
            else:
                import base64
                open(place, "wb").write(base64.b64decode(content.get("base64", "")))
        upstream = "https://github.com/" + name.split("/")[0].replace("_", "/", 1)
        run = subprocess.run([a.fluorite, "up", source, "--dirty", "--path", tree["root"], "--state-dir", state, "--serve",
                              upstream + "=" + source, "--exit-when-ready", "--timeout", "%ds" % a.timeout, "-o", "json"],
                             capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=a.timeout + 60)
        problems = []
        if run.returncode not in (0, 1) or "panicked" in run.stderr:
            problems.append("ended with %d" % run.returncode)
        try:
            objects = json.loads(run.stdout)["objects"]
        except ValueError:
            objects = []
            problems.append("no summary")
        for o in objects:
            if o["state"] != "ready" and not o["message"].strip():
                problems.append("%s/%s/%s has no reason" % (o["kind"], o["namespace"], o["name"]))
        log = open(os.path.join(state, "log")).read() if os.path.exists(os.path.join(state, "log")) else ""
        if "panic" in log:
            problems.append("a pass panicked")
        states = {}
        for o in objects:
            states[o["state"]] = states.get(o["state"], 0) + 1
        passed, bad, ready = passed + (not problems), bad + bool(problems), ready + (run.returncode == 0)
        print("%s %s  %s" % ("FAIL" if problems else "ok  ", name, states))
        for p in problems:
            print("     " + p)
        if problems:
            print(re.sub("^", "     ", run.stderr[-1500:], flags=re.M))
        else:
            for o in objects:
                if o["state"] != "ready":
                    print("     %-11s %s/%s/%s: %s" % (o["state"], o["kind"], o["namespace"], o["name"],
                                                        o["message"].split("\n")[0][:160]))
print("%d passed (%d of them with all ready), %d failed" % (passed, ready, bad))
sys.exit(1 if bad else 0)
