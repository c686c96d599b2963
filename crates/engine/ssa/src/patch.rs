//! The three patch formats besides apply.

mod json;
mod merge;
mod strategic;

use thiserror::Error;

pub use json::{AccessError, JsonPatchError, MAX_OPERATIONS, json_patch};
pub use merge::merge_patch;
pub use strategic::strategic_merge;

/// Why a patch does not apply, with the HTTP status of the response.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PatchError {
    /// The patch is malformed (400).
    #[error("{0}")]
    BadRequest(String),
    /// More operations than allowed (413).
    #[error("{0}")]
    TooLarge(String),
    /// An operation of a JSON patch does not apply to the object (422).
    #[error(transparent)]
    JsonPatch(#[from] JsonPatchError),
    /// A strategic merge patch has a list of lists (422).
    #[error("lists of lists are not supported")]
    ListOfLists,
    /// Anything else (500).
    #[error("{0}")]
    Failed(String),
}
