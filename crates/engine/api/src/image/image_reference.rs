//! Images with tag and digest.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An image.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageRef {
    /// Digest of the image, when it is tracked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The name.
    pub name: String,
    /// The tag.
    pub tag: String,
}
