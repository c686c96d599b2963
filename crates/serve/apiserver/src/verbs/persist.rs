//! Writing new objects, and what an object is once it was written.

use std::sync::Arc;

use serde_json::Value;

use super::lifecycle;
use super::options::WriteOptions;
use super::pipeline::{Operation, Pipeline, Tracking};
use crate::crd::convert;
use crate::object;
use crate::resource::ResourceType;
use crate::server::{Call, Inner, Target};
use crate::status::{ApiError, Outcome};
use crate::store::{Change, Entry, Expect, StoreError};

/// Writes a new object that was decoded and defaulted. Returns it as it is served. Beside the object is told whether it takes
/// its labels from its template.
pub(crate) async fn create(
    inner: &Arc<Inner>,
    call: &Call,
    target: &Target,
    (mut object, labels_of_template): (Value, bool),
    options: &WriteOptions,
    tracking: Tracking,
) -> Outcome<Value> {
    let rt = &target.rt;
    let name = object::name(&object).to_owned();
    lifecycle::check_create(inner, target, &name)?;
    if let Some(why) = rt.strategy.refuses_creation() {
        return Err(ApiError::forbidden(rt, &name, &why));
    }

    let target = Target { name: name.clone(), ..target.clone() };
    let operation = Operation::Create { labels_of_template };
    let pipeline = Pipeline { inner, call, target: &target, options, operation, tracking };
    pipeline.run(&mut object).await?;

    let key = target.key();
    if options.dry_run {
        if inner.store.latest(target.table(), &key).is_some() {
            return Err(ApiError::already_exists(rt, &name));
        }
        return Ok(object);
    }
    if !object::meta_str(&object, "resourceVersion").is_empty() {
        return Err(ApiError::new(500, "", "resourceVersion should not be set on objects to be created"));
    }
    let stored = convert::to_storage(inner, rt, object.clone()).await?;
    match inner.store.commit(target.table(), &key, Expect::Absent, Change::Put(stored)).await {
        Ok(entry) => {
            let mut object = read_back(inner, rt, object, entry.clone()).await?;
            object::set_meta(&mut object, "resourceVersion", entry.revision.to_string());
            crate::plugins::after_write(inner, &target, &object).await;
            Ok(object)
        }
        Err(StoreError::Conflict) => {
            crate::plugins::forget(inner, &target, &object);
            Err(already_exists(inner, &target, &name))
        }
        Err(other) => Err(other.into()),
    }
}

fn already_exists(inner: &Inner, target: &Target, name: &str) -> ApiError {
    let deleting =
        inner.store.latest(target.table(), &target.key()).is_some_and(|e| object::is_deleting(&e.value()));
    if deleting {
        let error = ApiError::already_exists(&target.rt, name);
        let message = format!("object is being deleted: {}", error.message);
        return ApiError { message, ..error };
    }
    ApiError::already_exists(&target.rt, name)
}

/// The object as it comes back from the store: a version that is not the storage version may have lost fields.
pub(crate) async fn read_back(
    inner: &Inner,
    rt: &ResourceType,
    object: Value,
    entry: Arc<Entry>,
) -> Outcome<Value> {
    if rt.is_custom() && rt.api_version() != rt.storage.api_version {
        let entry = convert::entry(inner, rt, entry).await?;
        return Ok(rt.strategy.read_from_storage(entry.value()));
    }
    Ok(object)
}
