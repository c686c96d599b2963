//! Taking fields over from earlier field managers, so that what they set and Git does not is removed by the next apply.

use fl_ssa::Set;
use serde_json::{Value, json};

use crate::{Error, annotations, labels};

/// How a manager wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// With server-side apply.
    Apply,
    /// With any other write.
    Update,
}

impl Operation {
    fn as_str(self) -> &'static str {
        match self {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        }
    }
}

/// A manager whose fields are taken over: every one whose name begins so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldManager {
    /// The beginning of its name.
    pub prefix: String,
    /// How it wrote.
    pub operation: Operation,
}

impl FieldManager {
    /// Names a manager.
    #[must_use]
    pub fn new(prefix: &str, operation: Operation) -> Self {
        FieldManager { prefix: prefix.to_owned(), operation }
    }

    fn matches(&self, entry: &Value) -> bool {
        entry["operation"] == self.operation.as_str()
            && entry["subresource"].as_str().unwrap_or_default().is_empty()
            && entry["manager"].as_str().is_some_and(|m| m.starts_with(&self.prefix))
    }
}

/// The operations of a JSON patch that gives all fields of `managers` to `manager` as applied, and removes annotations and labels.
/// Empty when there is nothing to do.
///
/// # Errors
/// Managed fields that cannot be read.
pub fn take_over(
    live: &Value,
    managers: &[FieldManager],
    manager: &str,
    drop_annotations: &[&str],
    drop_labels: &[&str],
) -> Result<Vec<Value>, Error> {
    let mut patch = Vec::new();
    for key in drop_annotations {
        if annotations(live).any(|(k, _)| k == *key) {
            patch.push(json!({"op": "remove", "path": format!("/metadata/annotations/{}", escape(key))}));
        }
    }
    for key in drop_labels {
        if labels(live).any(|(k, _)| k == *key) {
            patch.push(json!({"op": "remove", "path": format!("/metadata/labels/{}", escape(key))}));
        }
    }
    if let Some(entries) = merged(live, managers, manager)? {
        patch.push(json!({"op": "replace", "path": "/metadata/managedFields", "value": entries}));
    }
    Ok(patch)
}

/// The operation that makes all managed fields speak of one version; none when they do.
#[must_use]
pub(crate) fn migrate(live: &Value, api_version: &str) -> Option<Value> {
    let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array)?;
    if entries.iter().all(|e| e["apiVersion"] == api_version) {
        return None;
    }
    let mut entries = entries.clone();
    for entry in &mut entries {
        entry["apiVersion"] = Value::from(api_version);
    }
    Some(json!({"op": "replace", "path": "/metadata/managedFields", "value": entries}))
}

fn merged(live: &Value, managers: &[FieldManager], manager: &str) -> Result<Option<Vec<Value>>, Error> {
    let Some(entries) = live.pointer("/metadata/managedFields").and_then(Value::as_array) else {
        return Ok(None);
    };
    let is_ours = |e: &Value| e["manager"] == manager && e["operation"] == "Apply";
    let own = entries.iter().rposition(is_ours);
    let mut ours = own.map(|at| entries[at].clone());
    let (mut rest, mut edited) = (Vec::with_capacity(entries.len()), false);
    for (at, entry) in entries.iter().enumerate() {
        if Some(at) == own {
            continue;
        }
        if !managers.iter().any(|m| m.matches(entry)) {
            rest.push(entry.clone());
            continue;
        }
        edited = true;
        match &mut ours {
            None => {
                let mut first = entry.clone();
                first["manager"] = Value::from(manager);
                first["operation"] = Value::from("Apply");
                ours = Some(first);
            }
            Some(ours) => ours["fieldsV1"] = union(&ours["fieldsV1"], &entry["fieldsV1"])?,
        }
    }
    if !edited {
        return Ok(None);
    }
    rest.extend(ours);
    Ok(Some(rest))
}

fn union(a: &Value, b: &Value) -> Result<Value, Error> {
    if a.is_null() {
        return Ok(b.clone());
    }
    if b.is_null() {
        return Ok(a.clone());
    }
    let read =
        |fields: &Value| Set::from_fields(fields).map_err(|error| Error::ManagedFields(error.to_string()));
    Ok(read(a)?.union(&read(b)?).to_fields())
}

fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(entries: Value) -> Value {
        json!({"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}, "managedFields": entries}})
    }

    fn entry(manager: &str, operation: &str, field: &str) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {format!("f:{field}"): {}}}})
    }

    fn kubectl() -> Vec<FieldManager> {
        vec![
            FieldManager::new("kubectl", Operation::Update),
            FieldManager::new("before-first-apply", Operation::Update),
        ]
    }

    #[test]
    fn fields_move_into_our_entry() {
        let object = live(json!([
            entry("kubectl-edit", "Update", "a"),
            entry("us", "Apply", "b"),
            entry("operator", "Update", "c"),
            {"manager": "kubectl", "operation": "Update", "subresource": "status", "fieldsV1": {}},
        ]));
        let patch =
            take_over(&object, &kubectl(), "us", &["kubectl.kubernetes.io/last-applied-configuration"], &[])
                .expect("readable");
        assert_eq!(
            patch[0]["path"],
            "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration"
        );
        let entries = patch[1]["value"].as_array().expect("entries");
        let managers: Vec<&str> = entries.iter().filter_map(|e| e["manager"].as_str()).collect();
        assert_eq!(managers, ["operator", "kubectl", "us"]);
        assert_eq!(entries[2]["fieldsV1"], json!({"f:data": {"f:a": {}, "f:b": {}}}));
    }

    #[test]
    fn the_first_match_becomes_ours() {
        let object = live(json!([entry("kubectl-client-side-apply", "Update", "a")]));
        let patch = take_over(&object, &kubectl(), "us", &[], &[]).expect("readable");
        assert_eq!(patch[0]["value"][0]["manager"], "us");
        assert_eq!(patch[0]["value"][0]["operation"], "Apply");
    }

    #[test]
    fn nothing_to_do() {
        let object = live(json!([entry("us", "Apply", "b"), entry("operator", "Apply", "c")]));
        assert!(take_over(&object, &kubectl(), "us", &[], &[]).expect("readable").is_empty());
        assert!(migrate(&object, "v1").is_none());
        assert!(migrate(&object, "v2").is_some());
    }
}
