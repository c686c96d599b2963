#!/usr/bin/env python3
"""Compares `BINARY kustomize build` with the real kustomize: time, peak memory, growth.

usage: bench/kustomize.py BINARY KUSTOMIZE [--bases 50] [--runs 3] [--skip-growth]

Generates its own trees: N bases of 40 objects each with generators, an overlay for each (namespace, prefix, images, replicas,
patches by name and by selector, a component), and one cluster that takes all overlays and adds labels, patches and a replacement.
Both tools build the same trees in one run and must print the same bytes. Prints ratios and the exponent of fit of our time over
the number of objects (up to 10,000).
"""
import argparse
import math
import os
import resource
import subprocess
import sys
import tempfile
import time

APP = """apiVersion: apps/v1
kind: Deployment
metadata: {{name: web-{j}, labels: {{tier: {tier}}}}}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: web-{j}}}}}
  template:
    metadata: {{labels: {{app: web-{j}}}}}
    spec:
      serviceAccountName: runner
      containers:
      - name: main
        image: example.org/team/app-{i}:1.{j}
        envFrom: [{{configMapRef: {{name: settings}}}}, {{secretRef: {{name: login}}}}]
        env:
        - {{name: LEVEL, value: info}}
        ports: [{{containerPort: 8080, protocol: TCP, name: http}}]
        resources: {{requests: {{cpu: 50m, memory: 64Mi}}, limits: {{memory: 128Mi}}}}
      - name: side
        image: example.org/platform/side:2.3
        args: ["--to", "localhost:8080"]
      volumes: [{{name: config, configMap: {{name: settings}}}}, {{name: tmp, emptyDir: {{}}}}]
---
apiVersion: v1
kind: Service
metadata: {{name: web-{j}}}
spec: {{selector: {{app: web-{j}}}, ports: [{{name: http, port: 80, targetPort: http}}]}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {{name: web-{j}}}
spec: {{scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: web-{j}}}, minReplicas: 1, maxReplicas: 5}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: files-{j}}}
data:
  config.yaml: |
    listen: ":8080"
    upstreams:
    - name: up-{i}
"""


def tree(top, bases, per_base=10):
    def put(path, text):
        path = os.path.join(top, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)

    put("component/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n"
        "- target: {kind: Deployment}\n  patch: '[{\"op\": \"add\", \"path\": \"/spec/template/spec/hostNetwork\", \"value\": false}]'\n")
    for i in range(bases):
        files = []
        for j in range(per_base):
            files.append("web-%d.yaml" % j)
            put("bases/%d/web-%d.yaml" % (i, j), APP.format(i=i, j=j, tier="a" if j % 2 else "b"))
        put("bases/%d/account.yaml" % i, "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: runner}\n")
        put("bases/%d/kustomization.yaml" % i, "resources: [account.yaml, %s]\n" % ", ".join(files)
            + "labels: [{pairs: {part-of: app-%d}, includeSelectors: true}]\n" % i
            + "configMapGenerator: [{name: settings, literals: [A=%d, B=2]}]\n" % i
            + "secretGenerator: [{name: login, literals: [user=u%d]}]\n" % i)
        put("overlays/%d/kustomization.yaml" % i, "namespace: app-%d\nnamePrefix: p%d-\nresources: [../../bases/%d]\n" % (i, i, i)
            + "components: [../../component]\nimages: [{name: example.org/team/app-%d, newTag: '2.0'}]\n" % i
            + "replicas: [{name: web-0, count: 3}]\n"
            + "configMapGenerator: [{name: settings, behavior: merge, literals: [C=3]}]\n"
            + "patches:\n- patch: |\n    apiVersion: apps/v1\n    kind: Deployment\n    metadata: {name: web-0}\n"
            + "    spec: {template: {spec: {containers: [{name: main, env: [{name: LEVEL, value: warn}]}]}}}\n"
            + "- target: {kind: Deployment, labelSelector: tier=a}\n  patch: |\n    apiVersion: apps/v1\n    kind: Deployment\n"
            + "    metadata: {name: any}\n    spec: {template: {spec: {containers: [{name: side, tty: true}]}}}\n")
    put("cluster/vars.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: vars, annotations: "
        "{config.kubernetes.io/local-config: 'true'}}\ndata: {zone: eu-1}\n")
    put("cluster/kustomization.yaml", "resources: [vars.yaml, %s]\n" % ", ".join("../overlays/%d" % i for i in range(bases))
        + "labels: [{pairs: {cluster: prod}}]\ncommonAnnotations: {by: platform}\n"
        + "patches:\n- target: {kind: HorizontalPodAutoscaler}\n  patch: '[{\"op\": \"replace\", \"path\": \"/spec/minReplicas\", \"value\": 2}]'\n"
        + "replacements:\n- source: {kind: ConfigMap, name: vars, fieldPath: data.zone}\n  targets:\n"
        + "  - select: {kind: Deployment}\n    fieldPaths: [spec.template.metadata.annotations.zone]\n    options: {create: true}\n")
    return os.path.join(top, "cluster"), bases * (per_base * 4 + 3)


def measure(command, runs):
    """Best time in seconds, peak memory in KiB, output."""
    best, peak, output = math.inf, 0, b""
    for _ in range(runs):
        start = time.monotonic()
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        output = child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = status
        best = min(best, time.monotonic() - start)
        peak = max(peak, usage.ru_maxrss)
        if status != 0:
            sys.exit("%s failed" % " ".join(command))
    return best, peak, output


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("kustomize")
    parser.add_argument("--bases", type=int, default=50)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--skip-growth", action="store_true")
    args = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory() as top:
        for name, bases, per_base in (("tiny", 1, 1), ("large", args.bases, 10)):
            root, count = tree(os.path.join(top, name), bases, per_base)
            ours = measure([args.binary, "kustomize", "build", root], max(args.runs, 5))
            real = measure([args.kustomize, "build", root], args.runs if name == "tiny" else 1)
            same = "same bytes" if ours[2] == real[2] else "OUTPUT DIFFERS"
            print("%-6s %5d objects: ours %8.1f ms %7.1f MB, kustomize %9.1f ms %7.1f MB: %6.1fx faster, %5.2f of its memory, %s"
                  % (name, count, ours[0] * 1e3, ours[1] / 1024, real[0] * 1e3, real[1] / 1024, real[0] / ours[0],
                     ours[1] / real[1], same))
        if not args.skip_growth:
            points = []
            for bases in (15, 30, 60, 120, 232):
                root, count = tree(os.path.join(top, "g%d" % bases), bases)
                seconds, peak, _ = measure([args.binary, "kustomize", "build", root], args.runs)
                points.append((math.log(count), math.log(seconds)))
                print("growth %6d objects: %8.1f ms %7.1f MB" % (count, seconds * 1e3, peak / 1024))
            mx, my = (sum(p[k] for p in points) / len(points) for k in (0, 1))
            slope = sum((x - mx) * (y - my) for x, y in points) / sum((x - mx) ** 2 for x, _ in points)
            print("exponent of fit: %.2f (at most 1.15)" % slope)


if __name__ == "__main__":
    main()
