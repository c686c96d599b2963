//! CustomResourceDefinitions: from a definition to served types, and the conditions that tell about it.

mod columns;
pub(crate) mod convert;
mod establish;
mod jsonpath;
mod provisional;
mod rules;
mod strategy;
mod types;

pub(crate) use establish::{changed, mark_deleted, removed};
pub use provisional::ProvisionalKind;
pub(crate) use types::types;

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use fl_schema::FieldError;
use serde_json::{Value, json};

use crate::object;
use crate::server::Inner;

pub(crate) const TABLE: &str = "apiextensions.k8s.io/customresourcedefinitions";
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// What is going on with definitions.
#[derive(Debug, Default)]
pub(crate) struct Custom {
    /// Definitions whose instances are being deleted right now.
    pub(crate) cleaning: Mutex<HashSet<String>>,
}

/// Serves the definitions that are in the store, and goes on with those that the last process did not get through with.
pub(crate) fn load(inner: &Arc<Inner>) {
    let definitions = inner.store.list(TABLE, "", None, 0).1;
    let mut unfinished = Vec::new();
    inner.change_registry(|registry| {
        for (_, entry) in definitions {
            let definition = entry.value();
            let established = establish::is_established(&definition);
            let (group, plural) = group_and_plural(&definition);
            // A definition that an older server accepted although a built-in kind has its names is decided anew.
            let served = established && registry.serve_custom(&group, &plural, types(&definition));
            if !served || object::is_deleting(&definition) {
                unfinished.push(definition);
            }
        }
    });
    provisional::load(inner);
    for definition in unfinished {
        let inner = inner.clone();
        tokio::spawn(async move { establish::changed(&inner, &definition).await });
    }
}

/// Fills in what the server decides about a definition before it is written.
pub(crate) fn prepare(_inner: &Arc<Inner>, definition: &mut Value, old: Option<&Value>, _now: &str) {
    let storage = definition
        .pointer("/spec/versions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .find(|v| v.get("storage").and_then(Value::as_bool) == Some(true))
        .and_then(|v| v.get("name"))
        .cloned();
    let Some(map) = definition.as_object_mut() else { return };
    if old.is_none() {
        map.insert(
            "status".to_owned(),
            json!({"acceptedNames": {"kind": "", "plural": ""}, "conditions": null, "storedVersions": storage.iter().collect::<Vec<_>>()}),
        );
        return;
    }
    // A version that ever was the storage version stays listed until someone removes it from the status.
    if let (Some(storage), Some(stored)) = (
        storage,
        map.get_mut("status").and_then(|s| s.get_mut("storedVersions")).and_then(Value::as_array_mut),
    ) && !stored.contains(&storage)
    {
        stored.push(storage);
    }
}

/// Rules on a definition as a whole; a write through `status` changes none of what they look at.
pub(crate) fn validate(definition: &Value, old: Option<&Value>) -> Vec<FieldError> {
    fl_schema::validate_definition(definition, old, &rules::Cel)
}

/// `plural.group` of a definition, and its group and plural.
pub(crate) fn group_and_plural(definition: &Value) -> (String, String) {
    let text =
        |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    (text("/spec/group"), text("/spec/names/plural"))
}

/// Whether a definition is on its way out.
pub(crate) fn is_terminating(definition: &Value) -> bool {
    let conditions = definition.pointer("/status/conditions").and_then(Value::as_array);
    // One whose objects are gone and that something else holds takes new ones again.
    conditions.into_iter().flatten().any(|c| c["type"] == "Terminating" && c["status"] == "True")
}
