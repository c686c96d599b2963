#!/usr/bin/env python3
"""Kustomizations and HelmReleases: Fluorite against the Flux controllers, one after the other on a fresh control plane each.

    bench/controllers.py kustomizations --bin DIR --engine-bin DIR --shared DIR [--count 500] [--only fluorite]
    bench/controllers.py helmreleases   --bin DIR --engine-bin DIR --shared DIR [--count 100]

--bin holds etcd, kube-apiserver, kube-controller-manager, registry and the Flux controllers; --engine-bin holds fluorite;
--shared is the directory of the bench library (run_bench.py). Prints one table: seconds, CPU seconds, memory, and the API
requests each engine made itself (its own `rest_client_requests_total`), with the ratio of the two engines.
"""
import argparse
import json
import os
import re
import sys
import time
import types
import urllib.request

import cleanup  # noqa: F401

PHASES = {
    "kustomizations": ["idle", "ks_install", "ks_reconcile", "ks_change", "ks_steady", "restart", "drift", "chain"],
    "helmreleases": ["idle", "hr_install", "hr_reconcile", "hr_upgrade"],
}
CHAIN = 20  # Kustomizations, each depending on the one before


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("kind", choices=sorted(PHASES))
    ap.add_argument("--bin", required=True)
    ap.add_argument("--engine-bin", required=True)
    ap.add_argument("--shared", default=os.environ.get("FLUORITE_BENCH_LIB", "."))
    ap.add_argument("--count", type=int, default=100)
    ap.add_argument("--steady", type=int, default=60, help="seconds of rest at an interval of one minute")
    ap.add_argument("--timeout", type=int, default=900, help="seconds a phase may take")
    ap.add_argument("--phases", type=lambda s: s.split(","), help="only these")
    ap.add_argument("--only", choices=["fluorite", "flux"])
    ap.add_argument("--out", help="a file for the phases in full, one JSON line per engine")
    o = ap.parse_args()
    o.phases = o.phases or PHASES[o.kind]
    sys.path.insert(0, o.shared)
    rows = {engine: measure(engine, o) for engine in ("flux", "fluorite") if o.only in (None, engine)}
    print(f"\n{'':34}" + "".join(f"{e:>12}" for e in rows) + (f"{'ratio':>9}" if len(rows) == 2 else ""))
    for key in next(iter(rows.values())):
        values = [rows[e].get(key, float("nan")) for e in rows]
        line = f"{key:34}" + "".join(f"{v:12.2f}" for v in values)
        if len(values) == 2 and values[1]:
            line += f"{values[0] / values[1]:9.1f}"
        print(line)


def own_requests(ports):
    """How many requests the processes behind these metrics ports made so far."""
    total = 0.0
    for port in ports:
        text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10).read().decode()
        total += sum(float(x) for x in re.findall(r"^rest_client_requests_total\S*\s+(\S+)", text, re.M))
    return total


def drift(bench):
    """Seconds from a field changed by hand until it is back; the engines that wait for an interval are asked to reconcile."""
    import run_bench as rb
    path = f"/apis/networking.k8s.io/v1/namespaces/{rb.KS}/ingresses/app-0app"
    bench.begin()
    bench.client.merge(path, {"spec": {"ingressClassName": "drifted"}})
    if bench.o.engine == "flux":
        bench.annotate(rb.P_KS, ["app-0"], bench.token())
    return until(bench, "drift", 1, lambda: bench.client.get(path)["spec"]["ingressClassName"] != "drifted")


def chain(bench):
    """Seconds until the last of a chain of Kustomizations is ready, from the moment the last object is posted."""
    import run_bench as rb
    import workload as w
    kind, name = ("GitRepository", "bench") if bench.o.source == "git" else ("OCIRepository", "app-0")
    calls = []
    for i in range(CHAIN):
        ks = w.kustomization(rb.KS, 10_000 + i, kind, name, "60m", 0, True)
        ks["spec"]["interval"] = "60m"
        if i:
            ks["spec"]["dependsOn"] = [{"name": f"app-{10_000 + i - 1}"}]
        calls.append(("POST", rb.P_KS, ks, rb.JSON))
    bench.begin()
    bench.client.bulk(calls)
    last = f"{rb.P_KS}/app-{10_000 + CHAIN - 1}"
    return until(bench, "chain", CHAIN, lambda: rb.ready(bench.client.get(last)))


def until(bench, phase, n, true):
    """Asks every 20 ms until it is true, then closes the phase."""
    end = time.monotonic() + bench.o.timeout
    while not true():
        if time.monotonic() > end:
            bench.end(phase, time.monotonic() - bench.t0, n=n, complete=False)
            return False
        time.sleep(0.02)
    bench.end(phase, time.monotonic() - bench.t0, n=n, complete=True)
    return True


def measure(engine, o):
    import run_bench
    from procs import free_port

    port = free_port()
    command = f"{run_bench.FLUORITE_CMD} --metrics-addr 127.0.0.1:{port}"
    ks, hr = (o.count, 0) if o.kind == "kustomizations" else (0, o.count)
    settings = types.SimpleNamespace(
        engine=engine, bin=o.bin, engine_bin=o.engine_bin if engine == "fluorite" else o.bin, cmd=command,
        profile="benchmark", source="git", kustomizations=ks, helmreleases=hr, pods=0, phases=o.phases, flux_arg=[],
        controllers=("notification", "source", "kustomize", "helm"), no_impersonation=False, no_events=False,
        keep_storage=False, idle=10, settle=10, steady=o.steady, timeout=o.timeout, scratch=None, pprof=0, pprof_phases=[],
        keep=False, label="", crds=os.path.join(o.shared, "..", "crds"),
        crd_sets=("source-controller", "kustomize-controller", "helm-controller", "notification-controller"))
    bench = run_bench.Bench(settings)
    row = {}
    try:
        bench.setup()
        bench.start_engine()
        bench.meter.start()
        bench.cp.start()

        def ports():  # the controllers take new ones at a restart
            return list(bench.engine.metrics.values()) if engine == "flux" else [port]
        for name in o.phases:
            # A restart counts from zero in its new process.
            before = 0 if name == "restart" else own_requests(ports())
            done = {"drift": drift, "chain": chain}[name](bench) if name in ("drift", "chain") else getattr(bench, name)()
            phase = next(p for p in bench.phases if p["phase"] == name)
            if done is False:
                print(f"{engine}: {name} was not completed", file=sys.stderr)
            short = re.sub("^(hr|ks)_", "", name)
            if name != "idle":
                row[f"{short}, s"] = phase["wall_s"]
                row[f"{short}, CPU s"] = phase["engine_total"]["cpu_s"]
                row[f"{short}, own requests each"] = (own_requests(ports()) - before) / phase["n"]
            row[f"{short}, peak MiB"] = phase["engine_total"]["peak_rss_mib"]
    finally:
        bench.teardown()
        if o.out:
            with open(o.out, "a") as f:
                f.write(json.dumps({"engine": engine, "phases": bench.phases}) + "\n")
    return row


if __name__ == "__main__":
    main()
