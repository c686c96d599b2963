//! The built-in admission plugins, for the few types that need more than the strategy of their kind: addresses of Services, the
//! types that CustomResourceDefinitions serve, checks against granting rights one does not hold, limits, quotas, pod security.

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

/// The types that have plugins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plugin {
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

fn plugin_of(target: &Target) -> Plugin {
    match (target.rt.group.as_str(), target.rt.plural.as_str()) {
        ("", "services") => Plugin::Service,
        ("", "pods") => Plugin::Pod,
        ("", "persistentvolumeclaims") => Plugin::Claim,
        ("networking.k8s.io", "ingresses") => Plugin::Ingress,
        ("scheduling.k8s.io", "priorityclasses") => Plugin::PriorityClass,
        ("certificates.k8s.io", "certificatesigningrequests") => Plugin::SigningRequest,
        ("apiextensions.k8s.io", "customresourcedefinitions") => Plugin::Definition,
        ("rbac.authorization.k8s.io", _) => Plugin::Rbac,
        _ => Plugin::None,
    }
}

/// Whether something follows the writes of a type ([`after_write`], [`after_delete`]).
pub(crate) fn has_side_effects(target: &Target) -> bool {
    matches!(plugin_of(target), Plugin::Service | Plugin::Definition)
}

/// Before a new object is validated.
pub(crate) fn prepare_create(
    inner: &Arc<Inner>,
    call: &Call,
    target: &Target,
    object: &mut Value,
) -> Outcome<()> {
    match plugin_of(target) {
        Plugin::Service => services::allocate(inner, target, object, None, call.query.get("dryRun") == "All"),
        Plugin::Rbac => rbac::check(inner, call, target, object, None),
        Plugin::Pod => pods::admit(inner, target, object),
        Plugin::Definition => {
            crd::prepare(inner, object, None, &call.now_text());
            Ok(())
        }
        Plugin::Claim => {
            classes::of_claim(inner, object);
            claims::check_limits(inner, target, object)
        }
        Plugin::Ingress => {
            classes::of_ingress(inner, object);
            Ok(())
        }
        Plugin::PriorityClass => classes::check_priority(inner, target, object),
        Plugin::SigningRequest => {
            sign(call, object);
            Ok(())
        }
        Plugin::None => Ok(()),
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
    match plugin_of(target) {
        Plugin::Service if target.subresource.is_empty() => {
            services::allocate(inner, target, object, Some(old), call.query.get("dryRun") == "All")?;
        }
        Plugin::Rbac => rbac::check(inner, call, target, object, Some(old))?,
        Plugin::PriorityClass => classes::check_priority(inner, target, object)?,
        Plugin::Claim if target.subresource.is_empty() => claims::check_resize(inner, target, object, old)?,
        Plugin::Definition if target.subresource.is_empty() => {
            crd::prepare(inner, object, Some(old), &call.now_text());
        }
        _ => return Ok(()),
    }
    target.rt.strategy.normalize(object);
    Ok(())
}

/// Why an object may not be deleted.
pub(crate) fn undeletable(target: &Target) -> Option<&'static str> {
    let system = plugin_of(target) == Plugin::PriorityClass && target.name.starts_with("system-");
    system.then_some("this is a system priority class and cannot be deleted")
}

/// Rules that need to know more than the object.
pub(crate) fn validate(
    _inner: &Arc<Inner>,
    target: &Target,
    object: &Value,
    old: Option<&Value>,
) -> Vec<FieldError> {
    match plugin_of(target) {
        Plugin::Definition if target.subresource.is_empty() => crd::validate(object, old),
        _ => Vec::new(),
    }
}

/// After an object was written.
pub(crate) async fn after_write(inner: &Arc<Inner>, target: &Target, object: &Value) {
    match plugin_of(target) {
        Plugin::Definition => crd::changed(inner, object).await,
        Plugin::Service => inner.addresses.keep(object),
        _ => {}
    }
}

/// After an object is gone.
pub(crate) async fn after_delete(inner: &Arc<Inner>, target: &Target, object: &Value) {
    match plugin_of(target) {
        Plugin::Definition => crd::removed(inner, object).await,
        Plugin::Service => inner.addresses.free(object),
        _ => {}
    }
}

/// After a prepared object turned out not to be written.
pub(crate) fn forget(inner: &Arc<Inner>, target: &Target, object: &Value) {
    if plugin_of(target) == Plugin::Service {
        inner.addresses.free(object);
    }
}
