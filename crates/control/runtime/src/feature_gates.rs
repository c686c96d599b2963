//! Feature gates: names and defaults of Flux's controllers.

use std::collections::BTreeMap;
use std::str::FromStr;

/// A gate, its default, and whether it has an effect in this engine.
#[derive(Clone, Copy, Debug)]
struct Gate {
    name: &'static str,
    default: bool,
    acts: bool,
}

const fn gate(name: &'static str, default: bool) -> Gate {
    Gate { name, default, acts: true }
}

/// A gate of Flux that chooses between two implementations of which this engine has one.
const fn idle(name: &'static str, default: bool) -> Gate {
    Gate { name, default, acts: false }
}

/// All gates of the controllers that Fluorite replaces.
const GATES: &[Gate] = &[
    gate("ObjectLevelWorkloadIdentity", false),
    idle("CacheSecretsAndConfigMaps", false),
    gate("DisableConfigWatchers", false),
    idle("DirectSourceFetch", false),
    gate("AdditiveCELDependencyCheck", false),
    gate("ExternalArtifact", false),
    gate("CancelHealthCheckOnNewRevision", false),
    gate("StrictPostBuildSubstitutions", true),
    idle("DisableStatusPollerCache", true),
    gate("DisableFailFastBehavior", false),
    gate("GroupChangeLog", false),
    gate("MigrateAPIVersion", false),
    idle("DetectDrift", false),
    idle("CorrectDrift", false),
    idle("AllowDNSLookups", false),
    gate("OOMWatch", false),
    idle("AdoptLegacyReleases", false),
    gate("DisableChartDigestTracking", false),
    gate("UseHelm3Defaults", false),
    gate("DefaultToRetryOnFailure", false),
    idle("GitForcePushBranch", true),
    idle("GitShallowClone", true),
    idle("GitAllBranchReferences", true),
    idle("GitSparseCheckout", false),
    idle("FluxStorage", false),
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

/// Gates that differ from their default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeatureGates {
    set: BTreeMap<&'static str, bool>,
}

impl FeatureGates {
    /// Whether a gate is enabled. Unknown names are not.
    pub fn enabled(&self, name: &str) -> bool {
        let default = || GATES.iter().find(|g| g.name == name).is_some_and(|g| g.default);
        self.set.get(name).copied().unwrap_or_else(default)
    }

    /// Gates set to another value than their default that have no effect here; reported at start-up.
    pub fn without_effect(&self) -> impl Iterator<Item = &'static str> + '_ {
        let idle =
            |name: &str, value: bool| GATES.iter().any(|g| g.name == name && !g.acts && g.default != value);
        self.set.iter().filter(move |(name, value)| idle(name, **value)).map(|(name, _)| *name)
    }

    /// Merges another set of gates into this one.
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
            // The spellings of Go's `strconv.ParseBool`.
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
        let told: FeatureGates = "GitShallowClone=false,OOMWatch=true,DetectDrift=false".parse().unwrap();
        assert_eq!(told.without_effect().collect::<Vec<_>>(), ["GitShallowClone"]);
        assert!(matches!("Nonsense=true".parse::<FeatureGates>(), Err(GateError::Unknown(_))));
        assert!(matches!("OOMWatch=maybe".parse::<FeatureGates>(), Err(GateError::Shape(_))));
    }
}
