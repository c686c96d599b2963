//! Errors of finding or changing a field of an object.

use smol_str::SmolStr;

use crate::selector::SelectorError;
use crate::tree::NotAScalar;

/// Why a field of an object cannot be found or changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FieldError {
    #[error("wrong node kind: expected {expected} but got {found}")]
    WrongKind { expected: &'static str, found: &'static str },
    #[error(transparent)]
    NotAScalar(#[from] NotAScalar),
    #[error("expected a mapping")]
    NotAMapping,
    #[error("subjects: expected a sequence")]
    Subjects,
    #[error("invalid map key `{0}`: not a string")]
    MapKey(String),
    #[error("invalid value type, expected a string")]
    NotAString,
    #[error("empty key")]
    EmptyKey,
    /// A step of a path in brackets is not `[name=value]`.
    #[error("`{0}` must contain fieldName=fieldValue for the element to match")]
    Condition(String),
    #[error("array index {0} cannot be negative")]
    NegativeIndex(String),
    #[error("a wildcard is not supported here")]
    Wildcard,
    #[error("index {index} specified but only {count} elements found")]
    IndexOutOfRange { index: usize, count: usize },
    #[error("`{0}` is no index of a list")]
    NotAnIndex(SmolStr),
    #[error("the list has no item {0}")]
    NoItem(usize),
    /// The pattern of a condition is not a value that it matches.
    #[error("cannot create an element for `{0}`: it would not match itself")]
    NoSelfMatch(SmolStr),
    #[error(transparent)]
    Selector(#[from] SelectorError),
    /// The data inside of a string field.
    #[error(transparent)]
    EmbeddedData(#[from] fl_yaml::Error),
    #[error("delimiter option can only be used with scalar nodes")]
    Delimiter,
    #[error("unable to {verb} field \"{path}\" in replacement target")]
    TargetNotFound { verb: &'static str, path: String },
    #[error("unable to {verb} field \"{path}\" in replacement target: {source}")]
    Target { verb: &'static str, path: String, source: Box<FieldError> },
    #[error("expected a string or a mapping")]
    Reference,
    #[error("path config error; no 'name' field in node")]
    NoName,
    #[error("found multiple possible referrals for `{name}`: {ids}")]
    AmbiguousReference { name: String, ids: String },
}
