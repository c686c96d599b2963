//! Discovery: `/api`, `/apis` and below, plain and aggregated.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::negotiate::Accept;
use crate::registry::Registry;
use crate::resource_type::ResourceType;
use crate::response::{ApiResponse, respond, to_bytes};
use crate::status::{ApiError, ApiResult};

/// Kubernetes' order of versions: stable before beta before alpha, larger numbers first, all others last by
/// name.
pub(crate) fn version_rank(version: &str) -> (u8, i64, i64, String) {
    let parse = || -> Option<(u8, i64, i64)> {
        let rest = version.strip_prefix('v')?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let major: i64 = rest[..digits].parse().ok()?;
        let tail = &rest[digits..];
        let (stage, minor) = if tail.is_empty() {
            (0, 0)
        } else if let Some(n) = tail.strip_prefix("beta") {
            (1, n.parse().ok()?)
        } else {
            (2, tail.strip_prefix("alpha")?.parse().ok()?)
        };
        Some((stage, -major, -minor))
    };
    match parse() {
        Some((stage, major, minor)) => (stage, major, minor, String::new()),
        None => (3, 0, 0, version.to_owned()),
    }
}

/// One group with its versions, preferred first.
struct Group {
    name: String,
    versions: Vec<String>,
}

/// Built-in groups in their own order, then groups of CRDs by name.
fn all_groups(registry: &Registry) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut add = |group: &str, version: &str| match groups.iter_mut().find(|g| g.name == group) {
        Some(found) if found.versions.iter().any(|v| v == version) => {}
        Some(found) => found.versions.push(version.to_owned()),
        None => groups.push(Group { name: group.to_owned(), versions: vec![version.to_owned()] }),
    };
    for gv in fl_kubeschema::group_versions() {
        add(gv.group, gv.version);
    }
    let mut custom: Vec<(&str, &str)> =
        registry.iter().filter(|t| t.is_custom()).map(|t| (t.group.as_str(), t.version.as_str())).collect();
    custom.sort_by_key(|(group, version)| (group.to_string(), version_rank(version)));
    for (group, version) in custom {
        add(group, version);
    }
    groups
}

fn group_json(group: &Group) -> Value {
    let version = |v: &String| json!({"groupVersion": format!("{}/{v}", group.name), "version": v});
    json!({
        "name": group.name,
        "versions": group.versions.iter().map(version).collect::<Vec<_>>(),
        "preferredVersion": version(&group.versions[0]),
    })
}

pub(crate) fn groups(registry: &Registry, legacy: bool, accept: &Accept) -> ApiResult<ApiResponse> {
    if let Some((_, version, _)) = &accept.other {
        return Ok(aggregated(registry, legacy, version));
    }
    if legacy {
        return Ok(ApiResponse::document(json!({
            "kind": "APIVersions", "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}]
        })));
    }
    let groups: Vec<Value> =
        all_groups(registry).iter().filter(|g| !g.name.is_empty()).map(group_json).collect();
    Ok(ApiResponse::document(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})))
}

pub(crate) fn group(registry: &Registry, name: &str) -> ApiResult<ApiResponse> {
    let found = all_groups(registry).into_iter().find(|g| g.name == name && !name.is_empty());
    let Some(found) = found else { return Err(ApiError::page_not_found()) };
    let mut value = group_json(&found);
    value["kind"] = json!("APIGroup");
    value["apiVersion"] = json!("v1");
    Ok(ApiResponse::document(value))
}

fn custom_of<'a>(
    registry: &'a Registry,
    group: &'a str,
    version: &'a str,
) -> impl Iterator<Item = &'a Arc<ResourceType>> {
    registry.iter().filter(move |t| t.is_custom() && t.group == group && t.version == version)
}

pub(crate) fn resources(registry: &Registry, group: &str, version: &str) -> ApiResult<ApiResponse> {
    let builtin =
        fl_kubeschema::group_versions().iter().find(|gv| gv.group == group && gv.version == version);
    let custom: Vec<Value> = custom_of(registry, group, version).flat_map(|t| plain_entries(t)).collect();
    if let Some(gv) = builtin {
        let mut list = fl_kubeschema::plain_resources(gv);
        if let Some(all) = list.get_mut("resources").and_then(Value::as_array_mut) {
            all.extend(custom);
        }
        return Ok(ApiResponse::document(list));
    }
    if custom.is_empty() {
        let known = group.is_empty() || registry.has_group(group);
        return Err(if known { ApiError::no_such_resource() } else { ApiError::page_not_found() });
    }
    let api_version = format!("{group}/{version}");
    Ok(ApiResponse::document(
        json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": custom}),
    ))
}

