//! CustomResourceDefinitions: the served types of a definition, its conditions, and the deletion of its
//! instances.

pub(crate) mod convert;
mod establish;
mod jsonpath;
mod printer_columns;
mod provisional;
mod strategy;
mod types;
mod validation_rules;

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

/// State of the controllers of definitions.
#[derive(Debug, Default)]
pub(crate) struct Custom {
    /// Definitions whose instances are being deleted.
    pub(crate) cleaning: Mutex<HashSet<String>>,
}

/// Serves the stored definitions, and resumes the work on those that the previous process did not complete.
pub(crate) fn load(inner: &Arc<Inner>) {
    let definitions = inner.store.list(TABLE, "", None, 0).1;
    let mut unfinished = Vec::new();
    inner.change_registry(|registry| {
        for (_, entry) in definitions {
            let definition = entry.value();
            let established = establish::is_established(&definition);
            let (group, plural) = group_and_plural(&definition);
            // Names that an older version accepted although a built-in kind has them are checked again.
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

/// Sets the fields of a definition that the server owns, before it is stored.
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
    // A version that was the storage version stays listed until a client removes it from the status.
    if let (Some(storage), Some(stored)) = (
        storage,
        map.get_mut("status").and_then(|s| s.get_mut("storedVersions")).and_then(Value::as_array_mut),
    ) && !stored.contains(&storage)
    {
        stored.push(storage);
    }
}

/// Validates a definition. A write through `status` does not need it: it changes none of the validated
/// fields.
pub(crate) fn validate(definition: &Value, old: Option<&Value>) -> Vec<FieldError> {
    fl_schema::validate_crd(definition, old, &validation_rules::Cel)
}

/// Group and plural of a definition.
pub(crate) fn group_and_plural(definition: &Value) -> (String, String) {
    let text =
        |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    (text("/spec/group"), text("/spec/names/plural"))
}

/// Whether the instances of a definition are being deleted.
pub(crate) fn is_terminating(definition: &Value) -> bool {
    let conditions = definition.pointer("/status/conditions").and_then(Value::as_array);
    // A definition without instances that other finalizers hold back accepts new ones again.
    conditions.into_iter().flatten().any(|c| c["type"] == "Terminating" && c["status"] == "True")
}
