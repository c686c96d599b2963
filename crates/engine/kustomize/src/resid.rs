//! kustomize's `ResId`: group, version, kind, name and namespace of an object, and their comparison.

use std::fmt;

use fl_yaml::SmolStr;

/// The namespace of cluster-scoped objects in comparisons.
pub(crate) const NOT_A_NAMESPACE: &str = "_non_namespaceable_";

/// Group, version and kind. In selectors an empty part matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Gvk {
    /// API group, empty for the core group.
    pub(crate) group: SmolStr,
    /// API version without the group.
    pub(crate) version: SmolStr,
    /// Kind.
    pub(crate) kind: SmolStr,
}

impl Gvk {
    /// From the fields `apiVersion` and `kind`.
    #[must_use]
    pub(crate) fn new(api_version: &str, kind: &str) -> Self {
        let (group, version) = split_api_version(api_version);
        Self { group: group.into(), version: version.into(), kind: kind.into() }
    }

    /// `group/version`, or the version alone in the core group.
    #[must_use]
    pub(crate) fn api_version(&self) -> SmolStr {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            smol_str::format_smolstr!("{}/{}", self.group, self.version)
        }
    }

    /// Whether the parts that `selector` sets are equal.
    #[must_use]
    pub(crate) fn is_selected_by(&self, selector: &Gvk) -> bool {
        let fits = |want: &SmolStr, have: &SmolStr| want.is_empty() || want == have;
        fits(&selector.kind, &self.kind)
            && fits(&selector.group, &self.group)
            && fits(&selector.version, &self.version)
    }

    /// The secondary key of kustomize's sort order, after the order of kinds.
    pub(crate) fn sort_text(&self) -> String {
        let or = |part: &SmolStr, none: &'static str| {
            if part.is_empty() { none.to_owned() } else { part.to_string() }
        };
        [or(&self.group, "~G"), or(&self.version, "~V"), or(&self.kind, "~K")].join("_")
    }
}

impl fmt::Display for Gvk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or = |part: &'_ SmolStr, none: &'static str| {
            if part.is_empty() { SmolStr::new_static(none) } else { part.clone() }
        };
        write!(
            f,
            "{}.{}.{}",
            or(&self.kind, "[noKind]"),
            or(&self.version, "[noVer]"),
            or(&self.group, "[noGrp]")
        )
    }
}

/// Splits `group/version` at its first slash.
pub(crate) fn split_api_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// The identity of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct ResId {
    /// Group, version, kind.
    pub(crate) gvk: Gvk,
    /// `metadata.name`
    pub(crate) name: SmolStr,
    /// `metadata.namespace`, empty if absent.
    pub(crate) namespace: SmolStr,
    /// Whether the kind is known to be cluster-scoped.
    pub(crate) cluster_scoped: bool,
}

impl ResId {
    /// The namespace for comparisons: `default` if absent, [`NOT_A_NAMESPACE`] for cluster-scoped kinds.
    #[must_use]
    pub(crate) fn effective_namespace(&self) -> &str {
        if self.cluster_scoped {
            NOT_A_NAMESPACE
        } else if self.namespace.is_empty() {
            "default"
        } else {
            &self.namespace
        }
    }

    /// Whether kind, name and effective namespace are equal.
    #[must_use]
    pub(crate) fn same_object(&self, other: &ResId) -> bool {
        self.name == other.name
            && self.gvk == other.gvk
            && self.effective_namespace() == other.effective_namespace()
    }

    /// Whether the parts that `selector` sets are equal.
    pub(crate) fn is_selected_by(&self, selector: &ResId) -> bool {
        (selector.name.is_empty() || selector.name == self.name)
            && (selector.namespace.is_empty() || selector.effective_namespace() == self.effective_namespace())
            && self.gvk.is_selected_by(&selector.gvk)
    }
}

impl fmt::Display for ResId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.name.is_empty() { "[noName]" } else { &self.name };
        let namespace = if self.namespace.is_empty() { "[noNs]" } else { &self.namespace };
        write!(f, "{}/{name}.{namespace}", self.gvk)
    }
}

/// The first kinds of kustomize's legacy order.
pub(crate) static ORDER_FIRST: [&str; 22] = [
    "Namespace",
    "ResourceQuota",
    "StorageClass",
    "CustomResourceDefinition",
    "ServiceAccount",
    "PodSecurityPolicy",
    "Role",
    "ClusterRole",
    "RoleBinding",
    "ClusterRoleBinding",
    "ConfigMap",
    "Secret",
    "Endpoints",
    "Service",
    "LimitRange",
    "PriorityClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Deployment",
    "StatefulSet",
    "CronJob",
    "PodDisruptionBudget",
];

/// The last kinds of kustomize's legacy order.
pub(crate) static ORDER_LAST: [&str; 2] = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];

/// Position of a kind in an order of first and last kinds; 0 for all others.
pub(crate) fn kind_order<A: AsRef<str>, B: AsRef<str>>(kind: &str, first: &[A], last: &[B]) -> i64 {
    // The last occurrence wins, as in a map that is filled in order.
    let place = |list: usize| i64::try_from(list).unwrap_or(i64::MAX);
    if let Some(i) = last.iter().rposition(|k| k.as_ref() == kind) {
        return 1 + place(i);
    }
    first.iter().rposition(|k| k.as_ref() == kind).map_or(0, |i| place(i) - place(first.len()))
}
