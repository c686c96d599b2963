#!/usr/bin/env python3
"""Real charts through HelmReleases: what Fluorite stores and applies against what Flux does, on a real control plane.

    bench/helm_charts.py --bin DIR --engine-bin DIR --checker corpus/check_flux.py --charts corpus/helm/charts [--filter vault]

Makes one scenario per chart variant (install, `helm history`, `helm rollback`, adoption of that rollback, uninstall), has the
checker record it with the Flux controllers of --bin and then run it with Fluorite. The stored releases are compared as
decoded records, so `helm get manifest` of both engines is equal byte for byte where this passes. Standard library only.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

# Flags of `helm template` that say nothing about the values.
PLAIN = {"-n", "--kube-version", "--api-versions"}
SWITCHES = {"--include-crds", "--no-hooks", "--is-upgrade"}


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--bin", required=True)
    ap.add_argument("--engine-bin", required=True)
    ap.add_argument("--checker", required=True)
    ap.add_argument("--charts", required=True)
    ap.add_argument("--filter", default="", help="only charts whose name contains one of these, comma separated")
    ap.add_argument("--variants", default="default,off", help="those that need no foreign CRDs")
    ap.add_argument("--scenarios", help="keep scenarios and goldens here; recorded ones are not recorded again")
    ap.add_argument("-v", action="store_true")
    o = ap.parse_args()
    work = o.scenarios or tempfile.mkdtemp(prefix="helm-charts-")
    try:
        written = sum(write_scenarios(o, work, name) for name in sorted(os.listdir(o.charts))
                      if any(part in name for part in o.filter.split(",")))
        print(f"{written} scenarios", flush=True)
        common = [sys.executable, "-u", o.checker]
        record = ["record", "--bin", o.bin, "--scenarios", work, "--jobs", "1", "--missing"]
        if without_golden(work):
            subprocess.run(common + record + ["--filter", o.filter])
        for name in without_golden(work):
            print(f"left out, Flux cannot install it here either: {name}", flush=True)
            shutil.rmtree(os.path.join(work, name))
        run = ["run", "--bin", o.bin, "--engine-bin", o.engine_bin, "--scenarios", work, "--jobs", "1", "--filter", o.filter]
        sys.exit(subprocess.run(common + run + (["-v"] if o.v else [])).returncode)
    finally:
        if not o.scenarios:
            shutil.rmtree(work, ignore_errors=True)


def without_golden(work):
    return [name for name in sorted(os.listdir(work)) if not os.path.exists(os.path.join(work, name, "golden.json"))]


def write_scenarios(o, work, name):
    folder = os.path.join(o.charts, name)
    with open(os.path.join(folder, "case.json")) as f:
        case = json.load(f)
    chart = read_chart(os.path.join(folder, case["chart"]))
    count = 0
    for variant in case["variants"]:
        values = values_of(folder, variant.get("args", []))
        if variant["name"] not in o.variants.split(",") or values is None or "golden" not in variant:
            continue
        target = os.path.join(work, f"chart-{name}-{variant['name']}")
        os.makedirs(target, exist_ok=True)
        with open(os.path.join(target, "scenario.json"), "w") as f:
            json.dump(scenario(name, variant["name"], chart, values), f, indent=1)
        count += 1
    return count


def read_chart(path):
    """Name, version and text files of a packaged chart."""
    files = {}
    with tarfile.open(path) as t:
        for member in t:
            if member.isfile():
                inner = member.name.split("/", 1)[1]
                try:
                    files[inner] = t.extractfile(member).read().decode()
                except UnicodeDecodeError:
                    print(f"{path}: {inner} is not text and is left out", file=sys.stderr)

    def field(key):
        found = re.search(rf"^{key}:\s*(\S+)", files["Chart.yaml"], re.M)
        return found.group(1).strip("\"'")
    return {"name": field("name"), "version": field("version"), "files": files}


def values_of(folder, args):
    """The texts of the values files, or None when the variant uses other ways to set values."""
    texts, rest = [], list(args)
    while rest:
        arg = rest.pop(0)
        if arg == "-f":
            with open(os.path.join(folder, rest.pop(0))) as f:
                texts.append(f.read())
        elif arg in PLAIN:
            rest.pop(0)
        elif arg not in SWITCHES:
            return None
    return texts


def scenario(name, variant, chart, values):
    maps = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"values-{i}"}, "data": {"values.yaml": text}}
            for i, text in enumerate(values)]
    action = {"disableWait": True, "disableHooks": True, "disableOpenAPIValidation": True}
    release = {"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": {"name": "demo"}, "spec": {
        "interval": "10m", "timeout": "1m", "releaseName": "demo", "install": action, "upgrade": action,
        "uninstall": {"disableWait": True, "disableHooks": True},
        "valuesFrom": [{"kind": "ConfigMap", "name": m["metadata"]["name"]} for m in maps],
        "chart": {"spec": {"chart": chart["name"], "version": chart["version"],
                           "sourceRef": {"kind": "HelmRepository", "name": "charts"}}}}}
    repository = {"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "HelmRepository", "metadata": {"name": "charts"},
                  "spec": {"interval": "10m", "url": "@{HELM}/charts"}}
    place = ["-n", "@{NS}"]
    return {"about": f"{name}, variant {variant}", "steps": [
        {"helmrepo": {"repo": "charts", "charts": [chart]}},
        {"apply": [repository, *maps]},
        {"wait": {"ref": "HelmRepository/charts", "ready": "True", "observed": True}},
        {"apply": [release]},
        {"wait": {"ref": "HelmRelease/demo", "ready": "True", "observed": True}},
        {"snapshot": "installed", "of": ["HelmRelease/demo", "releases"]},
        {"helm": ["history", "demo", *place]},
        {"helm": ["get", "all", "demo", *place]},
        {"helm": ["rollback", "demo", "1", "--no-hooks", *place]},
        {"reconcile": "HelmRelease/demo", "token": "t1", "wait": {"ready": "True"}},
        {"snapshot": "adopted", "of": ["HelmRelease/demo", "releases"]},
        {"delete": "HelmRelease/demo"},
        {"wait": {"ref": "HelmRelease/demo", "gone": True}},
        {"snapshot": "gone", "of": ["releases"]},
    ]}


if __name__ == "__main__":
    main()
