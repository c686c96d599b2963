#!/usr/bin/env python3
"""HelmReleases: Fluorite against the Flux controllers, one after the other on a fresh control plane each.

    bench/helmreleases.py --bin DIR --engine-bin DIR --shared DIR [--count 100] [--only fluorite]

--bin holds etcd, kube-apiserver, kube-controller-manager, registry and the Flux controllers; --engine-bin holds fluorite;
--shared is the directory of the bench library (run_bench.py). Phases: idle, install of all, a reconcile that changes nothing,
an upgrade of one value. Prints one table: seconds, CPU seconds, memory, and the API requests each engine made itself (its own
`rest_client_requests_total`), with the ratio of the two engines.
"""
import argparse
import os
import re
import sys
import types
import urllib.request

PHASES = ["idle", "hr_install", "hr_reconcile", "hr_upgrade"]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--bin", required=True)
    ap.add_argument("--engine-bin", required=True)
    ap.add_argument("--shared", default=os.environ.get("FLUORITE_BENCH_LIB", "."))
    ap.add_argument("--count", type=int, default=100)
    ap.add_argument("--timeout", type=int, default=900)
    ap.add_argument("--only", choices=["fluorite", "flux"])
    o = ap.parse_args()
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


def measure(engine, o):
    import run_bench
    from procs import free_port

    port = free_port()
    command = f"{run_bench.FLUORITE_CMD} --metrics-addr 127.0.0.1:{port} --concurrent=10"
    settings = types.SimpleNamespace(
        engine=engine, bin=o.bin, engine_bin=o.engine_bin if engine == "fluorite" else o.bin, cmd=command,
        profile="benchmark", source="oci", kustomizations=0, helmreleases=o.count, pods=0, phases=PHASES, flux_arg=[],
        controllers=("notification", "source", "kustomize", "helm"), no_impersonation=False, no_events=False,
        keep_storage=False, idle=10, settle=10, steady=0, timeout=o.timeout, scratch=None, pprof=0, pprof_phases=[],
        keep=False, label="", crds=os.path.join(o.shared, "..", "crds"),
        crd_sets=("source-controller", "kustomize-controller", "helm-controller", "notification-controller"))
    bench = run_bench.Bench(settings)
    row = {}
    try:
        bench.setup()
        bench.start_engine()
        bench.meter.start()
        bench.cp.start()
        ports = bench.engine.metrics.values() if engine == "flux" else [port]
        for name in PHASES:
            before = own_requests(ports)
            done = getattr(bench, name)()
            phase = next(p for p in bench.phases if p["phase"] == name)
            if done is False:
                print(f"{engine}: {name} was not completed", file=sys.stderr)
            short = name.removeprefix("hr_")
            if name != "idle":
                row[f"{short}, s"] = phase["wall_s"]
                row[f"{short}, CPU s"] = phase["engine_total"]["cpu_s"]
                row[f"{short}, own requests each"] = (own_requests(ports) - before) / o.count
            row[f"{short}, peak MiB"] = phase["engine_total"]["peak_rss_mib"]
    finally:
        bench.teardown()
    return row


if __name__ == "__main__":
    main()
