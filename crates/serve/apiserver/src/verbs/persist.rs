//! Creation of objects in the store.

use std::sync::Arc;

use serde_json::Value;

use super::options::WriteOptions;
use super::pipeline::{Operation, Pipeline, Tracking};
use crate::admission::plugins::namespace_lifecycle;
use crate::crd::convert;
use crate::object;
use crate::resource_type::ResourceType;
use crate::server::{Inner, RequestContext, Target};
use crate::status::{ApiError, ApiResult};
use crate::store::{Change, Entry, Precondition, StoreError};

/// Writes a new object that was decoded and defaulted. Returns it as served. The flag next to the object says
/// whether its labels come from its template.
pub(crate) async fn create(
    inner: &Arc<Inner>,
    ctx: &RequestContext,
    target: &Target,
    (mut object, labels_of_template): (Value, bool),
    options: &WriteOptions,
    tracking: Tracking,
) -> ApiResult<Value> {
    let rt = &target.rt;
    let name = object::name(&object).to_owned();
    namespace_lifecycle::check_create(inner, target, &name)?;
    if let Some(why) = rt.strategy.refuses_creation() {
        return Err(ApiError::forbidden(rt, &name, &why));
    }

    let target = Target { name: name.clone(), ..target.clone() };
    let operation = Operation::Create { labels_of_template };
    let pipeline = Pipeline { inner, ctx, target: &target, options, operation, tracking };
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
    match inner.store.commit(target.table(), &key, Precondition::Absent, Change::Put(stored)).await {
        Ok(entry) => {
            let mut object = read_back(inner, rt, object, entry.clone()).await?;
            object::set_meta(&mut object, "resourceVersion", entry.revision.to_string());
            crate::admission::plugins::after_write(inner, &target, &object).await;
            Ok(object)
        }
        Err(StoreError::Conflict) => {
            crate::admission::plugins::release(inner, &target, &object);
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

/// The object as read back from the store: conversion to and from the storage version may drop fields.
pub(crate) async fn read_back(
    inner: &Inner,
    rt: &ResourceType,
    object: Value,
    entry: Arc<Entry>,
) -> ApiResult<Value> {
    if rt.is_custom() && rt.api_version() != rt.storage.api_version {
        let entry = convert::entry(inner, rt, entry).await?;
        return Ok(rt.strategy.read_from_storage(entry.value()));
    }
    Ok(object)
}