fn with_names(entry: &mut Value, rt: &ResourceType) {
    if !rt.short_names.is_empty() {
        entry["shortNames"] = json!(rt.short_names);
    }
    if !rt.categories.is_empty() {
        entry["categories"] = json!(rt.categories);
    }
}

fn plain_entries(rt: &ResourceType) -> Vec<Value> {
    let mut entry = json!({
        "name": rt.plural, "singularName": rt.singular, "namespaced": rt.namespaced, "kind": rt.kind, "verbs": rt.verbs
    });
    with_names(&mut entry, rt);
    let mut out = vec![entry];
    for sub in &rt.subresources {
        let mut entry = json!({
            "name": format!("{}/{}", rt.plural, sub.name), "singularName": "", "namespaced": rt.namespaced,
            "kind": sub.kind, "verbs": sub.verbs
        });
        if !sub.group.is_empty() {
            entry["group"] = json!(sub.group);
            entry["version"] = json!(sub.version);
        }
        out.push(entry);
    }
    out
}

fn aggregated_entry(rt: &ResourceType) -> Value {
    let mut entry = json!({
        "resource": rt.plural,
        "responseKind": {"group": rt.group, "version": rt.version, "kind": rt.kind},
        "scope": if rt.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": rt.singular,
        "verbs": rt.verbs,
    });
    with_names(&mut entry, rt);
    if !rt.subresources.is_empty() {
        let subs: Vec<Value> = rt
            .subresources
            .iter()
            .map(|sub| {
                let (group, version) =
                    if sub.group.is_empty() { (&rt.group, &rt.version) } else { (&sub.group, &sub.version) };
                json!({
                    "subresource": sub.name, "verbs": sub.verbs,
                    "responseKind": {"group": group, "version": version, "kind": sub.kind}
                })
            })
            .collect();
        entry["subresources"] = json!(subs);
    }
    entry
}

fn aggregated(registry: &Registry, legacy: bool, version: &str) -> ApiResponse {
    let builtin = fl_kubeschema::group_versions();
    let mut items = Vec::new();
    for group in all_groups(registry).iter().filter(|g| g.name.is_empty() == legacy) {
        let versions: Vec<Value> = group
            .versions
            .iter()
            .map(|v| {
                let mut entry = match builtin.iter().find(|gv| gv.group == group.name && gv.version == v) {
                    Some(gv) => fl_kubeschema::aggregated_version(gv),
                    None => json!({"version": v, "resources": [], "freshness": "Current"}),
                };
                if let Some(all) = entry.get_mut("resources").and_then(Value::as_array_mut) {
                    all.extend(custom_of(registry, &group.name, v).map(|t| aggregated_entry(t)));
                }
                entry
            })
            .collect();
        let mut metadata = json!({});
        if !group.name.is_empty() {
            metadata["name"] = json!(group.name);
        }
        items.push(json!({"metadata": metadata, "versions": versions}));
    }
    let api_version = format!("apidiscovery.k8s.io/{version}");
    let list =
        json!({"kind": "APIGroupDiscoveryList", "apiVersion": api_version, "metadata": {}, "items": items});
    let content_type: &'static str = if version == "v2" {
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    } else {
        "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
    };
    let bytes = to_bytes(&list);
    let digest = ring::digest::digest(&ring::digest::SHA512, &bytes);
    let etag: String = digest.as_ref().iter().map(|b| format!("{b:02X}")).collect();
    let mut response = respond(200, content_type, bytes);
    response.headers_mut().insert(http::header::VARY, http::HeaderValue::from_static("Accept"));
    if let Ok(value) = http::HeaderValue::from_str(&format!("\"{etag}\"")) {
        response.headers_mut().insert(http::header::ETAG, value);
    }
    ApiResponse::Raw(response)
}

#[cfg(test)]
mod tests {
    use super::version_rank;

    #[test]
    fn versions_are_ordered_by_stability() {
        let mut versions = vec!["v1alpha1", "foo", "v1", "v2beta1", "v10", "v1beta2", "v2"];
        versions.sort_by_key(|v| version_rank(v));
        assert_eq!(versions, ["v10", "v2", "v1", "v2beta1", "v1beta2", "v1alpha1", "foo"]);
    }
}
