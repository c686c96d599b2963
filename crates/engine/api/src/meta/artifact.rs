//! Artifacts as sources report them.

use std::collections::BTreeMap;

use fl_types::Digest;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A file in the artifact store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    /// Digest of the artifact file, `algorithm:hex`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(required, regex(pattern = "^[a-z0-9]+(?:[.+_-][a-z0-9]+)*:[a-zA-Z0-9=_-]+$"))]
    pub digest: Option<Digest>,
    /// When it was last updated.
    pub last_update_time: Timestamp,
    /// Facts from upstream, for example OCI annotations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<BTreeMap<String, String>>,
    /// Path of the file in the store.
    pub path: String,
    /// What it was made from, traceable in the source.
    pub revision: String,
    /// Size of the file in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<i64>,
    /// Where the file can be fetched.
    pub url: String,
    /// Sum of the artifact as older versions wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
}
