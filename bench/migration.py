#!/usr/bin/env python3
"""A cluster run by the Flux controllers is taken over by Fluorite and given back: no workload may notice.

    bench/migration.py --bin DIR --engine-bin DIR --shared DIR [--count 10] [--rounds 1] [--pods 0]

--bin holds etcd, kube-apiserver, kube-controller-manager, kwok, registry and the Flux controllers; --engine-bin holds fluorite;
--shared is the directory of the bench library (run_bench.py). --count Kustomizations and as many HelmReleases, each with a
Deployment of --pods pods, are installed by Flux. After every change of hands each object is reconciled on request by the engine
that has it then. Compared are all objects of the workload (UID, generation, field managers), the pods that run and the
revisions of the releases. Exits with 1 when anything changed.
"""
import argparse
import os
import shutil
import sys
import time
import types

import cleanup  # noqa: F401

LISTS = [
    "/api/v1/{}/configmaps", "/api/v1/{}/pods", "/api/v1/{}/secrets", "/api/v1/{}/serviceaccounts", "/api/v1/{}/services",
    "/apis/apps/v1/{}/deployments", "/apis/apps/v1/{}/replicasets", "/apis/networking.k8s.io/v1/{}/ingresses",
    "/apis/kustomize.toolkit.fluxcd.io/v1/{}/kustomizations", "/apis/helm.toolkit.fluxcd.io/v2/{}/helmreleases",
    "/apis/source.toolkit.fluxcd.io/v1/{}/gitrepositories", "/apis/source.toolkit.fluxcd.io/v1/{}/helmrepositories",
]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--bin", required=True)
    ap.add_argument("--engine-bin", required=True)
    ap.add_argument("--shared", default=os.environ.get("FLUORITE_BENCH_LIB", "."))
    ap.add_argument("--count", type=int, default=10)
    ap.add_argument("--rounds", type=int, default=1, help="how often it goes there and back")
    # The fake node is called unready after 40 seconds, and Flux then waits for pods that never come back.
    ap.add_argument("--pods", type=int, default=1, help="pods of each Deployment; 0 to see the whole way there and back")
    o = ap.parse_args()
    sys.path.insert(0, o.shared)
    import run_bench
    settings = types.SimpleNamespace(
        engine="flux", bin=o.bin, engine_bin=o.bin, cmd=run_bench.FLUORITE_CMD, profile="default", source="git",
        kustomizations=o.count, helmreleases=o.count, pods=o.pods, phases=[], flux_arg=[],
        controllers=("notification", "source", "kustomize", "helm"), no_impersonation=False, no_events=False,
        keep_storage=False, idle=0, settle=5, steady=0, timeout=300, scratch=None, pprof=0, pprof_phases=[], keep=False,
        label="", crds=os.path.join(o.shared, "..", "crds"),
        crd_sets=("source-controller", "kustomize-controller", "helm-controller", "notification-controller"))
    bench = run_bench.Bench(settings)
    differences = 0
    try:
        bench.setup()
        bench.start_engine()
        bench.meter.start()
        bench.cp.start()
        if not (bench.ks_install() and bench.hr_install()):
            sys.exit("Flux did not install the workload")
        before = snapshot(bench.client)
        for _ in range(o.rounds):
            for engine, folder in (("fluorite", o.engine_bin), ("flux", o.bin)):
                change_hands(bench, engine, folder)
                if not (bench.ks_reconcile() and bench.hr_reconcile()):
                    sys.exit(f"{engine} did not reconcile what it took over")
                time.sleep(5)  # what is done late must be seen, too
                after = snapshot(bench.client)
                found = compare(before, after)
                print(f"taken over by {engine}: {len(after)} objects, {len(found)} differences")
                for line in found[:20]:
                    print("   ", line)
                differences += len(found)
    finally:
        bench.teardown()
    sys.exit(1 if differences else 0)


def change_hands(bench, engine, folder):
    """Stops the engine there is and starts the other; artifacts do not move, the next engine makes its own. Both serve them at
    one address, as behind the Service of a cluster."""
    import run_bench
    port = getattr(bench.engine, "store_port", None) or bench.engine.port
    bench.engine.stop()
    shutil.rmtree(bench.engine.storage, ignore_errors=True)
    o = bench.o
    place = (folder, os.path.join(bench.work, "engine"), bench.cluster.kubeconfig)
    if engine == "flux":
        bench.engine = run_bench.Flux(*place, profile=o.profile, controllers=o.controllers)
        bench.engine.store_port = port
    else:
        bench.engine = run_bench.Fluorite(*place, cmd=o.cmd)
        bench.engine.port = port
    o.engine, o.engine_bin = engine, folder
    bench.start_engine()


def snapshot(client):
    import run_bench
    found = {}
    for namespace in (run_bench.KS, run_bench.HR):
        for path in LISTS:
            path = path.format("namespaces/" + namespace)
            for item in client.get(path)["items"]:
                meta = item["metadata"]
                # The controllers of Kubernetes write too, whenever they like: only the engines' fields count.
                managers = sorted({m["manager"] for m in meta.get("managedFields", []) if m.get("subresource") != "status"})
                key = f"{path.rsplit('/', 1)[1]} {namespace}/{meta['name']}"
                found[key] = {"uid": meta["uid"], "generation": meta.get("generation"), "managers": managers}
    return found


def compare(before, after):
    lines = [f"{key} is gone" for key in before.keys() - after.keys()]
    lines += [f"{key} is new" for key in after.keys() - before.keys()]
    for key in before.keys() & after.keys():
        for field, value in before[key].items():
            if value != after[key][field]:
                lines.append(f"{key}: {field} was {value}, is {after[key][field]}")
    return sorted(lines)


if __name__ == "__main__":
    main()
