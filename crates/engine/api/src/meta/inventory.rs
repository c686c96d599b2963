//! Inventories of managed objects.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The managed objects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceInventory {
    /// The entries.
    pub entries: Vec<ResourceRef>,
}

/// One managed object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceRef {
    /// The object as `namespace_name_group_kind`.
    pub id: String,
    /// API version of the object.
    pub v: String,
}
