//! The served types of one definition.

use std::sync::Arc;

use fl_builtin::{StorageKey, Strategy};
use serde_json::Value;

use super::strategy::CustomResourceStrategy;
use crate::resource_type::{ResourceType, Subresource};

fn strings(value: Option<&Value>) -> Vec<String> {
    value
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

fn verbs(list: &[&str]) -> Vec<String> {
    list.iter().map(|v| (*v).to_owned()).collect()
}

/// One resource type per served version, with the accepted names.
pub(crate) fn types(definition: &Value) -> Vec<ResourceType> {
    let spec = &definition["spec"];
    let names =
        definition.pointer("/status/acceptedNames").filter(|n| n["plural"] != "").unwrap_or(&spec["names"]);
    let text =
        |value: &Value, field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (group, plural, kind) = (text(spec, "group"), text(names, "plural"), text(names, "kind"));
    let versions = spec.get("versions").and_then(Value::as_array).cloned().unwrap_or_default();
    let flag = |v: &Value, field: &str| v.get(field).and_then(Value::as_bool).unwrap_or(false);
    let storage = versions.iter().find(|v| flag(v, "storage")).map(|v| text(v, "name")).unwrap_or_default();
    let conversion = super::convert::Webhook::read(definition).map(Arc::new);
    let strategies: Vec<(String, Arc<CustomResourceStrategy>)> = versions
        .iter()
        .map(|v| {
            (text(v, "name"), Arc::new(CustomResourceStrategy::new(definition, v, &group, &kind, &storage)))
        })
        .collect();
    versions
        .iter()
        .filter(|v| flag(v, "served"))
        .map(|v| {
            let version = text(v, "name");
            let has = |name: &str| v.pointer(&format!("/subresources/{name}")).is_some_and(|s| !s.is_null());
            let mut subresources = Vec::new();
            for (name, group, sub_version, sub_kind) in
                [("status", "", "", kind.as_str()), ("scale", "autoscaling", "v1", "Scale")]
            {
                if has(name) {
                    subresources.push(Subresource {
                        name: name.to_owned(),
                        group: group.to_owned(),
                        version: sub_version.to_owned(),
                        kind: sub_kind.to_owned(),
                        verbs: verbs(&["get", "patch", "update"]),
                    });
                }
            }
            let strategy = strategies.iter().find(|(n, _)| *n == version).map(|(_, b)| b.clone());
            let strategy: Arc<dyn Strategy> = match strategy {
                Some(found) => found,
                None => Arc::new(fl_builtin::DefaultStrategy),
            };
            ResourceType {
                group: group.clone(),
                version,
                kind: kind.clone(),
                list_kind: Some(text(names, "listKind"))
                    .filter(|k| !k.is_empty())
                    .unwrap_or_else(|| format!("{kind}List")),
                plural: plural.clone(),
                singular: Some(text(names, "singular"))
                    .filter(|s| !s.is_empty())
                    .unwrap_or_else(|| kind.to_lowercase()),
                short_names: strings(names.get("shortNames")),
                categories: strings(names.get("categories")),
                namespaced: spec["scope"] == "Namespaced",
                verbs: verbs(&[
                    "delete",
                    "deletecollection",
                    "get",
                    "list",
                    "patch",
                    "create",
                    "update",
                    "watch",
                ]),
                subresources,
                storage: StorageKey {
                    prefix: format!("{group}/{plural}"),
                    api_version: format!("{group}/{storage}"),
                    kind: kind.clone(),
                },
                strategy,
                conversion: conversion.clone(),
            }
        })
        .collect()
}
