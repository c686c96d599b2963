#!/usr/bin/env python3
"""Sources: Fluorite against the real source-controller on one control plane.

    bench/sources.py --bin DIR --engine-bin DIR [--shared DIR] [--count 500]

--bin holds etcd, kube-apiserver, registry and source-controller; --engine-bin holds fluorite. --shared is the directory with
the bench library (cluster.py, procs.py, …). Prints one table: CPU seconds until all OCIRepositories are ready, resident
memory afterwards and idle, seconds from a reconcile request after a push to the fetched revision, and the ratio of the two
engines. Then, for fluorite alone, the milliseconds from a source's new artifact until a Kustomization that depends on it
speaks of it, and until one has applied it, as somebody who watches both kinds learns of it. Ends with 1 when a bar is missed.
"""
import argparse
import io
import json
import os
import shutil
import sys
import tarfile
import tempfile
import threading
import time

import cleanup  # noqa: F401

WAKES = 100
# What fluorite must keep: the row, whether it is a ratio to the rival, the bar.
BARS = [("CPU s", True, 5.0), ("resident MiB idle", False, 20.0), ("push to fetched, s (worst)", False, 1.0),
        ("dependent wakes, ms (p99)", False, 50.0)]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--bin", required=True)
    ap.add_argument("--engine-bin", required=True)
    ap.add_argument("--shared", default=os.environ.get("FLUORITE_BENCH_LIB", "."))
    ap.add_argument("--count", type=int, default=500)
    ap.add_argument("--only", choices=["fluorite", "flux"])
    o = ap.parse_args()
    sys.path.insert(0, o.shared)
    global cluster_mod, kube, oci, free_port, tcp_open, wait_for, Proc
    import cluster as cluster_mod
    import kube
    import oci
    from procs import Proc, free_port, tcp_open, wait_for
    rows = {}
    for engine in ["flux", "fluorite"]:
        if o.only in (None, engine):
            rows[engine] = measure(engine, o)
    print(f"{'':34}" + "".join(f"{e:>14}" for e in rows) + (f"{'ratio':>10}" if len(rows) == 2 else ""))
    missed = []
    for key in list(rows.values())[-1]:
        values = [rows[e].get(key, float("nan")) for e in rows]
        line = f"{key:34}" + "".join(f"{v:14.2f}" for v in values)
        if len(values) == 2 and values[1]:
            line += f"{values[0] / values[1]:10.1f}"
        print(line)
        if "fluorite" in rows:
            missed += [key for name, ratio, bar in BARS if key.endswith(name) and
                       ((len(values) == 2 and values[0] / values[1] < bar) if ratio else values[-1] > bar)]
    print("missed: " + ", ".join(missed) if missed else "all bars are kept")
    sys.exit(1 if missed else 0)


def usage(pid):
    """CPU seconds and resident MiB of a process."""
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    cpu = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    with open(f"/proc/{pid}/status") as f:
        rss = next(int(x.split()[1]) for x in f if x.startswith("VmRSS")) / 1024
    return cpu, rss


