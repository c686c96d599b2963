//! Kustomizations and patches.

use fl_kustomize::{JsonPatch, Memory, Options, build};

use super::Target;

pub(crate) const TARGETS: &[Target] = &[
    ("kustomization", kustomization),
    ("kustomize-merge", strategic_merge),
    ("kustomize-json-patch", json_patch),
];

const OBJECTS: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, labels: {x: y}}\nspec:\n  replicas: 1\n  \
    template: {spec: {containers: [{name: c, image: i, ports: [{containerPort: 80}]}]}}\n---\n\
    apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata: {k: v}\n";

fn built(kustomization: &[u8], patch: &[u8]) {
    let mut files = Memory::new();
    files
        .add("/w/kustomization.yaml", kustomization)
        .add("/w/r.yaml", OBJECTS)
        .add("/w/p.yaml", patch)
        .add("/w/base/kustomization.yaml", "resources: [s.yaml]\n")
        .add("/w/base/s.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n");
    if let Ok(output) = build(&files, "/w".as_ref(), &Options::default()) {
        assert!(output.reads.iter().all(|path| path.starts_with("/w")));
        let _ = output.to_yaml();
    }
}

/// The bytes are a kustomization beside a few files it may name.
fn kustomization(input: &[u8]) {
    built(input, b"");
}

/// The bytes are a patch of a Deployment.
fn strategic_merge(input: &[u8]) {
    built(b"resources: [r.yaml]\npatches: [{path: p.yaml, target: {kind: Deployment}}]\n", input);
}

/// The bytes are a JSON patch of a Deployment.
fn json_patch(input: &[u8]) {
    if JsonPatch::parse(&String::from_utf8_lossy(input)).is_ok() {
        built(b"resources: [r.yaml]\npatches: [{path: p.yaml, target: {name: a}}]\n", input);
    }
}
