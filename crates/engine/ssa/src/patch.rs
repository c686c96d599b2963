//! The three patch formats that are not apply.

mod json;
mod merge;
mod strategic;

use thiserror::Error;

pub use json::{MAX_OPERATIONS, json_patch};
pub use merge::merge_patch;
pub use strategic::strategic_merge;

/// Why a patch does not apply, with the status the server answers.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PatchError {
    /// The patch is malformed (400).
    #[error("{0}")]
    BadRequest(String),
    /// More operations than allowed (413).
    #[error("{0}")]
    TooLarge(String),
    /// The patch does not fit the object (422).
    #[error("{0}")]
    Unprocessable(String),
    /// Anything else (500).
    #[error("{0}")]
    Failed(String),
}
