//! Install and uninstall order of kinds.

use std::cmp::Ordering;

/// Install order of Helm 4, the library in Flux.
pub(crate) const HELM_4_INSTALL_ORDER: &[&str] = &[
    "PriorityClass",
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodSecurityPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "SecretList",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleList",
    "ClusterRoleBinding",
    "ClusterRoleBindingList",
    "Role",
    "RoleList",
    "RoleBinding",
    "RoleBindingList",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];

/// Install order of Helm 3, the command, which does not list the webhooks.
pub const INSTALL_ORDER: &[&str] = HELM_4_INSTALL_ORDER.split_at(HELM_4_INSTALL_ORDER.len() - 2).0;

/// Uninstall order of Helm 4. It is not the exact reverse: services are deleted before their backends.
pub const UNINSTALL_ORDER: &[&str] = &[
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "APIService",
    "Ingress",
    "IngressClass",
    "Service",
    "CronJob",
    "Job",
    "StatefulSet",
    "HorizontalPodAutoscaler",
    "Deployment",
    "ReplicaSet",
    "ReplicationController",
    "Pod",
    "DaemonSet",
    "RoleBindingList",
    "RoleBinding",
    "RoleList",
    "Role",
    "ClusterRoleBindingList",
    "ClusterRoleBinding",
    "ClusterRoleList",
    "ClusterRole",
    "CustomResourceDefinition",
    "PersistentVolumeClaim",
    "PersistentVolume",
    "StorageClass",
    "ConfigMap",
    "SecretList",
    "Secret",
    "ServiceAccount",
    "PodDisruptionBudget",
    "PodSecurityPolicy",
    "LimitRange",
    "ResourceQuota",
    "NetworkPolicy",
    "Namespace",
    "PriorityClass",
];

/// Compares two kinds by an order: unknown kinds come last, by name. Use it with a stable sort.
pub fn compare_kinds(a: &str, b: &str, order: &[&str]) -> Ordering {
    let rank = |kind: &str| order.iter().position(|k| *k == kind);
    match (rank(a), rank(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

/// Stable sort by kind that looks up each kind once.
pub(crate) fn sort_by_kind<T>(items: &mut [T], order: &[&str], kind: impl Fn(&T) -> &str) {
    items.sort_by_cached_key(|item| {
        let kind = kind(item);
        match order.iter().position(|k| *k == kind) {
            Some(rank) => (rank, String::new()),
            None => (usize::MAX, kind.to_owned()),
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_kinds_come_last_by_name_and_equal_ones_keep_their_order() {
        let mut kinds = [("Zebra", 1), ("Deployment", 2), ("Apple", 3), ("Service", 4), ("Deployment", 5)];
        sort_by_kind(&mut kinds, INSTALL_ORDER, |k| k.0);
        assert_eq!(kinds.map(|k| k.1), [4, 2, 5, 3, 1]);
        assert_eq!(compare_kinds("Apple", "Zebra", INSTALL_ORDER), Ordering::Less);
    }

    #[test]
    fn install_and_uninstall_order_have_the_same_kinds() {
        let sorted = |order: &[&'static str]| {
            let mut kinds = order.to_vec();
            kinds.sort_unstable();
            kinds
        };
        assert_eq!(sorted(HELM_4_INSTALL_ORDER), sorted(UNINSTALL_ORDER));
        assert_eq!(INSTALL_ORDER.last(), Some(&"APIService"));
    }
}