def push(registry, repo, files):
    """One layer of files under the tag v1; answers the digest."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as t:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            t.addfile(info, io.BytesIO(text.encode()))
    return registry.push(repo, "v1", b"{}", "application/vnd.cncf.flux.config.v1+json", raw.getvalue(),
                         "application/vnd.cncf.flux.content.v1.tar+gzip")


def wakes(api, registry, port, cl, work, procs, o):
    """Milliseconds from each new artifact of a source until its Kustomizations say something new.

    Both controllers run in one process; the times are those at which a watcher of both kinds learns of it. One Kustomization
    applies what it gets; the other looks for a path that is not there, so that little but the waking is in its time.
    """
    store, storage = free_port(), os.path.join(work, "storage")
    p = Proc("fluorite", [os.path.join(o.engine_bin, "fluorite"), "run", "--components=source,kustomize", "--kubeconfig", cl.kubeconfig,
                          f"--storage-path={storage}", f"--storage-adv-addr=127.0.0.1:{store}", "--metrics-addr=0",
                          "--health-addr=0"], os.path.join(work, "wakes.log"), env={"KUBECONFIG": cl.kubeconfig})
    procs.append(p)
    wait_for(lambda: tcp_open(store), 60, "fluorite", [p])
    files = lambda n: {"map.yaml": f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: wake\ndata: {{n: '{n}'}}\n"}
    push(registry, "wake", files("first"))
    sources = "/apis/source.toolkit.fluxcd.io/v1/namespaces/default/ocirepositories"
    consumers = "/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/default/kustomizations"
    api.create(sources, {"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "OCIRepository", "metadata": {"name": "wake"},
                         "spec": {"interval": "1h", "url": f"oci://127.0.0.1:{port}/wake", "insecure": True, "ref": {"tag": "v1"}}})
    # Consumers come when there is something to consume: what they say of a missing artifact would count as a wake.
    wait_for(lambda: api.get(f"{sources}/wake").get("status", {}).get("artifact"), 60, "the first artifact", [p])
    for name, path in (("applies", "./"), ("looks", "./missing")):
        api.create(consumers, {"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": {"name": name},
                               "spec": {"interval": "1h", "retryInterval": "1h", "prune": True, "targetNamespace": "default",
                                        "path": path, "sourceRef": {"kind": "OCIRepository", "name": "wake"}}})
    # When each object said which new thing for the first time.
    said, seen = {"wake": [], "applies": [], "looks": []}, threading.Condition()

    def note(obj):
        now, status = time.monotonic(), obj.get("status", {})
        ready = next((c for c in status.get("conditions", []) if c["type"] == "Ready"), {})
        text = status.get("artifact", {}).get("revision") or (ready.get("status") in ("True", "False") and ready["message"])
        news = said.get(obj["metadata"]["name"])
        with seen:
            if news is not None and text and all(text != t for _, t in news):
                news.append((now, text))
                seen.notify_all()
        return False
    for path in (sources, consumers):
        watch = kube.Watch(api, path, note)
        watch.start()
        watch.synced.wait(30)
    for n in range(WAKES + 1):
        with seen:
            if not seen.wait_for(lambda: all(len(news) == n + 1 for news in said.values()), 60):
                raise SystemExit(f"fluorite: a dependent was never woken: { {k: len(v) for k, v in said.items()} }")
        if n < WAKES:
            push(registry, "wake", files(n))
            api.merge(f"{sources}/wake", {"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": str(n)}}})
    hops = {name: sorted((to - start) * 1000 for (start, _), (to, _) in zip(said["wake"][1:], said[name][1:])) for name in said}
    p99 = WAKES * 99 // 100 - 1
    return {"dependent wakes, ms (median)": hops["looks"][WAKES // 2], "dependent wakes, ms (p99)": hops["looks"][p99],
            "dependent has applied, ms (median)": hops["applies"][WAKES // 2], "dependent has applied, ms (p99)": hops["applies"][p99]}


def measure(engine, o):
    work = tempfile.mkdtemp(prefix="bench-sources-")
    procs = []
    cl = None
    try:
        cl = cluster_mod.Cluster(os.path.abspath(o.bin), os.path.join(work, "cluster")).up()
        crds = os.path.join(o.shared, "..", "crds")
        cl.apply_crds(crds, ("source-controller", "kustomize-controller", "helm-controller", "notification-controller"))
        cl.namespace("flux-system")
        api = cl.client
        port = free_port()
        config = os.path.join(work, "registry.json")
        with open(config, "w") as f:
            json.dump({"version": "0.1", "log": {"level": "error", "accesslog": {"disabled": True}},
                       "storage": {"filesystem": {"rootdirectory": os.path.join(work, "registry")}},
                       "http": {"addr": f"127.0.0.1:{port}"}}, f)
        procs.append(Proc("registry", [os.path.join(o.bin, "registry"), "serve", config],
                          os.path.join(work, "registry.log"), env={"OTEL_TRACES_EXPORTER": "none"}))
        wait_for(lambda: tcp_open(port), 20, "registry", procs)
        registry = oci.Registry(f"127.0.0.1:{port}")
        push(registry, "app", {f"f{i}.yaml": f"a: {i}\n" for i in range(20)})

        store, storage = free_port(), os.path.join(work, "storage")
        os.makedirs(storage)
        if engine == "flux":
            argv = [os.path.join(o.bin, "source-controller"), "--watch-all-namespaces", "--enable-leader-election=false",
                    f"--metrics-addr=127.0.0.1:{free_port()}", f"--health-addr=127.0.0.1:{free_port()}", "--events-addr=",
                    f"--storage-path={storage}", f"--storage-addr=127.0.0.1:{store}", f"--storage-adv-addr=127.0.0.1:{store}",
                    "--concurrent=8"]
        else:
            argv = [os.path.join(o.engine_bin, "fluorite"), "run", "--components=source", "--kubeconfig", cl.kubeconfig,
                    f"--storage-path={storage}", f"--storage-adv-addr=127.0.0.1:{store}", "--metrics-addr=0",
                    "--health-addr=0", "--concurrent=8"]
        p = Proc(engine, argv, os.path.join(work, engine + ".log"), env={"KUBECONFIG": cl.kubeconfig})
        procs.append(p)
        wait_for(lambda: tcp_open(store), 60, engine, [p])
        time.sleep(5)
        pid = p.p.pid
        _, idle = usage(pid)
        base = "/apis/source.toolkit.fluxcd.io/v1/namespaces/default/ocirepositories"
        cpu0, t0 = usage(pid)[0], time.monotonic()
        for i in range(o.count):
            api.request("POST", base, {"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "OCIRepository",
                                       "metadata": {"name": f"app-{i}", "namespace": "default"},
                                       "spec": {"interval": "1h", "url": f"oci://127.0.0.1:{port}/app", "insecure": True,
                                                "ref": {"tag": "v1"}}}, "application/json")
        while True:
            items = api.get(base)["items"]
            ready = sum(any(c["type"] == "Ready" and c["status"] == "True" for c in x.get("status", {}).get("conditions", []))
                        for x in items)
            if ready == o.count:
                break
            if time.monotonic() - t0 > 600:
                raise SystemExit(f"{engine}: only {ready} of {o.count} became ready")
            time.sleep(0.5)
        wall = time.monotonic() - t0
        cpu, rss = usage(pid)
        # One more revision, asked for by annotation: until the object shows it.
        hops = []
        for n in range(20):
            digest = push(registry, "hop", {"f.yaml": f"n: {n}\n"})
            if n == 0:
                api.request("POST", base, {"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "OCIRepository",
                                           "metadata": {"name": "hop", "namespace": "default"},
                                           "spec": {"interval": "1h", "url": f"oci://127.0.0.1:{port}/hop", "insecure": True,
                                                    "ref": {"tag": "v1"}}}, "application/json")
            t = time.monotonic()
            api.request("PATCH", f"{base}/hop", {"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": str(n)}}},
                        "application/merge-patch+json")
            while digest not in api.get(f"{base}/hop").get("status", {}).get("artifact", {}).get("revision", ""):
                if time.monotonic() - t > 60:
                    raise SystemExit(f"{engine}: the push was never fetched")
                time.sleep(0.01)
            hops.append(time.monotonic() - t)
        row = {f"{o.count} OCIRepositories, CPU s": cpu - cpu0, f"{o.count} OCIRepositories, wall s": wall,
               "resident MiB idle": idle, "resident MiB after": rss, "push to fetched, s (median)": sorted(hops)[len(hops) // 2],
               "push to fetched, s (worst)": max(hops)}
        if engine == "fluorite":
            p.stop(10)
            procs.remove(p)
            row.update(wakes(api, registry, port, cl, work, procs, o))
        return row
    finally:
        for p in reversed(procs):
            p.stop(3)
        if cl:
            cl.down()
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
