//! Discovery documents of the built-in groups, legacy and aggregated.

use serde_json::{Map, Value, json};

use crate::resources::{GroupVersion, Resource};

/// The `APIResourceList` of one group version.
#[must_use]
pub fn plain_resources(version: &GroupVersion) -> Value {
    let mut resources = Vec::new();
    for resource in &version.resources {
        let mut entry = json!({
            "name": resource.plural,
            "singularName": resource.singular,
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": resource.verbs,
        });
        names(&mut entry, resource);
        resources.push(entry);
        for sub in &resource.subresources {
            let mut entry = json!({
                "name": format!("{}/{}", resource.plural, sub.name),
                "singularName": "",
                "namespaced": resource.namespaced,
                "kind": sub.kind,
                "verbs": sub.verbs,
            });
            if !sub.version.is_empty() {
                if !sub.group.is_empty() {
                    entry["group"] = json!(sub.group);
                }
                entry["version"] = json!(sub.version);
            }
            resources.push(entry);
        }
    }
    let mut list = json!({
        "kind": "APIResourceList",
        "groupVersion": version.api_version(),
        "resources": resources,
    });
    if !version.group.is_empty() {
        // Upstream sets the apiVersion for all groups except the core group.
        list["apiVersion"] = json!("v1");
    }
    list
}

fn names(entry: &mut Value, resource: &Resource) {
    if !resource.short_names.is_empty() {
        entry["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        entry["categories"] = json!(resource.categories);
    }
}

/// One entry of `versions` in an aggregated `APIGroupDiscovery`.
#[must_use]
pub fn aggregated_version(version: &GroupVersion) -> Value {
    let resources: Vec<Value> = version.resources.iter().map(aggregated_resource).collect();
    json!({"version": version.version, "resources": resources, "freshness": "Current"})
}

fn aggregated_resource(resource: &Resource) -> Value {
    let mut entry = json!({
        "resource": resource.plural,
        "responseKind": {"group": "", "version": "", "kind": resource.kind},
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": resource.verbs,
    });
    names(&mut entry, resource);
    if !resource.subresources.is_empty() {
        let subresources: Vec<Value> = resource
            .subresources
            .iter()
            .map(|sub| {
                json!({
                    "subresource": sub.name,
                    "responseKind": {"group": sub.group, "version": sub.version, "kind": sub.kind},
                    "verbs": sub.verbs,
                })
            })
            .collect();
        entry["subresources"] = Value::Array(subresources);
    }
    entry
}

/// The `APIGroupDiscovery` of the versions of one group (the core group has no name).
#[must_use]
pub fn aggregated_group(versions: &[GroupVersion]) -> Value {
    let mut metadata = Map::new();
    if let Some(name) = versions.first().map(|v| v.group).filter(|name| !name.is_empty()) {
        metadata.insert("name".to_owned(), json!(name));
    }
    let versions: Vec<Value> = versions.iter().map(aggregated_version).collect();
    json!({"metadata": metadata, "versions": versions})
}
