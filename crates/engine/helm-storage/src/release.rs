//! One revision of a release.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::chart::StoredChart;
use crate::hook::{Hook, null_is_empty};
use fl_go::GoTime;

/// Status of a revision.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Status {
    /// No status.
    #[default]
    Missing,
    /// Helm's `unknown`.
    Unknown,
    /// Deployed.
    Deployed,
    /// Uninstalled, with its history kept.
    Uninstalled,
    /// Replaced by a later revision.
    Superseded,
    /// Failed.
    Failed,
    /// Uninstall in progress.
    Uninstalling,
    /// Install in progress.
    PendingInstall,
    /// Upgrade in progress.
    PendingUpgrade,
    /// Rollback in progress.
    PendingRollback,
    /// A status unknown to this version.
    Other(String),
}

impl Status {
    /// Helm's name.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Missing => "",
            Self::Unknown => "unknown",
            Self::Deployed => "deployed",
            Self::Uninstalled => "uninstalled",
            Self::Superseded => "superseded",
            Self::Failed => "failed",
            Self::Uninstalling => "uninstalling",
            Self::PendingInstall => "pending-install",
            Self::PendingUpgrade => "pending-upgrade",
            Self::PendingRollback => "pending-rollback",
            Self::Other(word) => word,
        }
    }

    fn is_missing(&self) -> bool {
        *self == Self::Missing
    }

    /// Whether an action was in progress when it was stored.
    pub fn is_pending(&self) -> bool {
        matches!(self, Self::PendingInstall | Self::PendingUpgrade | Self::PendingRollback)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<String> for Status {
    fn from(word: String) -> Self {
        match word.as_str() {
            "" => Self::Missing,
            "unknown" => Self::Unknown,
            "deployed" => Self::Deployed,
            "uninstalled" => Self::Uninstalled,
            "superseded" => Self::Superseded,
            "failed" => Self::Failed,
            "uninstalling" => Self::Uninstalling,
            "pending-install" => Self::PendingInstall,
            "pending-upgrade" => Self::PendingUpgrade,
            "pending-rollback" => Self::PendingRollback,
            _ => Self::Other(word),
        }
    }
}

impl From<Status> for String {
    fn from(status: Status) -> Self {
        status.as_str().to_owned()
    }
}

/// Status, times and description of a revision.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Info {
    /// Time of the first install.
    #[serde(default, skip_serializing_if = "GoTime::is_zero")]
    pub first_deployed: GoTime,
    /// Time of this revision.
    #[serde(default, skip_serializing_if = "GoTime::is_zero")]
    pub last_deployed: GoTime,
    /// Time of the uninstall.
    #[serde(default, skip_serializing_if = "GoTime::is_zero")]
    pub deleted: GoTime,
    /// One-sentence description.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Status.
    #[serde(default, skip_serializing_if = "Status::is_missing")]
    pub status: Status,
    /// Output of `NOTES.txt`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub notes: String,
}

/// How objects were applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApplyMethod {
    /// Server-side apply.
    ServerSide,
    /// Client-side three-way merge, as in Helm 3.
    ClientSide,
}

impl ApplyMethod {
    /// Helm's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ServerSide => "ssa",
            Self::ClientSide => "csa",
        }
    }
}

/// One revision of a release.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Release {
    /// The release's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Status and times.
    #[serde(default)]
    pub info: Info,
    /// The chart.
    #[serde(default)]
    pub chart: StoredChart,
    /// User values.
    #[serde(default, deserialize_with = "null_is_empty_map", skip_serializing_if = "Map::is_empty")]
    pub config: Map<String, Value>,
    /// The rendered manifest, without hooks.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub manifest: String,
    /// The hooks.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<Hook>,
    /// Revision number.
    #[serde(default)]
    pub version: i64,
    /// Release namespace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// `ssa`, `csa`, or empty in releases of Helm 3.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub apply_method: String,
    /// Labels that users added to the object. Not part of the encoded text.
    #[serde(skip)]
    pub labels: BTreeMap<String, String>,
}

fn null_is_empty_map<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Map<String, Value>, D::Error> {
    Ok(Option::<Map<String, Value>>::deserialize(deserializer)?.unwrap_or_default())
}

impl Release {
    /// Whether its objects were applied with server-side apply.
    pub fn applied_by_server(&self) -> bool {
        self.apply_method == ApplyMethod::ServerSide.as_str()
    }

    /// Sets the status and description.
    pub fn set_status(&mut self, status: Status, description: impl Into<String>) {
        self.info.status = status;
        self.info.description = description.into();
    }

    /// Whether this is the given revision.
    pub fn targets(&self, name: &str, namespace: &str, version: i64) -> bool {
        self.name == name && self.namespace == namespace && self.version == version
    }

    /// The test hooks.
    pub fn test_hooks(&self) -> impl Iterator<Item = &Hook> {
        self.hooks.iter().filter(|hook| hook.is_test())
    }
}
