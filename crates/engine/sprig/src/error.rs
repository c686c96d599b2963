//! Errors of decoding JSON and YAML, with Go's messages.

use fl_gotemplate::CallError;

/// Error of decoding JSON or YAML text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// Invalid JSON; the message is that of `encoding/json`.
    #[error("{0}")]
    Json(String),
    /// Invalid YAML; the message is that of go-yaml.
    #[error("error converting YAML to JSON: {0}")]
    Yaml(String),
    /// A number that JSON cannot represent.
    #[error("error converting YAML to JSON: json: unsupported value: {0}")]
    UnsupportedValue(String),
    /// A mapping or sequence as key.
    #[error("error converting YAML to JSON: yaml: unsupported map key")]
    MapKey,
    /// A value of the wrong type.
    #[error("json: cannot unmarshal {found} into Go value of type {target}")]
    Type {
        /// JSON type of the value.
        found: &'static str,
        /// The expected Go type.
        target: &'static str,
    },
    /// A value of the wrong type in YAML.
    #[error("error unmarshaling JSON: while decoding JSON: {0}")]
    Unmarshal(Box<DecodeError>),
}

impl From<DecodeError> for CallError {
    fn from(error: DecodeError) -> Self {
        CallError::new(error.to_string())
    }
}
