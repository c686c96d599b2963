//! One revision of a release.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::chart::ChartRecord;
use crate::go_time::GoTime;
use crate::hook::{Hook, null_is_empty};

/// The state of a revision.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Status {
    /// Not said.
    #[default]
    Missing,
    /// In doubt.
    Unknown,
    /// The one that runs.
    Deployed,
    /// Removed, record kept.
    Uninstalled,
    /// A later one took its place.
    Superseded,
    /// It did not work.
    Failed,
    /// Being removed.
    Uninstalling,
    /// Being installed.
    PendingInstall,
    /// Being upgraded.
    PendingUpgrade,
    /// Being rolled back.
    PendingRollback,
    /// A word this version does not know.
    Other(String),
}

impl Status {
    /// Helm's word.
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

    /// Whether an action was under way when it was written.
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

/// How it went and when.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Info {
    /// The first install of the release.
    #[serde(default, skip_serializing_if = "GoTime::is_zero")]
    pub first_deployed: GoTime,
    /// This revision.
    #[serde(default, skip_serializing_if = "GoTime::is_zero")]
    pub last_deployed: GoTime,
    /// When it was uninstalled.
    #[serde(default, skip_serializing_if = "GoTime::is_zero")]
    pub deleted: GoTime,
    /// One sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The state.
    #[serde(default, skip_serializing_if = "Status::is_missing")]
    pub status: Status,
    /// What `NOTES.txt` printed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub notes: String,
}

/// How objects were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApplyMethod {
    /// By the server.
    ServerSide,
    /// By patches made here. What Helm 3 did.
    ClientSide,
}

impl ApplyMethod {
    /// Helm's word.
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
    /// How it went and when.
    #[serde(default)]
    pub info: Info,
    /// The chart it was made from.
    #[serde(default)]
    pub chart: ChartRecord,
    /// The values the user gave.
    #[serde(default, deserialize_with = "null_is_empty_map", skip_serializing_if = "Map::is_empty")]
    pub config: Map<String, Value>,
    /// What was rendered, without hooks.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub manifest: String,
    /// The hooks.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<Hook>,
    /// The number of the revision.
    #[serde(default)]
    pub version: i64,
    /// Where its objects go.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// `ssa`, `csa`, or empty in records of Helm 3.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub apply_method: String,
    /// Labels of the record that people added. Not part of the text.
    #[serde(skip)]
    pub labels: BTreeMap<String, String>,
}

fn null_is_empty_map<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Map<String, Value>, D::Error> {
    Ok(Option::<Map<String, Value>>::deserialize(deserializer)?.unwrap_or_default())
}

impl Release {
    /// Whether the server applied its objects.
    pub fn applied_by_server(&self) -> bool {
        self.apply_method == ApplyMethod::ServerSide.as_str()
    }

    /// Changes the state and says why.
    pub fn set_status(&mut self, status: Status, description: impl Into<String>) {
        self.info.status = status;
        self.info.description = description.into();
    }

    /// Whether this is the revision meant.
    pub fn targets(&self, name: &str, namespace: &str, version: i64) -> bool {
        self.name == name && self.namespace == namespace && self.version == version
    }

    /// The test hooks.
    pub fn test_hooks(&self) -> impl Iterator<Item = &Hook> {
        self.hooks.iter().filter(|hook| hook.is_test())
    }
}
