//! Built-in admission plugins, for types that need more than the strategy of their kind: addresses of
//! Services, types of CustomResourceDefinitions, RBAC escalation checks, limits, quotas, pod security.

mod default_class;
pub(crate) mod namespace_lifecycle;
mod persistent_volume_claim_resize;
mod pod_defaults;
mod pod_security;
mod rbac_escalation;
pub(crate) mod resource_quota;
mod service_ips;

pub(crate) use pod_security::admit as check_security;
pub(crate) use resource_quota::charge as charge_quotas;

use std::sync::Arc;

use fl_schema::FieldError;
use serde_json::Value;

use super::AdmissionAttributes;
use crate::crd;
use crate::server::{Inner, RequestContext, Target};
use crate::status::ApiResult;

/// Types with plugins.
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

/// Whether writes of a type have side effects ([`after_write`], [`after_delete`]).
pub(crate) fn has_side_effects(target: &Target) -> bool {
    matches!(plugin_of(target), Plugin::Service | Plugin::Definition)
}

/// Runs before a new object is validated.
pub(crate) fn prepare_create(
    inner: &Arc<Inner>,
    attributes: AdmissionAttributes<'_>,
    object: &mut Value,
) -> ApiResult<()> {
    let AdmissionAttributes { ctx, target, dry_run, .. } = attributes;
    match plugin_of(target) {
        Plugin::Service => service_ips::allocate(inner, target, object, None, dry_run),
        Plugin::Rbac => rbac_escalation::check(inner, attributes, object),
        Plugin::Pod => pod_defaults::admit(inner, target, object),
        Plugin::Definition => {
            crd::prepare(inner, object, None, &ctx.now_text());
            Ok(())
        }
        Plugin::Claim => {
            default_class::of_claim(inner, object);
            persistent_volume_claim_resize::check_limits(inner, target, object)
        }
        Plugin::Ingress => {
            default_class::of_ingress(inner, object);
            Ok(())
        }
        Plugin::PriorityClass => default_class::check_priority(inner, target, object),
        Plugin::SigningRequest => {
            set_requester(ctx, object);
            Ok(())
        }
        Plugin::None => Ok(()),
    }
}

/// Admits a pod of a simulated controller by the limit ranges and quotas of its namespace.
pub(crate) async fn admit_pod(inner: &Arc<Inner>, object: &mut Value) -> ApiResult<()> {
    let Some(rt) = inner.registry().find("", "v1", "pods").cloned() else { return Ok(()) };
    let (namespace, name) =
        (crate::object::namespace(object).to_owned(), crate::object::name(object).to_owned());
    let target = Target { rt, namespace, name, subresource: String::new() };
    pod_defaults::limits(inner, &target, object, &target.name)?;
    charge_quotas(inner, &target, object, None, false).await
}

/// Sets the requester of a CertificateSigningRequest to the user of the request.
fn set_requester(ctx: &RequestContext, object: &mut Value) {
    let user = ctx.user.to_json();
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    for field in ["username", "uid", "groups", "extra"] {
        match user.get(field) {
            Some(value) => spec.insert(field.to_owned(), value.clone()),
            None => spec.remove(field),
        };
    }
}

/// Runs before a changed object is validated.
pub(crate) fn prepare_update(
    inner: &Arc<Inner>,
    attributes: AdmissionAttributes<'_>,
    object: &mut Value,
    old: &Value,
) -> ApiResult<()> {
    let AdmissionAttributes { ctx, target, dry_run, .. } = attributes;
    match plugin_of(target) {
        Plugin::Service if target.subresource.is_empty() => {
            service_ips::allocate(inner, target, object, Some(old), dry_run)?;
        }
        Plugin::Rbac => rbac_escalation::check(inner, attributes, object)?,
        Plugin::PriorityClass => default_class::check_priority(inner, target, object)?,
        Plugin::Claim if target.subresource.is_empty() => {
            persistent_volume_claim_resize::check_resize(inner, target, object, old)?;
        }
        Plugin::Definition if target.subresource.is_empty() => {
            crd::prepare(inner, object, Some(old), &ctx.now_text());
        }
        _ => return Ok(()),
    }
    target.rt.strategy.normalize(object);
    Ok(())
}

/// Why an object cannot be deleted.
pub(crate) fn delete_error(target: &Target) -> Option<&'static str> {
    let system = plugin_of(target) == Plugin::PriorityClass && target.name.starts_with("system-");
    system.then_some("this is a system priority class and cannot be deleted")
}

/// Validation that needs more than the object.
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

/// Runs after an object was written.
pub(crate) async fn after_write(inner: &Arc<Inner>, target: &Target, object: &Value) {
    match plugin_of(target) {
        Plugin::Definition => crd::changed(inner, object).await,
        Plugin::Service => inner.addresses.keep(object),
        _ => {}
    }
}

/// Runs after an object was deleted.
pub(crate) async fn after_delete(inner: &Arc<Inner>, target: &Target, object: &Value) {
    match plugin_of(target) {
        Plugin::Definition => crd::removed(inner, object).await,
        Plugin::Service => inner.addresses.free(object),
        _ => {}
    }
}

/// Releases what a prepared object has allocated, if it is not written.
pub(crate) fn release(inner: &Arc<Inner>, target: &Target, object: &Value) {
    if plugin_of(target) == Plugin::Service {
        inner.addresses.free(object);
    }
}
