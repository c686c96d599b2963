//! The update loop of `update`, `patch`, `apply` and the subresources, as Kubernetes' `GuaranteedUpdate`.

use std::sync::Arc;

use serde_json::Value;

use super::identity::{check_name, check_namespace};
use super::options::{self, WriteOptions};
use super::persist::{self, read_back};
use super::pipeline::{Operation, Pipeline, Tracking};
use super::{decode, managed_fields, read};
use crate::crd::convert;
use crate::object;
use crate::resource_type::ResourceType;
use crate::response::{ApiResponse, to_bytes};
use crate::server::{Inner, RequestContext, Target};
use crate::status::{ApiError, ApiResult};
use crate::store::{Change, Entry, Precondition, StoreError};

/// The result of one update attempt on the current object.
pub(crate) struct UpdateAttempt {
    pub(crate) object: Value,
    pub(crate) tracking: Tracking,
    /// The `resourceVersion` from the body, which must match the current one.
    pub(crate) expected: Option<String>,
}

/// The kind of request, which decides the errors for a missing object and a changed UID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UpdateKind {
    Put,
    Patch,
}

pub(crate) async fn put(inner: &Arc<Inner>, ctx: &RequestContext, target: &Target) -> ApiResult<ApiResponse> {
    let rt = &target.rt;
    let options = options::read(ctx, "UpdateOptions", false)?;
    let mut object = decode::body(inner, ctx, rt, options.validation)?;
    let name = object::name(&object);
    check_name(name, target)?;
    check_namespace(&mut object, target)?;
    let expected = Some(object::meta_str(&object, "resourceVersion").to_owned());
    run(inner, ctx, target, &options, UpdateKind::Put, |_| {
        Ok(UpdateAttempt { object: object.clone(), tracking: Tracking::Update, expected: expected.clone() })
    })
    .await
}

/// Reads the object, updates and checks it, and writes it; repeats after a conflicting write.
pub(crate) async fn run(
    inner: &Arc<Inner>,
    ctx: &RequestContext,
    target: &Target,
    options: &WriteOptions,
    update_kind: UpdateKind,
    mut try_update: impl FnMut(Option<&Value>) -> ApiResult<UpdateAttempt>,
) -> ApiResult<ApiResponse> {
    let rt = &target.rt;
    let key = target.key();
    loop {
        let entry = inner.store.latest(target.table(), &key);
        let old = match &entry {
            Some(entry) => {
                let entry = convert::entry(inner, rt, entry.clone()).await?;
                Some(read::current_value(inner, rt, &entry))
            }
            None => None,
        };
        let attempt = try_update(old.as_deref());
        if ctx.conversions.fetch(inner, rt).await? {
            continue;
        }
        let attempt = attempt?;
        let (Some(old), Some(entry)) = (old, entry) else {
            let made = create_instead(inner, ctx, target, options, update_kind, attempt).await?;
            return Ok(ApiResponse::Object { code: 201, rt: rt.clone(), bytes: to_bytes(&made) });
        };
        let checks = UpdateChecks { inner, ctx, target, options, update_kind };
        let object = match checks.check(&old, attempt).await? {
            Some(object) => object,
            // An object that was stored without today's defaults gets them with its next write, even if that
            // changes nothing else.
            None if is_outdated(rt, &entry, &old) => Arc::unwrap_or_clone(old),
            None => {
                // Unchanged: nothing is written, and watchers get no event.
                return Ok(ApiResponse::Object { code: 200, rt: rt.clone(), bytes: to_bytes(&old) });
            }
        };
        if options.dry_run {
            return Ok(ApiResponse::Object { code: 200, rt: rt.clone(), bytes: to_bytes(&object) });
        }
        let gone = object::is_deleting(&object)
            && object::finalizers(&object).is_empty()
            && !still_in_grace(&object)
            && !super::delete::is_held_namespace(target, &object);
        // The last event of an object shows it as it was stored, with the finalizer that was just removed.
        if !gone && rt.strategy.stored_as_served() && !crate::admission::plugins::has_side_effects(target) {
            // The common case: the stored bytes are also the response, encoded once.
            match inner
                .store
                .commit(target.table(), &key, Precondition::Revision(entry.revision), Change::Put(object))
                .await
            {
                Ok(entry) => {
                    let bytes = entry.bytes.clone();
                    return Ok(ApiResponse::Object { code: 200, rt: rt.clone(), bytes });
                }
                Err(StoreError::Conflict) => continue,
                Err(other) => return Err(other.into()),
            }
        }
        let change = if gone {
            Change::Delete(entry.value())
        } else {
            Change::Put(convert::to_storage(inner, rt, object.clone()).await?)
        };
        match inner.store.commit(target.table(), &key, Precondition::Revision(entry.revision), change).await {
            Ok(entry) => {
                if gone {
                    crate::admission::plugins::after_delete(inner, target, &object).await;
                    return Ok(ApiResponse::Object { code: 200, rt: rt.clone(), bytes: to_bytes(&object) });
                }
                let mut object = read_back(inner, rt, object, entry.clone()).await?;
                object::set_meta(&mut object, "resourceVersion", entry.revision.to_string());
                crate::admission::plugins::after_write(inner, target, &object).await;
                return Ok(ApiResponse::Object { code: 200, rt: rt.clone(), bytes: to_bytes(&object) });
            }
            Err(StoreError::Conflict) => {}
            Err(other) => return Err(other.into()),
        }
    }
}

