//! `create`.

use std::sync::Arc;

use rand::RngExt as _;
use serde_json::Value;

use super::options::{self, WriteOptions};
use super::{decode, fields, lifecycle, metadata};
use crate::admission;
use crate::answer::{Answer, to_bytes};
use crate::crd::convert;
use crate::object;
use crate::resource::Hook;
use crate::server::{Call, Inner, Target};
use crate::status::{ApiError, Outcome};
use crate::store::{Change, Expect, StoreError};

pub(crate) async fn run(inner: &Arc<Inner>, call: &Call, target: &Target) -> Outcome<Answer> {
    let rt = &target.rt;
    let options = options::read(call, "CreateOptions", false)?;
    let mut object = decode::body(inner, call, rt, options.validation)?;
    check_namespace(&mut object, target)?;
    metadata::merge_owners(call, &mut object);
    let shared = rt.behaviour.shares_labels(&object);
    rt.behaviour.default(&mut object);
    rt.behaviour.normalize(&mut object);
    // The server fills these in; what a client sends is of no interest.
    for field in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        object::remove_meta(&mut object, field);
    }
    let generated = object::name(&object).is_empty() && !object::meta_str(&object, "generateName").is_empty();
    let tries = if generated { 8 } else { 1 };
    let prefix = object::meta_str(&object, "generateName").to_owned();
    let mut last = ApiError::internal("no name was tried");
    for _ in 0..tries {
        let mut attempt = object.clone();
        if generated {
            object::set_meta(&mut attempt, "name", generate_name(&prefix));
        }
        match store(inner, call, target, (attempt, shared), &options, Tracking::Update).await {
            Err(mut error) if !prefix.is_empty() && error.reason == "AlreadyExists" => {
                error.message += ", the server was not able to generate a unique name for the object";
                if let Some(details) = &mut error.details {
                    details["retryAfterSeconds"] = serde_json::json!(1);
                }
                last = error;
            }
            Err(error) => return Err(error),
            Ok(stored) => return Ok(Answer::Object { code: 201, rt: rt.clone(), bytes: to_bytes(&stored) }),
        }
    }
    Err(last)
}

/// How the fields of a new object get their managers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tracking {
    /// All fields belong to the caller.
    Update,
    /// Apply wrote managedFields already.
    Done,
    /// The server's own doing: nobody comes to own anything.
    Untracked,
}

/// Checks and completes the namespace of an object against the request's.
pub(crate) fn check_namespace(object: &mut Value, target: &Target) -> Outcome<()> {
    refuse_other_namespace(object, target)?;
    let own = object::namespace(object);
    if !target.rt.namespaced {
        if !own.is_empty() {
            object::remove_meta(object, "namespace");
        }
    } else if own.is_empty() {
        object::set_meta(object, "namespace", target.namespace.as_str());
    }
    Ok(())
}

/// Refuses an object that names another namespace than the request.
pub(crate) fn refuse_other_namespace(object: &Value, target: &Target) -> Outcome<()> {
    let own = object::namespace(object);
    if target.rt.namespaced && !own.is_empty() && own != target.namespace {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

/// A name from a prefix: five characters that do not form words.
pub(crate) fn generate_name(prefix: &str) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let stem: String = prefix.chars().take(58).collect();
    let mut random = rand::rng();
    let tail: String = (0..5).map(|_| LETTERS[random.random_range(0..LETTERS.len())] as char).collect();
    format!("{stem}{tail}")
}

/// Everything between a decoded, defaulted object and the store. Returns the served object. Beside the object is said
/// whether its labels are one with those of its template.
pub(crate) async fn store(
    inner: &Arc<Inner>,
    call: &Call,
    target: &Target,
    (mut object, shared_labels): (Value, bool),
    options: &WriteOptions,
    tracking: Tracking,
) -> Outcome<Value> {
    let rt = &target.rt;
    let now = call.now_text();
    let hook = Hook { resource: rt, subresource: "", now: &now };
    let name = object::name(&object).to_owned();
    lifecycle::check_create(inner, target, &name)?;
    if let Some(why) = rt.behaviour.refuses_creation() {
        return Err(ApiError::forbidden(rt, &name, &why));
    }

    let registry = inner.registry();
    if tracking == Tracking::Update {
        let conversions = &call.conversions;
        let tracker =
            fields::Tracker { registry: &registry, rt, options, subresource: "", now: &now, conversions };
        tracker.track(inner, &fields::zero(rt), &mut object).await?;
    }
    rt.behaviour.seal(&mut object);
    let target = Target { name: name.clone(), ..target.clone() };
    let write =
        admission::Write { call, target: &target, operation: "CREATE", old: None, dry_run: options.dry_run };
    // What webhooks change belongs to nobody.
    inner.webhooks.mutate(inner, write, &mut object).await?;

    // Some kinds make names and labels of the UID.
    object::set_meta(&mut object, "uid", uuid::Uuid::new_v4().to_string());
    object::set_meta(&mut object, "creationTimestamp", now.as_str());
    rt.behaviour.prepare_for_create(hook, &mut object);
    if shared_labels {
        let labels = object["spec"]["template"]["metadata"]["labels"].clone();
        object::set_meta(&mut object, "labels", labels);
    }
    if rt.behaviour.has_generation() {
        object::set_meta(&mut object, "generation", 1);
    }
    crate::special::prepare_create(inner, call, &target, &mut object)?;
    rt.behaviour.normalize(&mut object);

    // Names decide what an object is: checked here, after anything that may still change them.
    let mut errors = metadata::check_create(rt, &object);
    errors.extend(rt.behaviour.validate_create(hook, &object));
    errors.extend(crate::special::validate(inner, &target, &object, None));
    if !errors.is_empty() {
        return Err(ApiError::invalid(rt, &name, &super::empties::restore(call, rt, errors)));
    }
    for warning in rt.behaviour.warnings(hook, &object, None) {
        call.warn(warning);
    }
    crate::special::check_security(inner, call, &target, &object, None)?;
    inner.webhooks.validate(inner, write, Some(&object)).await?;
    crate::special::charge_quotas(inner, &target, &object, None, options.dry_run).await?;

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
            let mut object = super::change::round_trip(inner, rt, object, entry.clone()).await?;
            object::set_meta(&mut object, "resourceVersion", entry.revision.to_string());
            crate::special::after_write(inner, &target, &object).await;
            Ok(object)
        }
        Err(StoreError::Conflict) => {
            crate::special::forget(inner, &target, &object);
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
