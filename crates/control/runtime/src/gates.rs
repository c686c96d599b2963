//! Feature gates: names and defaults of Flux's controllers.

use std::collections::BTreeMap;
use std::str::FromStr;

/// A switch, its default, and whether it does anything in this engine.
#[derive(Clone, Copy, Debug)]
struct Gate {
    name: &'static str,
    default: bool,
}

const fn gate(name: &'static str, default: bool) -> Gate {
    Gate { name, default }
}

/// All gates of the controllers Fluorite stands in for.
const GATES: &[Gate] = &[
    gate("ObjectLevelWorkloadIdentity", false),
    gate("CacheSecretsAndConfigMaps", false),
    gate("DisableConfigWatchers", false),
    gate("DirectSourceFetch", false),
    gate("AdditiveCELDependencyCheck", false),
    gate("ExternalArtifact", false),
    gate("CancelHealthCheckOnNewRevision", false),
    gate("StrictPostBuildSubstitutions", true),
    gate("DisableStatusPollerCache", true),
    gate("DisableFailFastBehavior", false),
    gate("GroupChangeLog", false),
    gate("MigrateAPIVersion", false),
    gate("DetectDrift", false),
    gate("CorrectDrift", false),
    gate("AllowDNSLookups", false),
    gate("OOMWatch", false),
    gate("AdoptLegacyReleases", false),
    gate("DisableChartDigestTracking", false),
    gate("UseHelm3Defaults", false),
    gate("DefaultToRetryOnFailure", false),
    gate("GitForcePushBranch", true),
    gate("GitShallowClone", true),
    gate("GitAllBranchReferences", true),
    gate("GitSparseCheckout", false),
    gate("FluxStorage", false),
];

/// Why a list of gates cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum GateError {
    #[error("feature gate {0:?}: expected Name=true or Name=false")]
    Shape(String),
    #[error("feature gate {0:?} is not known; known are {known}", known = known())]
    Unknown(String),
}

fn known() -> String {
    GATES.iter().map(|g| g.name).collect::<Vec<_>>().join(", ")
}

/// Which gates are set other than by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeatureGates {
    set: BTreeMap<&'static str, bool>,
}

impl FeatureGates {
    /// Whether a gate is open. A name that is not in the table is closed.
    pub fn enabled(&self, name: &str) -> bool {
        let default = || GATES.iter().find(|g| g.name == name).is_some_and(|g| g.default);
        self.set.get(name).copied().unwrap_or_else(default)
    }

    /// Takes over everything the other one sets.
    pub fn merge(&mut self, other: FeatureGates) {
        self.set.extend(other.set);
    }
}

impl FromStr for FeatureGates {
    type Err = GateError;

    /// `A=true,B=false`
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut set = BTreeMap::new();
        for part in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let shape = || GateError::Shape(part.to_owned());
            let (name, value) = part.split_once('=').ok_or_else(shape)?;
            let gate = GATES
                .iter()
                .find(|g| g.name == name.trim())
                .ok_or_else(|| GateError::Unknown(name.trim().to_owned()))?;
            // Go's reader of booleans.
            let value = match value.trim() {
                "1" | "t" | "T" | "true" | "TRUE" | "True" => true,
                "0" | "f" | "F" | "false" | "FALSE" | "False" => false,
                _ => return Err(shape()),
            };
            set.insert(gate.name, value);
        }
        Ok(FeatureGates { set })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_list() {
        let gates: FeatureGates =
            "ExternalArtifact=true, StrictPostBuildSubstitutions=false".parse().unwrap();
        assert!(gates.enabled("ExternalArtifact"));
        assert!(!gates.enabled("StrictPostBuildSubstitutions"));
        assert!(gates.enabled("GitShallowClone"));
        assert!(!gates.enabled("Nonsense"));
        assert!(matches!("Nonsense=true".parse::<FeatureGates>(), Err(GateError::Unknown(_))));
        assert!(matches!("OOMWatch=maybe".parse::<FeatureGates>(), Err(GateError::Shape(_))));
    }
}
