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
            StrictError::Unknown(path) => write!(f, "unknown field {}", fl_golang::quote(path)),
            StrictError::Duplicate(path) => {
                write!(f, "duplicate field {}", fl_golang::quote(path))
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
    /// A value does not fit its type, in the words of Go's decoder.
    #[error("{text}")]
    Value { misfit: Misfit, text: String },
}

/// In which way a value does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misfit {
    /// A value of another type.
    Type,
    /// A value that is neither a number nor a text, or a number that is too large, where either may stand.
    IntOrString,
    /// A whole number that is too large for its type.
    Range,
    /// A text that is not base64.
    Base64,
    /// A text that does not follow the rules of its type: a time, a quantity.
    Text,
}

impl DecodeError {
    pub(super) fn syntax(error: &serde_json::Error) -> Self {
        let text = error.to_string();
        let message = text.split(" at line ").next().unwrap_or(&text).to_owned();
        DecodeError::Syntax { message, line: error.line(), column: error.column() }
    }
}
