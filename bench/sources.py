#!/usr/bin/env python3
"""Sources: Fluorite against the real source-controller on one control plane.

    bench/sources.py --bin DIR --engine-bin DIR [--shared DIR] [--count 500]

--bin holds etcd, kube-apiserver, registry and source-controller; --engine-bin holds fluorite. --shared is the directory with
the bench library (cluster.py, procs.py, …). Prints one table: CPU seconds until all OCIRepositories are ready, resident
memory afterwards and idle, seconds from a push to the fetched revision, and the ratio of the two engines.
"""
import argparse
import io
import json
import os
import shutil
import sys
import tarfile
import tempfile
import time


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--bin", required=True)
    ap.add_argument("--engine-bin", required=True)
    ap.add_argument("--shared", default=os.environ.get("FLUORITE_BENCH_LIB", "."))
    ap.add_argument("--count", type=int, default=500)
    ap.add_argument("--only", choices=["fluorite", "flux"])
    o = ap.parse_args()
    sys.path.insert(0, o.shared)
    global cluster_mod, oci, free_port, tcp_open, wait_for, Proc
    import cluster as cluster_mod
    import oci
    from procs import Proc, free_port, tcp_open, wait_for
    rows = {}
    for engine in ["flux", "fluorite"]:
        if o.only in (None, engine):
            rows[engine] = measure(engine, o)
    print(f"{'':34}" + "".join(f"{e:>14}" for e in rows) + (f"{'ratio':>10}" if len(rows) == 2 else ""))
    for key in next(iter(rows.values())):
        values = [rows[e][key] for e in rows]
        line = f"{key:34}" + "".join(f"{v:14.2f}" for v in values)
        if len(values) == 2 and values[1]:
            line += f"{values[0] / values[1]:10.1f}"
        print(line)


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
        for n in range(5):
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
        return {f"{o.count} OCIRepositories, CPU s": cpu - cpu0, f"{o.count} OCIRepositories, wall s": wall,
                "resident MiB idle": idle, "resident MiB after": rss, "push to fetched, s (median)": sorted(hops)[2]}
    finally:
        for p in reversed(procs):
            p.stop(3)
        if cl:
            cl.down()
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
