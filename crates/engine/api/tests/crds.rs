//! The generated CRDs follow the rules of the API server and of this project.

use std::collections::BTreeSet;

use fl_api::crd::Definition;
use fl_api::{CrdSet, definitions};
use serde_json::Value;

fn all() -> Vec<Definition> {
    CrdSet::ALL.into_iter().flat_map(definitions).collect()
}

/// Checks the rules of structural schemas, and that nothing of the generator is left.
fn check_node(node: &Value, path: &str, problems: &mut Vec<String>) {
    let Some(object) = node.as_object() else {
        problems.push(format!("{path}: not an object but {node}"));
        return;
    };
    for leftover in ["$ref", "$schema", "title", "definitions", "$defs", "const", "x-required", "examples"] {
        if object.contains_key(leftover) {
            problems.push(format!("{path}: has {leftover}"));
        }
    }
    let free = object.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
    let either = object.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true));
    match object.get("type").map(Value::as_str) {
        Some(Some("object" | "array" | "string" | "integer" | "number" | "boolean")) => {}
        None if free || either => {}
        other => problems.push(format!("{path}: type is {other:?}")),
    }
    if object.contains_key("properties") && object.contains_key("additionalProperties") {
        problems.push(format!("{path}: properties beside additionalProperties"));
    }
    if object.get("default").is_some_and(Value::is_null) {
        problems.push(format!("{path}: default is null"));
    }
    if object.get("type").is_some_and(|t| t == "array") && !object.contains_key("items") {
        problems.push(format!("{path}: a list without items"));
    }
    if object.get("x-kubernetes-list-type").is_some_and(|t| t == "map") {
        let keys = object.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
        let required = node["items"]["required"].as_array();
        for key in keys.into_iter().flatten() {
            if !required.is_some_and(|r| r.contains(key)) {
                problems.push(format!("{path}: list key {key} is not required"));
            }
        }
        if keys.is_none() {
            problems.push(format!("{path}: list of type map without keys"));
        }
    }
    let properties = object.get("properties").and_then(Value::as_object);
    for required in object.get("required").and_then(Value::as_array).into_iter().flatten() {
        if !properties.is_some_and(|p| required.as_str().is_some_and(|r| p.contains_key(r))) {
            problems.push(format!("{path}: requires {required}, which is not declared"));
        }
    }
    for (name, child) in properties.into_iter().flatten() {
        let described =
            child["description"].is_string() || ["apiVersion", "kind", "metadata"].contains(&name.as_str());
        if !described && path.starts_with("spec.") {
            problems.push(format!("{path}.{name}: no description"));
        }
        check_node(child, &format!("{path}.{name}"), problems);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(child) = object.get(key) {
            check_node(child, &format!("{path}[]"), problems);
        }
    }
}

#[test]
fn every_schema_is_structural() {
    let mut problems = Vec::new();
    for definition in all() {
        let crd = definition.to_json();
        for version in crd["spec"]["versions"].as_array().expect("versions") {
            let root = &version["schema"]["openAPIV3Schema"];
            check_node(root, &format!("{} {}", definition.name(), version["name"]), &mut problems);
        }
    }
    assert_eq!(problems, Vec::<String>::new());
}

#[test]
fn names_are_unique_and_one_version_is_stored() {
    let mut names = BTreeSet::new();
    for definition in all() {
        assert!(names.insert(definition.name()), "{} twice", definition.name());
        let crd = definition.to_json();
        let versions = crd["spec"]["versions"].as_array().expect("versions");
        assert_eq!(versions.iter().filter(|v| v["storage"] == true).count(), 1, "{}", definition.name());
        for version in versions {
            let old = version["storage"] == false;
            assert_eq!(version["deprecated"] == true, old, "{} {}", definition.name(), version["name"]);
            assert_eq!(version["deprecationWarning"].is_string(), old);
        }
    }
    assert_eq!(names.len(), 36);
}

#[test]
fn released_versions_are_served() {
    let table = [
        ("gitrepositories.source.toolkit.fluxcd.io", vec!["v1", "v1beta2", "v1beta1"]),
        ("helmrepositories.source.toolkit.fluxcd.io", vec!["v1", "v1beta2", "v1beta1"]),
        ("helmcharts.source.toolkit.fluxcd.io", vec!["v1", "v1beta2", "v1beta1"]),
        ("buckets.source.toolkit.fluxcd.io", vec!["v1", "v1beta2", "v1beta1"]),
        // OCIRepository v1beta1 never existed.
        ("ocirepositories.source.toolkit.fluxcd.io", vec!["v1", "v1beta2"]),
        ("externalartifacts.source.toolkit.fluxcd.io", vec!["v1"]),
        ("kustomizations.kustomize.toolkit.fluxcd.io", vec!["v1", "v1beta2", "v1beta1"]),
        ("helmreleases.helm.toolkit.fluxcd.io", vec!["v2", "v2beta2", "v2beta1"]),
        ("alerts.notification.toolkit.fluxcd.io", vec!["v1beta3", "v1beta2", "v1beta1"]),
        ("providers.notification.toolkit.fluxcd.io", vec!["v1beta3", "v1beta2", "v1beta1"]),
        ("receivers.notification.toolkit.fluxcd.io", vec!["v1", "v1beta2", "v1beta1"]),
        ("imagerepositories.image.toolkit.fluxcd.io", vec!["v1", "v1beta2", "v1beta1"]),
        ("imagepolicies.image.toolkit.fluxcd.io", vec!["v1", "v1beta2", "v1beta1"]),
        ("imageupdateautomations.image.toolkit.fluxcd.io", vec!["v1", "v1beta2", "v1beta1"]),
        ("fluxinstances.fluxcd.controlplane.io", vec!["v1", "v1alpha1"]),
    ];
    let all = all();
    for (name, versions) in table {
        let definition = all.iter().find(|d| d.name() == name).expect(name);
        assert_eq!(definition.versions(), versions, "{name}");
    }
}

#[test]
fn fields_of_older_versions_are_kept_in_all_versions() {
    let table = [
        ("GitRepository", "spec.gitImplementation"),
        ("GitRepository", "spec.accessFrom"),
        ("HelmChart", "spec.valuesFile"),
        ("Bucket", "spec.accessFrom"),
        ("Kustomization", "spec.validation"),
        ("Kustomization", "spec.patchesStrategicMerge"),
        ("Kustomization", "spec.patchesJson6902"),
        ("HelmRelease", "spec.chart.spec.valuesFile"),
        ("HelmRelease", "status.lastAppliedRevision"),
        ("ImagePolicy", "status.latestImage"),
        ("FluxInstance", "spec.shards"),
        ("FluxInstance", "spec.distribution.pullSecret"),
        ("FluxInstance", "status.latestVersion"),
    ];
    let all = all();
    for (kind, path) in table {
        let crd = all.iter().find(|d| d.kind() == kind).expect(kind).to_json();
        for version in crd["spec"]["versions"].as_array().expect("versions") {
            let root = &version["schema"]["openAPIV3Schema"];
            let found = path.split('.').try_fold(root, |node, part| node["properties"].get(part));
            assert!(found.is_some(), "{kind} {} has no {path}", version["name"]);
        }
    }
}
