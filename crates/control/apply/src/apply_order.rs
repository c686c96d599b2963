//! In which order objects are applied.

use std::cmp::Ordering;
use std::collections::HashSet;

use serde_json::Value;

use crate::{ObjectId, ObjectRef};

/// Kinds that come first, in this order.
const FIRST: [&str; 23] = [
    "CustomResourceDefinition",
    "Namespace",
    "ClusterRole",
    "ClusterClass",
    "RuntimeClass",
    "PriorityClass",
    "StorageClass",
    "VolumeSnapshotClass",
    "IngressClass",
    "GatewayClass",
    "ClusterRoleBinding",
    "ResourceQuota",
    "ServiceAccount",
    "Role",
    "RoleBinding",
    "ConfigMap",
    "Secret",
    "Service",
    "LimitRange",
    "Deployment",
    "StatefulSet",
    "CronJob",
    "PodDisruptionBudget",
];

/// Kinds that come last, in this order.
const LAST: [&str; 2] = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];

/// Where the kind stands: below zero first, zero in the middle, above zero last.
pub(crate) fn rank(kind: &str) -> i32 {
    let at = |list: &[&str]| list.iter().position(|k| *k == kind).and_then(|i| i32::try_from(i).ok());
    if let Some(index) = at(&FIRST) {
        return index - 23;
    }
    at(&LAST).map_or(0, |index| index + 1)
}

/// The order of apply; deletion runs the other way round.
#[must_use]
pub fn compare(a: &ObjectId, b: &ObjectId) -> Ordering {
    rank(&a.kind)
        .cmp(&rank(&b.kind))
        .then_with(|| a.group.cmp(&b.group))
        .then_with(|| a.kind.cmp(&b.kind))
        .then_with(|| a.namespace.cmp(&b.namespace))
        .then_with(|| a.name.cmp(&b.name))
}

/// Sorts references into the order of apply.
pub fn sort(objects: &mut [ObjectRef]) {
    objects.sort_by(|a, b| compare(&a.id, &b.id));
}

/// The stage in which an object is applied; each stage is complete before the next begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// CRDs, Namespaces, ClusterRoles: waited for.
    Definitions,
    /// Kinds that end in `Class`: waited for.
    Classes,
    /// Kinds named by the operator of the engine.
    Custom,
    /// The rest.
    Rest,
}

/// The stage of an object; `custom` holds `(group, kind)`.
#[must_use]
pub fn stage(object: &ObjectRef, custom: &HashSet<(String, String)>) -> Stage {
    let id = &object.id;
    let kind = id.kind.to_ascii_lowercase();
    if is_custom_resource_definition(id)
        || (kind == "namespace" && id.group.is_empty() && object.version == "v1")
        || (kind == "clusterrole" && id.group == "rbac.authorization.k8s.io")
    {
        return Stage::Definitions;
    }
    if id.kind.ends_with("Class") {
        return Stage::Classes;
    }
    if custom.contains(&(id.group.clone(), id.kind.clone())) {
        return Stage::Custom;
    }
    Stage::Rest
}

/// Whether it is a CRD.
#[must_use]
pub fn is_custom_resource_definition(id: &ObjectId) -> bool {
    id.kind.eq_ignore_ascii_case("customresourcedefinition") && id.group == "apiextensions.k8s.io"
}

/// Whether it is a Secret of the core group.
pub(crate) fn is_secret(object: &Value) -> bool {
    object["apiVersion"] == "v1" && object["kind"].as_str().is_some_and(|k| k.eq_ignore_ascii_case("secret"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorted_as_applied() {
        let object = |api: &str, kind: &str, name: &str| ObjectRef::new(api, kind, "ns", name);
        let mut objects = vec![
            object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "w"),
            object("example.com/v1", "Thing", "t"),
            object("apps/v1", "Deployment", "d"),
            object("v1", "ConfigMap", "b"),
            object("v1", "ConfigMap", "a"),
            object("v1", "Namespace", "n"),
            object("apps/v1", "DaemonSet", "x"),
        ];
        sort(&mut objects);
        let names: Vec<&str> = objects.iter().map(|o| o.id.name.as_str()).collect();
        assert_eq!(names, ["n", "a", "b", "d", "x", "t", "w"]);
    }

    #[test]
    fn stages() {
        let custom = HashSet::from([("cert-manager.io".to_owned(), "Issuer".to_owned())]);
        let of = |api: &str, kind: &str| stage(&ObjectRef::new(api, kind, "", "x"), &custom);
        assert_eq!(of("v1", "Namespace"), Stage::Definitions);
        assert_eq!(of("rbac.authorization.k8s.io/v1", "ClusterRole"), Stage::Definitions);
        assert_eq!(of("storage.k8s.io/v1", "StorageClass"), Stage::Classes);
        assert_eq!(of("cert-manager.io/v1", "Issuer"), Stage::Custom);
        assert_eq!(of("v1", "Secret"), Stage::Rest);
        assert_eq!(of("example.com/v1", "Namespace"), Stage::Rest);
    }
}
