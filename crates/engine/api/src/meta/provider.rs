//! Cloud identities.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The cloud whose identity gives access; `generic` takes credentials from a Secret.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum CloudProvider {
    #[default]
    #[serde(rename = "generic")]
    Generic,
    #[serde(rename = "aws")]
    Aws,
    #[serde(rename = "azure")]
    Azure,
    #[serde(rename = "gcp")]
    Gcp,
}
