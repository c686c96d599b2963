//! History of applied states.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One applied state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// Digest of what was applied.
    pub digest: String,
    /// When this was first applied.
    pub first_reconciled: Timestamp,
    /// When this was last applied.
    pub last_reconciled: Timestamp,
    /// How long that took.
    pub last_reconciled_duration: String,
    /// How it ended.
    pub last_reconciled_status: String,
    /// Further facts by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<BTreeMap<String, String>>,
    /// How often it was applied.
    pub total_reconciliations: i64,
}
