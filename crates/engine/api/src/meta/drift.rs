//! Fields that are left alone.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::meta::kustomize::PatchTarget;

/// Fields of some objects that are left alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IgnoreRule {
    /// JSON pointers of the fields.
    pub paths: Vec<String>,
    /// Which objects are meant; all when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<PatchTarget>,
}
