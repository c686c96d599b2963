//! Who manages which field: the glue to the merge engine.

use std::sync::{Arc, Mutex, PoisonError};

use fl_schema::Schema;
use fl_ssa::{ApplyError, Request, Set, Versions};
use serde_json::{Value, json};

use super::options::WriteOptions;
use crate::crd::convert;
use crate::registry::Registry;
use crate::resource::ResourceType;
use crate::server::Inner;
use crate::status::{ApiError, Outcome};

/// Conversions that merges ask for. A merge asks in the middle of its work and cannot wait for a webhook: what is not
/// known yet is noted down, fetched, and the merge done again.
#[derive(Debug, Default)]
pub(crate) struct Conversions(Mutex<Noted>);

#[derive(Debug, Default)]
struct Noted {
    /// Object, version, and the object in that version.
    known: Vec<(Value, String, Value)>,
    wanted: Vec<(Value, String)>,
}

impl Conversions {
    fn noted(&self) -> std::sync::MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, object: &Value, version: &str) -> Option<Value> {
        let mut noted = self.noted();
        let known = noted.known.iter().find(|(o, v, _)| v == version && o == object);
        if let Some((_, _, converted)) = known {
            return Some(converted.clone());
        }
        noted.wanted.push((object.clone(), version.to_owned()));
        None
    }

    /// Fetches what was asked for since; true when that was something.
    pub(crate) async fn fetch(&self, inner: &Inner, rt: &ResourceType) -> Outcome<bool> {
        let wanted = std::mem::take(&mut self.noted().wanted);
        let any = !wanted.is_empty();
        for (object, version) in wanted {
            let converted = convert::to_version(inner, rt, object.clone(), &version).await?;
            self.noted().known.push((object, version, converted));
        }
        Ok(any)
    }
}

/// The other versions of a resource.
struct Others<'a> {
    registry: &'a Registry,
    rt: &'a ResourceType,
    conversions: &'a Conversions,
}

impl Others<'_> {
    /// The resource in a version. What was written through another group is not found again (events).
    fn served(&self, api_version: &str) -> Option<&Arc<ResourceType>> {
        let same =
            |t: &&Arc<ResourceType>| t.storage.prefix == self.rt.storage.prefix && t.group == self.rt.group;
        self.registry.iter().filter(same).find(|t| t.api_version() == api_version)
    }
}

impl Versions for Others<'_> {
    fn convert(&self, object: &Value, api_version: &str) -> Option<(Value, Arc<Schema>)> {
        let other = self.served(api_version)?;
        let schema = other.strategy.merge_schema()?;
        if self.rt.conversion.is_some() {
            // Nothing is nothing in every version.
            let empty = object.get("metadata").is_none();
            let converted =
                if empty { object.clone() } else { self.conversions.find(object, api_version)? };
            return Some((converted, schema));
        }
        Some((other.strategy.read_from_storage(self.rt.strategy.to_storage(object.clone())), schema))
    }

    /// Without a webhook, the versions of a custom resource differ in their name only: what another one does not declare
    /// is in its way.
    fn refusal(&self, object: &Value, api_version: &str) -> Option<String> {
        if !self.rt.is_custom() || self.rt.conversion.is_some() {
            return None;
        }
        if !self.rt.strategy.has_version(api_version) {
            return Some(format!("request to convert CR to an invalid group/version: {api_version}"));
        }
        let other = self.served(api_version)?;
        let mut object = object.clone();
        crate::object::remove_meta(&mut object, "managedFields");
        fl_ssa::misfit(&object, other.strategy.merge_schema()?.as_ref())
    }
}

/// Fields a write through an endpoint does not own, because the endpoint resets them.
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

/// What a new object is compared with: Go's empty value of the type, whose mandatory fields nobody set.
pub(crate) fn zero(rt: &ResourceType) -> Value {
    if rt.is_custom() {
        return Value::Null;
    }
    let mut empty = json!({"kind": rt.kind, "apiVersion": rt.api_version()});
    rt.strategy.normalize(&mut empty);
    empty
}

/// What one write says about itself.
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
        let others = Others { registry: self.registry, rt: self.rt, conversions: self.conversions };
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

    /// Gives what differs from `old` to the caller, for types whose versions need no webhook.
    pub(crate) fn track_now(&self, old: &Value, object: &mut Value) {
        self.with(|request| fl_ssa::update(request, old, object));
    }

    /// Gives what differs from `old` (`null` for a new object) to the caller.
    pub(crate) async fn track(&self, inner: &Inner, old: &Value, object: &mut Value) -> Outcome<()> {
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
