//! Who manages which field: the glue to the merge engine.

use std::sync::Arc;

use fl_schema::Schema;
use fl_ssa::{ApplyError, Request, Set, Versions};
use serde_json::{Value, json};

use super::options::WriteOptions;
use crate::registry::Registry;
use crate::resource::ResourceType;
use crate::status::{ApiError, Outcome};

/// The other versions of a resource.
struct Others<'a> {
    registry: &'a Registry,
    rt: &'a ResourceType,
}

impl Versions for Others<'_> {
    fn convert(&self, object: &Value, api_version: &str) -> Option<(Value, Arc<Schema>)> {
        let other = self
            .registry
            .iter()
            .find(|t| t.storage.prefix == self.rt.storage.prefix && t.api_version() == api_version)?;
        let schema = other.behaviour.merge_schema()?;
        Some((other.behaviour.read_from_storage(self.rt.behaviour.to_storage(object.clone())), schema))
    }
}

/// Fields a write through an endpoint does not own, because the endpoint resets them.
fn reset_fields(rt: &ResourceType, subresource: &str) -> Set {
    match subresource {
        "" if rt.has_status() => Set::of_fields(&[&["status"]]),
        "status" if rt.is_custom() => Set::of_fields(&[&["spec"]]),
        "status" => Set::of_fields(&[&["spec"], &["metadata", "labels"]]),
        _ => Set::new(),
    }
}

/// What a new object is compared with: Go's empty value of the type, whose mandatory fields nobody set.
pub(crate) fn zero(rt: &ResourceType) -> Value {
    if rt.is_custom() {
        return Value::Null;
    }
    let mut empty = json!({"kind": rt.kind, "apiVersion": rt.api_version()});
    rt.behaviour.normalize(&mut empty);
    empty
}

/// What one write says about itself.
pub(crate) struct Tracker<'a> {
    pub(crate) registry: &'a Registry,
    pub(crate) rt: &'a ResourceType,
    pub(crate) options: &'a WriteOptions,
    pub(crate) subresource: &'a str,
    pub(crate) now: &'a str,
}

impl Tracker<'_> {
    fn with<T>(&self, run: impl FnOnce(Request<'_>) -> T) -> Option<T> {
        let schema = self.rt.behaviour.merge_schema()?;
        let reset = reset_fields(self.rt, self.subresource);
        let others = Others { registry: self.registry, rt: self.rt };
        let api_version = self.rt.api_version();
        Some(run(Request {
            schema: &schema,
            api_version: &api_version,
            kind: &self.rt.kind,
            subresource: self.subresource,
            manager: &self.options.manager,
            now: self.now,
            reset: &reset,
            versions: &others,
        }))
    }

    /// Gives what differs from `old` (`null` for a new object) to the caller.
    pub(crate) fn track(&self, old: &Value, object: &mut Value) {
        self.with(|request| fl_ssa::update(request, old, object));
    }

    /// Merges an applied configuration.
    pub(crate) fn apply(&self, old: Option<&Value>, config: &Value) -> Outcome<Value> {
        let nothing = Value::Null;
        self.with(|request| fl_ssa::apply(request, old.unwrap_or(&nothing), config, self.options.force))
            .unwrap_or_else(|| Err(ApplyError::Failed("this type cannot be applied".to_owned())))
            .map_err(|e| refused(&e))
    }
}

pub(crate) fn refused(error: &ApplyError) -> ApiError {
    match error {
        ApplyError::BadRequest(message) => ApiError::bad_request(message.clone()),
        ApplyError::Conflict(conflicts) => {
            let causes: Vec<Value> = conflicts
                .conflicts()
                .iter()
                .map(|c| json!({"reason": "FieldManagerConflict", "message": format!("conflict with {}", c.manager), "field": c.field}))
                .collect();
            ApiError::new(409, "Conflict", conflicts.to_string()).with_details(json!({"causes": causes}))
        }
        other => ApiError::new(500, "", other.to_string()),
    }
}

/// Whether nothing but the times in managedFields differs.
pub(crate) fn same(object: &mut Value, old: &Value) -> bool {
    fl_ssa::ignore_time_only_changes(object, old);
    object == old
}
