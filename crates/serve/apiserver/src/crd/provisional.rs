//! Provisional kinds: custom resources that are served without a CustomResourceDefinition.
//!
//! `fluorite up` uses them to apply repositories whose CRDs come from elsewhere. They accept any content.
//! They are stored apart from the definitions, so that the real CRD can be created; once it is established,
//! it takes over the objects.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{group_and_plural, types};
use crate::object;
use crate::server::{ApiServer, Inner, rfc3339};
use crate::store::{Change, Precondition, StoreError};

const TABLE: &str = "fluorite.dev/provisionalkinds";

/// A kind that is served without a definition.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProvisionalKind {
    /// The API group; never the core group.
    pub group: String,
    /// The version to serve.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// Whether its objects are namespaced.
    pub namespaced: bool,
}

impl ProvisionalKind {
    /// The plural, guessed as Kubernetes' client libraries do.
    #[must_use]
    pub fn plural(&self) -> String {
        let name = self.kind.to_lowercase();
        if name.ends_with('s') {
            format!("{name}es")
        } else if let Some(stem) = name.strip_suffix('y') {
            format!("{stem}ies")
        } else {
            format!("{name}s")
        }
    }
}

impl ApiServer {
    /// Serves a kind until a CustomResourceDefinition for it is established. Returns whether the kind was
    /// added: false if it has a definition or is served already.
    ///
    /// # Errors
    /// If the kind cannot be stored.
    pub async fn serve_provisionally(&self, kind: &ProvisionalKind) -> Result<bool, StoreError> {
        let inner = &self.inner;
        let is_defined = {
            let registry = inner.registry();
            let names = |plural: &str, other: &str| plural == kind.plural() || other == kind.kind;
            let known = find(inner, &kind.group, &kind.kind).is_some();
            !known && registry.iter().any(|t| t.group == kind.group && names(&t.plural, &t.kind))
        };
        if is_defined || kind.group.is_empty() {
            return Ok(false);
        }
        let key = object::key("", &format!("{}.{}", kind.plural(), kind.group));
        loop {
            let (expect, mut definition) = match inner.store.latest(TABLE, &key) {
                Some(entry) => (Precondition::Revision(entry.revision), entry.value()),
                None => (Precondition::Absent, definition(kind, &rfc3339(inner.now()))),
            };
            let versions = definition["spec"]["versions"].as_array().cloned().unwrap_or_default();
            if expect != Precondition::Absent {
                if versions.iter().any(|v| v["name"] == kind.version.as_str()) {
                    return Ok(false);
                }
                definition["spec"]["versions"] =
                    versions.into_iter().chain([version(&kind.version, false)]).collect();
            }
            match inner.store.commit(TABLE, &key, expect, Change::Put(definition.clone())).await {
                Ok(_) => {
                    serve(inner, &definition);
                    return Ok(true);
                }
                Err(StoreError::Conflict) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn version(name: &str, storage: bool) -> Value {
    json!({
        "name": name, "served": true, "storage": storage, "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
    })
}

fn definition(kind: &ProvisionalKind, now: &str) -> Value {
    let plural = kind.plural();
    let names = json!({
        "plural": plural, "singular": kind.kind.to_lowercase(), "kind": kind.kind,
        "listKind": format!("{}List", kind.kind),
    });
    let name = format!("{plural}.{}", kind.group);
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": name, "creationTimestamp": now},
        "spec": {
            "group": kind.group, "names": names, "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
            "conversion": {"strategy": "None"}, "versions": [version(&kind.version, true)],
        },
        "status": {"acceptedNames": names},
    })
}

fn serve(inner: &Arc<Inner>, definition: &Value) {
    let (group, plural) = group_and_plural(definition);
    let types = types(definition);
    if inner.registry().iter().all(|t| !(t.group == group && t.plural == plural)) {
        inner.store.begin_history(&format!("{group}/{plural}"));
    }
    inner.change_registry(|registry| {
        registry.serve_custom(&group, &plural, types);
    });
}

fn find(inner: &Inner, group: &str, kind: &str) -> Option<(String, Value)> {
    let all = inner.store.list(TABLE, "", None, 0).1;
    all.into_iter().map(|(key, entry)| (key.to_string(), entry.value())).find(|(_, definition)| {
        definition["spec"]["group"] == group && definition["spec"]["names"]["kind"] == kind
    })
}

/// Serves the stored provisional kinds. If the definition of one is established, the previous process did not
/// complete the handover: it is resumed.
pub(super) fn load(inner: &Arc<Inner>) {
    let established = inner.store.list(super::TABLE, "", None, 0).1.into_iter().map(|(_, e)| e.value());
    let established: Vec<Value> = established.filter(super::establish::is_established).collect();
    for (_, entry) in inner.store.list(TABLE, "", None, 0).1 {
        let provisional = entry.value();
        let kind = |d: &Value| (d["spec"]["group"].clone(), d["spec"]["names"]["kind"].clone());
        match established.iter().find(|d| kind(d) == kind(&provisional)) {
            None => serve(inner, &provisional),
            Some(definition) => {
                let (inner, definition) = (inner.clone(), definition.clone());
                tokio::spawn(async move { hand_over(&inner, &definition).await });
            }
        }
    }
}

/// Hands the objects of a provisional kind over to its definition, before the definition is served. An
/// interrupted handover is resumed at the next start, because the entry of the kind is deleted last.
pub(super) async fn hand_over(inner: &Arc<Inner>, definition: &Value) {
    let (group, plural) = group_and_plural(definition);
    let kind = definition["spec"]["names"]["kind"].as_str().unwrap_or_default();
    let Some((key, provisional)) = find(inner, &group, kind) else { return };
    let (_, old_plural) = group_and_plural(&provisional);
    let (from, to) = (format!("{group}/{old_plural}"), format!("{group}/{plural}"));
    if from != to {
        inner.store.begin_history(&to);
    }
    for (old_key, _) in inner.store.list(&from, "", None, 0).1 {
        move_object(inner, (&from, &old_key), &to, definition).await;
    }
    if from != to {
        inner.change_registry(|registry| registry.remove_custom(&group, &old_plural));
    }
    if let Some(entry) = inner.store.latest(TABLE, &key) {
        let gone = Change::Delete(entry.value());
        // This is the only writer of the entry; a failed store reports its error to the next writer.
        let _ = inner.store.commit(TABLE, &key, Precondition::Revision(entry.revision), gone).await;
    }
}

async fn move_object(inner: &Arc<Inner>, (from, key): (&str, &str), to: &str, definition: &Value) {
    loop {
        let Some(entry) = inner.store.latest(from, key) else { return };
        let old = entry.value();
        let new = converted(&old, definition);
        let new_key = object::key(object::namespace(&new), object::name(&new));
        let is_same_place = from == to && new_key == key;
        if is_same_place && new == old {
            return;
        }
        let expect =
            if is_same_place { Precondition::Revision(entry.revision) } else { Precondition::Absent };
        match inner.store.commit(to, &new_key, expect, Change::Put(new)).await {
            Ok(_) if is_same_place => return,
            // A copy made by an interrupted handover, or an older object of the same name.
            Ok(_) | Err(StoreError::Conflict) if !is_same_place => {
                let gone = Change::Delete(old);
                match inner.store.commit(from, key, Precondition::Revision(entry.revision), gone).await {
                    Err(StoreError::Conflict) => {}
                    _ => return,
                }
            }
            Err(StoreError::Conflict) => {}
            _ => return,
        }
    }
}

/// An object in the storage version and the scope of a definition.
fn converted(object: &Value, definition: &Value) -> Value {
    let mut new = object.clone();
    let spec = &definition["spec"];
    let group = spec["group"].as_str().unwrap_or_default();
    let versions = || spec["versions"].as_array().into_iter().flatten();
    let storage =
        versions().find(|v| v["storage"] == true).and_then(|v| v["name"].as_str()).unwrap_or_default();
    let storage = format!("{group}/{storage}");
    new["apiVersion"] = storage.as_str().into();
    // The server converts the field sets of managers between versions that the definition has.
    let is_known = |api_version: &str| {
        versions().any(|v| v["name"].as_str().is_some_and(|name| api_version == format!("{group}/{name}")))
    };
    let managers = new.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut);
    for manager in managers.into_iter().flatten() {
        if !manager["apiVersion"].as_str().is_some_and(is_known) {
            manager["apiVersion"] = storage.as_str().into();
        }
    }
    match spec["scope"].as_str() {
        Some("Cluster") => {
            object::remove_meta(&mut new, "namespace");
        }
        _ if object::namespace(&new).is_empty() => object::set_meta(&mut new, "namespace", "default"),
        _ => {}
    }
    new
}
