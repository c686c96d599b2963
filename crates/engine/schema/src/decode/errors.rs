//! Errors of decoding.

use std::fmt;

use thiserror::Error;

/// An error that lenient decoding ignores and strict decoding reports.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum StrictError {
    Unknown(String),
    Duplicate(String),
}

impl fmt::Display for StrictError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StrictError::Unknown(path) => write!(f, "unknown field {}", fl_go::quote(path)),
            StrictError::Duplicate(path) => {
                write!(f, "duplicate field {}", fl_go::quote(path))
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
    /// A value does not match its type, with the message of Go's decoder.
    #[error("{text}")]
    Value { mismatch: TypeMismatch, text: String },
}

/// How a value does not match its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TypeMismatch {
    /// A value of another type.
    Type,
    /// Neither a number nor a string, or a number that is too large, for an int-or-string.
    IntOrString,
    /// An integer that is out of the range of its type.
    Range,
    /// A string that is not base64.
    Base64,
    /// A string that is not valid for its type: a time, a quantity.
    Text,
}

impl DecodeError {
    pub(super) fn syntax(error: &serde_json::Error) -> Self {
        let text = error.to_string();
        let message = text.split(" at line ").next().unwrap_or(&text).to_owned();
        DecodeError::Syntax { message, line: error.line(), column: error.column() }
    }
}
