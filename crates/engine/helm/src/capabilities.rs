//! Cluster capabilities: the Kubernetes version and the API versions that templates see.

use crate::error::Error;

/// A Kubernetes version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KubeVersion {
    /// The version with a leading `v` and as many numbers as were given.
    pub version: String,
    /// Major version.
    pub major: String,
    /// Minor version.
    pub minor: String,
}

impl KubeVersion {
    /// Parses `1.30`, `v1.30.2` or `1.30.2-gke.5`: two or more numbers. A suffix is dropped.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let bad = || Error::BadKubeVersion { text: text.to_owned() };
        let trimmed = text.trim_matches(|c: char| c.is_whitespace());
        let numbers = trimmed.strip_prefix('v').unwrap_or(trimmed);
        let end = numbers.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(numbers.len());
        // Helm's pattern takes any number of `.number` groups and drops the rest.
        let numbers = &numbers[..end];
        let mut parts = Vec::new();
        for part in numbers.split('.').take_while(|part| !part.is_empty()) {
            if parts.is_empty() && part.len() > 1 && part.starts_with('0') {
                return Err(bad());
            }
            parts.push(part.parse::<u64>().map_err(|_| bad())?);
        }
        if parts.is_empty() {
            return Err(bad());
        }
        if parts.len() < 2 {
            return Err(Error::ShortKubeVersion { text: text.to_owned() });
        }
        let shown: Vec<String> = parts.iter().map(ToString::to_string).collect();
        Ok(Self {
            version: format!("v{}", shown.join(".")),
            major: shown[0].clone(),
            minor: shown[1].clone(),
        })
    }
}

/// Capabilities of the target cluster.
#[derive(Debug, Clone)]
pub struct Capabilities {
    /// The cluster's version.
    pub kube_version: KubeVersion,
    /// Group-versions, and `group/version/Kind` if discovery returned kinds.
    pub api_versions: Vec<String>,
}

/// The Helm release whose behaviour this crate matches.
pub(crate) const HELM_VERSION: &str = "v3.22.0";
/// The version that Helm 4 reports when it is used as a library, as in Flux.
pub(crate) const HELM_4_VERSION: &str = "v4.2";
/// The Go release that built Helm; templates can read it.
pub(crate) const GO_VERSION: &str = "go1.26.8";

impl Default for Capabilities {
    /// The capabilities that `helm template` assumes without a cluster.
    fn default() -> Self {
        Self {
            kube_version: KubeVersion { version: "v1.37.0".into(), major: "1".into(), minor: "37".into() },
            api_versions: DEFAULT_API_VERSIONS.iter().map(ToString::to_string).collect(),
        }
    }
}

/// The group-versions known to the client library of this Helm release, in its order.
const DEFAULT_API_VERSIONS: &[&str] = &[
    "v1",
    "admissionregistration.k8s.io/v1",
    "admissionregistration.k8s.io/v1alpha1",
    "admissionregistration.k8s.io/v1beta1",
    "internal.apiserver.k8s.io/v1alpha1",
    "apps/v1",
    "apps/v1beta1",
    "apps/v1beta2",
    "authentication.k8s.io/v1",
    "authentication.k8s.io/v1alpha1",
    "authentication.k8s.io/v1beta1",
    "authorization.k8s.io/v1",
    "authorization.k8s.io/v1beta1",
    "autoscaling/v1",
    "autoscaling/v2",
    "batch/v1",
    "batch/v1beta1",
    "certificates.k8s.io/v1",
    "certificates.k8s.io/v1beta1",
    "certificates.k8s.io/v1alpha1",
    "coordination.k8s.io/v1alpha2",
    "coordination.k8s.io/v1beta1",
    "coordination.k8s.io/v1",
    "discovery.k8s.io/v1",
    "discovery.k8s.io/v1beta1",
    "events.k8s.io/v1",
    "events.k8s.io/v1beta1",
    "extensions/v1beta1",
    "flowcontrol.apiserver.k8s.io/v1",
    "flowcontrol.apiserver.k8s.io/v1beta1",
    "flowcontrol.apiserver.k8s.io/v1beta2",
    "flowcontrol.apiserver.k8s.io/v1beta3",
    "lifecycle.k8s.io/v1alpha1",
    "networking.k8s.io/v1",
    "networking.k8s.io/v1beta1",
    "node.k8s.io/v1",
    "node.k8s.io/v1alpha1",
    "node.k8s.io/v1beta1",
    "policy/v1",
    "policy/v1beta1",
    "rbac.authorization.k8s.io/v1",
    "rbac.authorization.k8s.io/v1beta1",
    "rbac.authorization.k8s.io/v1alpha1",
    "resource.k8s.io/v1",
    "resource.k8s.io/v1beta2",
    "resource.k8s.io/v1beta1",
    "resource.k8s.io/v1alpha3",
    "scheduling.k8s.io/v1alpha3",
    "scheduling.k8s.io/v1beta1",
    "scheduling.k8s.io/v1",
    "storage.k8s.io/v1beta1",
    "storage.k8s.io/v1",
    "storage.k8s.io/v1alpha1",
    "storagemigration.k8s.io/v1",
    "storagemigration.k8s.io/v1beta1",
    "apiextensions.k8s.io/v1beta1",
    "apiextensions.k8s.io/v1",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_keeps_its_number_count() {
        for (text, want) in [
            ("1.31", "v1.31"),
            ("v1.29.1-eks-abc+x", "v1.29.1"),
            ("1.30.2.4", "v1.30.2.4"),
            (" 1.2 ", "v1.2"),
        ] {
            assert_eq!(KubeVersion::parse(text).expect("a version").version, want);
        }
        for bad in ["", "1", "v", "abc", "1.x", "01.2"] {
            assert!(KubeVersion::parse(bad).is_err(), "{bad}");
        }
    }
}
