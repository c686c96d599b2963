//! RBAC escalation checks: users can only grant rights that they hold, unless they may `escalate` or `bind`.

use serde_json::Value;

use crate::admission::AdmissionAttributes;
use crate::auth::escalation;
use crate::auth::rbac::Rule;
use crate::object;
use crate::server::Inner;
use crate::status::{ApiError, ApiResult};

pub(super) fn check(inner: &Inner, attributes: AdmissionAttributes<'_>, object: &Value) -> ApiResult<()> {
    let AdmissionAttributes { ctx, target, old, .. } = attributes;
    let (auth, user) = (&inner.authorizer, &ctx.user);
    if user.in_group("system:masters") {
        return Ok(());
    }
    let plural = target.rt.plural.as_str();
    let name = object::name(object);
    let (rules, verb, resource, role_name) = match plural {
        "roles" | "clusterroles" => {
            if old.is_some_and(|old| old.get("rules") == object.get("rules")) {
                return Ok(());
            }
            (Rule::list(object), "escalate", plural, name)
        }
        "rolebindings" | "clusterrolebindings" => {
            let same = |field: &str| old.is_some_and(|old| old.get(field) == object.get(field));
            if same("roleRef") && same("subjects") {
                return Ok(());
            }
            let reference = |field: &str| {
                object.pointer(&format!("/roleRef/{field}")).and_then(Value::as_str).unwrap_or_default()
            };
            let cluster = reference("kind") == "ClusterRole";
            let namespace = if cluster { "" } else { target.namespace.as_str() };
            let Some(rules) = auth.index().role(namespace, reference("name")) else {
                // Binding a missing role would grant whatever it becomes later.
                let kind = if cluster { "clusterroles" } else { "roles" };
                if escalation::exempt(auth, user, "bind", kind, &target.namespace, reference("name")) {
                    return Ok(());
                }
                // Upstream names the role, with the kind of the binding.
                return Err(ApiError::not_found(&target.rt, reference("name")));
            };
            (rules.to_vec(), "bind", if cluster { "clusterroles" } else { "roles" }, reference("name"))
        }
        _ => return Ok(()),
    };
    if escalation::exempt(auth, user, verb, resource, &target.namespace, role_name) {
        return Ok(());
    }
    escalation::check(auth, user, &target.namespace, &rules)
        .map_err(|why| ApiError::forbidden(&target.rt, name, &why))
}
