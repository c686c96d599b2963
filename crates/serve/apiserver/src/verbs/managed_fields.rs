//! Managed fields: connects requests to the merge engine (`fl_ssa`).

use std::sync::{Arc, Mutex, PoisonError};

use fl_schema::Schema;
use fl_ssa::{ApplyError, Request, Set, Versions};
use serde_json::{Value, json};

use super::options::WriteOptions;
use crate::crd::convert;
use crate::registry::Registry;
use crate::resource_type::ResourceType;
use crate::server::Inner;
use crate::status::{ApiError, ApiResult};

/// Conversions that the merge engine needs. It needs them in the middle of a merge, where it cannot wait for
/// a webhook: missing conversions are recorded, fetched, and the merge is repeated.
#[derive(Debug, Default)]
pub(crate) struct Conversions(Mutex<ConversionState>);

#[derive(Debug, Default)]
struct ConversionState {
    /// Object, version, and the object in that version.
    converted_objects: Vec<(Value, String, Value)>,
    requested: Vec<(Value, String)>,
}

impl Conversions {
    fn state(&self) -> std::sync::MutexGuard<'_, ConversionState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, object: &Value, version: &str) -> Option<Value> {
        let mut state = self.state();
        let converted_objects = state.converted_objects.iter().find(|(o, v, _)| v == version && o == object);
        if let Some((_, _, converted)) = converted_objects {
            return Some(converted.clone());
        }
        state.requested.push((object.clone(), version.to_owned()));
        None
    }

    /// Fetches the recorded conversions; true if there were any.
    pub(crate) async fn fetch(&self, inner: &Inner, rt: &ResourceType) -> ApiResult<bool> {
        let requested = std::mem::take(&mut self.state().requested);
        let any = !requested.is_empty();
        for (object, version) in requested {
            let converted = convert::to_version(inner, rt, object.clone(), &version).await?;
            self.state().converted_objects.push((object, version, converted));
        }
        Ok(any)
    }
}

/// The other versions of a resource.
struct OtherVersions<'a> {
    registry: &'a Registry,
    rt: &'a ResourceType,
    conversions: &'a Conversions,
}

impl OtherVersions<'_> {
    /// The resource in a version. Fields written through another group (events) are not found.
    fn served(&self, api_version: &str) -> Option<&Arc<ResourceType>> {
        let is_unchanged =
            |t: &&Arc<ResourceType>| t.storage.prefix == self.rt.storage.prefix && t.group == self.rt.group;
        self.registry.iter().filter(is_unchanged).find(|t| t.api_version() == api_version)
    }
}

impl Versions for OtherVersions<'_> {
    fn convert(&self, object: &Value, api_version: &str) -> Option<(Value, Arc<Schema>)> {
        let other = self.served(api_version)?;
        let schema = other.strategy.merge_schema()?;
        if self.rt.conversion.is_some() {
            // An empty object is the same in every version.
            let empty = object.get("metadata").is_none();
            let converted =
                if empty { object.clone() } else { self.conversions.find(object, api_version)? };
            return Some((converted, schema));
        }
        Some((other.strategy.read_from_storage(self.rt.strategy.to_storage(object.clone())), schema))
    }

    /// Without a webhook, versions of a custom resource differ in their schemas only. A field that the other
    /// version does not declare makes the conversion fail.
    fn conversion_error(&self, object: &Value, api_version: &str) -> Option<String> {
        if !self.rt.is_custom() || self.rt.conversion.is_some() {
            return None;
        }
        if !self.rt.strategy.has_version(api_version) {
            return Some(format!("request to convert CR to an invalid group/version: {api_version}"));
        }
        let other = self.served(api_version)?;
        let mut object = object.clone();
        crate::object::remove_meta(&mut object, "managedFields");
        fl_ssa::mismatch(&object, other.strategy.merge_schema()?.as_ref())
    }
}

/// Fields that a write through an endpoint does not own because the endpoint resets them.
fn reset_fields(rt: &ResourceType, subresource: &str) -> Set {
    match subresource {
        "" if rt.has_status() && rt.plural != "servicecidrs" => Set::of_fields(&[&["status"]]),
        "status" => match rt.plural.as_str() {
            _ if rt.is_custom() => Set::of_fields(&[&["spec"]]),
            "deployments" => Set::of_fields(&[&["spec"], &["metadata", "labels"]]),
            "pods" => Set::of_fields(&[
                &["spec"],
                &["metadata", "deletionTimestamp"],
                &["metadata", "ownerReferences"],
            ]),
            "apiservices"
            | "customresourcedefinitions"
            | "flowschemas"
            | "prioritylevelconfigurations"
            | "validatingadmissionpolicies"
            | "volumeattachments" => Set::of_fields(&[&["spec"], &["metadata"]]),
            _ => Set::of_fields(&[&["spec"]]),
        },
        _ => Set::new(),
    }
}

/// The object that a new object is compared with: Go's empty value of the type, whose mandatory fields belong
/// to no manager.
pub(crate) fn empty_object(rt: &ResourceType) -> Value {
    if rt.is_custom() {
        return Value::Null;
    }
    let mut empty = json!({"kind": rt.kind, "apiVersion": rt.api_version()});
    rt.strategy.normalize(&mut empty);
    empty
}

/// One write, as the merge engine needs to know it.
pub(crate) struct Tracker<'a> {
    pub(crate) registry: &'a Registry,
    pub(crate) rt: &'a ResourceType,
    pub(crate) options: &'a WriteOptions,
    pub(crate) subresource: &'a str,
    pub(crate) now: &'a str,
    pub(crate) conversions: &'a Conversions,
}

impl Tracker<'_> {
    fn with<T>(&self, run: impl FnOnce(Request<'_>) -> T) -> Option<T> {
        let schema = self.rt.strategy.merge_schema()?;
        let reset = reset_fields(self.rt, self.subresource);
        let others = OtherVersions { registry: self.registry, rt: self.rt, conversions: self.conversions };
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

    /// Makes the caller the manager of the fields that differ from `old`, for types whose versions need no
    /// webhook.
    pub(crate) fn track_now(&self, old: &Value, object: &mut Value) {
        self.with(|request| fl_ssa::update(request, old, object));
    }

    /// Makes the caller the manager of the fields that differ from `old` (`null` for a new object).
    pub(crate) async fn track(&self, inner: &Inner, old: &Value, object: &mut Value) -> ApiResult<()> {
        if self.rt.conversion.is_none() {
            self.track_now(old, object);
            return Ok(());
        }
        loop {
            let mut tracked = object.clone();
            self.with(|request| fl_ssa::update(request, old, &mut tracked));
            if !self.conversions.fetch(inner, self.rt).await? {
                *object = tracked;
                return Ok(());
            }
        }
    }

    /// Merges an applied configuration.
    pub(crate) fn apply(&self, old: Option<&Value>, config: &Value) -> ApiResult<Value> {
        let nothing = Value::Null;
        self.with(|request| fl_ssa::apply(request, old.unwrap_or(&nothing), config, self.options.force))
            .unwrap_or_else(|| Err(ApplyError::Failed("this type cannot be applied".to_owned())))
            .map_err(|e| apply_error(&e))
    }
}

pub(crate) fn apply_error(error: &ApplyError) -> ApiError {
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

/// Whether the objects are equal except for times in `managedFields`.
pub(crate) fn is_unchanged(object: &mut Value, old: &Value) -> bool {
    fl_ssa::ignore_time_only_changes(object, old);
    object == old
}