/// Whether reading a stored custom resource changes it (defaults, pruning).
fn is_outdated(rt: &ResourceType, entry: &Entry, read: &Value) -> bool {
    rt.is_custom()
        && !rt.strategy.stored_as_served()
        && rt.api_version() == rt.storage.api_version
        && entry.value() != *read
}

/// A deleted pod stays until its grace period is over.
fn still_in_grace(object: &Value) -> bool {
    object.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0) > 0
}

async fn create_instead(
    inner: &Arc<Inner>,
    ctx: &RequestContext,
    target: &Target,
    options: &WriteOptions,
    update_kind: UpdateKind,
    attempt: UpdateAttempt,
) -> ApiResult<Value> {
    let rt = &target.rt;
    let applied = attempt.tracking == Tracking::Done;
    if !target.subresource.is_empty()
        || !(applied || (update_kind == UpdateKind::Put && rt.strategy.allow_create_on_update()))
    {
        return Err(ApiError::not_found(rt, &target.name));
    }
    let mut object = attempt.object;
    let uid = object::uid(&object).to_owned();
    if !uid.is_empty() {
        let why = format!(
            "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        );
        return Err(ApiError::conflict(rt, &target.name, &why));
    }
    object::remove_meta(&mut object, "resourceVersion");
    let shared = rt.strategy.shares_labels(&object);
    rt.strategy.default(&mut object);
    rt.strategy.normalize(&mut object);
    persist::create(inner, ctx, target, (object, shared), options, attempt.tracking).await
}

struct UpdateChecks<'a> {
    inner: &'a Arc<Inner>,
    ctx: &'a RequestContext,
    target: &'a Target,
    options: &'a WriteOptions,
    update_kind: UpdateKind,
}

impl UpdateChecks<'_> {
    /// The object to write, or `None` if it equals the current one.
    async fn check(&self, old: &Value, attempt: UpdateAttempt) -> ApiResult<Option<Value>> {
        let UpdateAttempt { mut object, tracking, expected } = attempt;
        self.check_identity(&object, old, expected.as_deref())?;
        self.keep_metadata(&mut object, old);
        let pipeline = Pipeline {
            inner: self.inner,
            ctx: self.ctx,
            target: self.target,
            options: self.options,
            operation: Operation::Update { old },
            tracking,
        };
        pipeline.run(&mut object).await?;
        if managed_fields::is_unchanged(&mut object, old) {
            return Ok(None);
        }
        Ok(Some(object))
    }

    fn check_identity(&self, object: &Value, old: &Value, expected: Option<&str>) -> ApiResult<()> {
        let rt = &self.target.rt;
        let uid = object::uid(object);
        if self.update_kind == UpdateKind::Put && !uid.is_empty() && uid != object::uid(old) {
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: /registry/{}/{}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
                rt.plural,
                self.target.key().trim_start_matches('/'),
                object::uid(old)
            );
            return Err(ApiError::conflict(rt, &self.target.name, &why));
        }
        match expected {
            Some("" | "0")
                if self.update_kind == UpdateKind::Put && !rt.strategy.allow_unconditional_update() =>
            {
                let error = fl_schema::FieldError {
                    kind: fl_schema::FieldErrorKind::Invalid,
                    field: "metadata.resourceVersion".to_owned(),
                    value: Some("0".to_owned()),
                    detail: "must be specified for an update".to_owned(),
                };
                // Upstream names the resource here, not the kind.
                Err(ApiError::invalid_kind(&rt.group, &rt.plural, &self.target.name, &[error]))
            }
            Some("" | "0") | None => Ok(()),
            Some(wanted) if wanted == object::meta_str(old, "resourceVersion") => Ok(()),
            Some(wanted) if wanted.parse::<u64>().is_err() => {
                // The error message of etcd's storage layer.
                Err(ApiError::new(500, "", format!("strconv.ParseUint: parsing {wanted:?}: invalid syntax")))
            }
            Some(_) => Err(ApiError::modified(rt, &self.target.name)),
        }
    }

    /// Restores the metadata that clients cannot change.
    fn keep_metadata(&self, object: &mut Value, old: &Value) {
        let nothing = serde_json::Map::new();
        let old = old.get("metadata").and_then(Value::as_object).unwrap_or(&nothing);
        let metadata = object::meta_mut(object);
        let keep = |metadata: &mut serde_json::Map<String, Value>, field: &str| match old.get(field) {
            // A patched object has the value already.
            Some(value) if metadata.get(field) != Some(value) => {
                metadata.insert(field.to_owned(), value.clone());
            }
            Some(_) => {}
            None => {
                metadata.remove(field);
            }
        };
        for field in ["creationTimestamp", "generation", "resourceVersion", "selfLink"] {
            keep(metadata, field);
        }
        for field in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds", "namespace", "name"] {
            // An unset field keeps its value; a different value is rejected later.
            if metadata.get(field).is_none_or(|v| v.is_null() || v == "") {
                keep(metadata, field);
            }
        }
        if !metadata.contains_key("generateName") && self.target.subresource == "status" {
            keep(metadata, "generateName");
        }
    }
}
