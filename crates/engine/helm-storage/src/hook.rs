//! Stored hooks.

use serde::{Deserialize, Serialize};

use fl_go::GoTime;

/// Result of a hook's last run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookPhase(String);

impl HookPhase {
    /// Not run, or the result is unknown.
    pub const UNKNOWN: &str = "Unknown";
    /// Created, not completed.
    pub const RUNNING: &str = "Running";
    /// Succeeded.
    pub const SUCCEEDED: &str = "Succeeded";
    /// Failed.
    pub const FAILED: &str = "Failed";

    /// Helm's name; empty if the hook never ran.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for HookPhase {
    fn from(phase: &str) -> Self {
        Self(phase.to_owned())
    }
}

/// The last run of a hook.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookExecution {
    /// Start time.
    #[serde(default, skip_serializing_if = "GoTime::is_zero")]
    pub started_at: GoTime,
    /// Completion time.
    #[serde(default, skip_serializing_if = "GoTime::is_zero")]
    pub completed_at: GoTime,
    /// Result.
    #[serde(default)]
    pub phase: HookPhase,
}

/// A hook of a release.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hook {
    /// `metadata.name`
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// `kind`
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Template that the hook comes from.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// Manifest text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub manifest: String,
    /// Events at which it runs.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// Its last run.
    #[serde(default)]
    pub last_run: HookExecution,
    /// Weight; lower runs first.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub weight: i64,
    /// Delete policies.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub delete_policies: Vec<String>,
    /// `helm.sh/hook-output-log-policy`.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub output_log_policies: Vec<String>,
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// Go writes `null` for a nil slice.
pub(crate) fn null_is_empty<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::<Vec<T>>::deserialize(deserializer)?.unwrap_or_default())
}

impl Hook {
    /// Whether it runs at an event (`pre-install`, `test`…).
    pub fn runs_at(&self, event: &str) -> bool {
        self.events.iter().any(|e| e == event)
    }

    /// Whether it is a test.
    pub fn is_test(&self) -> bool {
        self.runs_at("test")
    }
}

impl From<&fl_helm::Hook> for Hook {
    fn from(hook: &fl_helm::Hook) -> Self {
        Self {
            name: hook.name.clone(),
            kind: hook.kind.clone(),
            path: hook.path.clone(),
            manifest: hook.manifest.clone(),
            events: hook.events.iter().map(|event| event.name().to_owned()).collect(),
            last_run: HookExecution::default(),
            weight: hook.weight,
            delete_policies: hook.delete_policies.clone(),
            output_log_policies: hook.output_log_policies.clone(),
        }
    }
}
