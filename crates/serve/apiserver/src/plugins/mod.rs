//! What a few built-in types need from the server itself, beyond the rules of their kind: addresses for services,
//! served types for definitions, checks against granting what one does not hold.

mod claims;
mod classes;
mod pods;
pub(crate) mod quota;
mod rbac;
mod security;
mod services;

pub(crate) use quota::charge as charge_quotas;
pub(crate) use security::admit as check_security;

use std::sync::Arc;

use fl_schema::FieldError;
use serde_json::Value;

use crate::crd;
use crate::server::{Call, Inner, Target};
use crate::status::Outcome;

/// The types with something to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Special {
    Service,
    Definition,
    Rbac,
    Pod,
    Claim,
    Ingress,
    SigningRequest,
    PriorityClass,
    None,
}

fn special(target: &Target) -> Special {
    match (target.rt.group.as_str(), target.rt.plural.as_str()) {
        ("", "services") => Special::Service,
        ("", "pods") => Special::Pod,
        ("", "persistentvolumeclaims") => Special::Claim,
        ("networking.k8s.io", "ingresses") => Special::Ingress,
        ("scheduling.k8s.io", "priorityclasses") => Special::PriorityClass,
        ("certificates.k8s.io", "certificatesigningrequests") => Special::SigningRequest,
        ("apiextensions.k8s.io", "customresourcedefinitions") => Special::Definition,
        ("rbac.authorization.k8s.io", _) => Special::Rbac,
        _ => Special::None,
    }
}

/// Whether writes of a type are followed by something.
pub(crate) fn is_special(target: &Target) -> bool {
    matches!(special(target), Special::Service | Special::Definition)
}

/// Before a new object is validated.
pub(crate) fn prepare_create(
    inner: &Arc<Inner>,
    call: &Call,
    target: &Target,
    object: &mut Value,
) -> Outcome<()> {
    match special(target) {
        Special::Service => {
            services::allocate(inner, target, object, None, call.query.get("dryRun") == "All")
        }
        Special::Rbac => rbac::check(inner, call, target, object, None),
        Special::Pod => pods::admit(inner, target, object),
        Special::Definition => {
            crd::prepare(inner, object, None, &call.now_text());
            Ok(())
        }
        Special::Claim => {
            classes::of_claim(inner, object);
            claims::check_limits(inner, target, object)
        }
        Special::Ingress => {
            classes::of_ingress(inner, object);
            Ok(())
        }
        Special::PriorityClass => classes::check_priority(inner, target, object),
        Special::SigningRequest => {
            sign(call, object);
            Ok(())
        }
        Special::None => Ok(()),
    }
}

/// Admits a pod that a simulated controller makes, as if it had asked for it: by the ranges and quotas of its namespace.
pub(crate) async fn admit_pod(inner: &Arc<Inner>, object: &mut Value) -> Outcome<()> {
    let Some(rt) = inner.registry().find("", "v1", "pods").cloned() else { return Ok(()) };
    let (namespace, name) =
        (crate::object::namespace(object).to_owned(), crate::object::name(object).to_owned());
    let target = Target { rt, namespace, name, subresource: String::new() };
    pods::limits(inner, &target, object, &target.name)?;
    charge_quotas(inner, &target, object, None, false).await
}

/// A request for a certificate says who made it; the server knows.
fn sign(call: &Call, object: &mut Value) {
    let user = call.user.to_json();
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    for field in ["username", "uid", "groups", "extra"] {
        match user.get(field) {
            Some(value) => spec.insert(field.to_owned(), value.clone()),
            None => spec.remove(field),
        };
    }
}

/// Before a changed object is validated.
pub(crate) fn prepare_update(
    inner: &Arc<Inner>,
    call: &Call,
    target: &Target,
    object: &mut Value,
    old: &Value,
) -> Outcome<()> {
    match special(target) {
        Special::Service if target.subresource.is_empty() => {
            services::allocate(inner, target, object, Some(old), call.query.get("dryRun") == "All")?;
        }
        Special::Rbac => rbac::check(inner, call, target, object, Some(old))?,
        Special::PriorityClass => classes::check_priority(inner, target, object)?,
        Special::Claim if target.subresource.is_empty() => claims::check_resize(inner, target, object, old)?,
        Special::Definition if target.subresource.is_empty() => {
            crd::prepare(inner, object, Some(old), &call.now_text());
        }
        _ => return Ok(()),
    }
    target.rt.strategy.normalize(object);
    Ok(())
}

/// Why an object may not be deleted.
pub(crate) fn undeletable(target: &Target) -> Option<&'static str> {
    let system = special(target) == Special::PriorityClass && target.name.starts_with("system-");
    system.then_some("this is a system priority class and cannot be deleted")
}

/// Rules that need to know more than the object.
pub(crate) fn validate(
    _inner: &Arc<Inner>,
    target: &Target,
    object: &Value,
    old: Option<&Value>,
) -> Vec<FieldError> {
    match special(target) {
        Special::Definition if target.subresource.is_empty() => crd::validate(object, old),
        _ => Vec::new(),
    }
}

/// After an object was written.
pub(crate) async fn after_write(inner: &Arc<Inner>, target: &Target, object: &Value) {
    match special(target) {
        Special::Definition => crd::changed(inner, object).await,
        Special::Service => inner.addresses.keep(object),
        _ => {}
    }
}

/// After an object is gone.
pub(crate) async fn after_delete(inner: &Arc<Inner>, target: &Target, object: &Value) {
    match special(target) {
        Special::Definition => crd::removed(inner, object).await,
        Special::Service => inner.addresses.free(object),
        _ => {}
    }
}

/// After a prepared object turned out not to be written.
pub(crate) fn forget(inner: &Arc<Inner>, target: &Target, object: &Value) {
    if special(target) == Special::Service {
        inner.addresses.free(object);
    }
}
