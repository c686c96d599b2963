//! What decoding reports.

use std::fmt;

use thiserror::Error;

/// Something lenient decoding passes over and strict decoding refuses.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum StrictError {
    Unknown(String),
    Duplicate(String),
}

impl fmt::Display for StrictError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StrictError::Unknown(path) => write!(f, "unknown field {}", crate::field_error::go_quote(path)),
            StrictError::Duplicate(path) => {
                write!(f, "duplicate field {}", crate::field_error::go_quote(path))
            }
        }
    }
}

/// Why a document does not decode.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The text is not JSON.
    #[error("{message} (line {line}, column {column})")]
    Syntax { message: String, line: usize, column: usize },
    /// A value has the wrong type, in the words of Go's decoder.
    #[error("{0}")]
    Type(String),
}

impl DecodeError {
    pub(super) fn syntax(error: &serde_json::Error) -> Self {
        let text = error.to_string();
        let message = text.split(" at line ").next().unwrap_or(&text).to_owned();
        DecodeError::Syntax { message, line: error.line(), column: error.column() }
    }
}
