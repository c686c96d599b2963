//! References from one object to another.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Names an object by kind, name, and where needed API version and namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectReference {
    /// `group/version`, or `version` alone for the core group; the referrer's default group when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// The kind.
    pub kind: String,
    /// The name.
    pub name: String,
    /// The namespace; the referrer's when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

impl ObjectReference {
    /// The namespace of the referenced object; `own` is that of the referring one.
    #[must_use]
    pub fn namespace_or<'a>(&'a self, own: &'a str) -> &'a str {
        self.namespace.as_deref().filter(|n| !n.is_empty()).unwrap_or(own)
    }

    /// The API group named by `apiVersion`, if one is named.
    #[must_use]
    pub fn group(&self) -> Option<&str> {
        self.api_version.as_deref().filter(|v| !v.is_empty()).map(api_group)
    }
}

impl fmt::Display for ObjectReference {
    /// `Kind/namespace/name`, or `Kind/name` without a namespace, as Flux writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{}/{namespace}/{}", self.kind, self.name),
            None => write!(f, "{}/{}", self.kind, self.name),
        }
    }
}

/// The API group of an `apiVersion`; empty for the core group.
#[must_use]
pub fn api_group(api_version: &str) -> &str {
    split_api_version(api_version).0
}

/// `apps/v1` into `("apps", "v1")`, `v1` into `("", "v1")`.
#[must_use]
pub fn split_api_version(api_version: &str) -> (&str, &str) {
    api_version.rsplit_once('/').unwrap_or(("", api_version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reference_has_namespace_and_group() {
        let reference = ObjectReference {
            api_version: Some("openfluxcd.ocm.software/v1alpha1".to_owned()),
            kind: "Artifact".to_owned(),
            name: "app".to_owned(),
            namespace: None,
        };
        assert_eq!(reference.group(), Some("openfluxcd.ocm.software"));
        assert_eq!(reference.namespace_or("team"), "team");
        assert_eq!(reference.to_string(), "Artifact/app");
        assert_eq!(split_api_version("v1"), ("", "v1"));
    }
}
