//! The result of a validation step. The number of passed checks decides which alternative is reported for a
//! failure.

use serde_json::Value;

use crate::field_error::{FieldError, FieldErrorKind};

pub(super) struct ValidationError {
    kind: FieldErrorKind,
    /// Path of the value; `None` for errors about `allOf`, `anyOf`, `oneOf` and `not`.
    path: Option<String>,
    value: Option<String>,
    detail: String,
    /// The validator's message; equal messages are reported once.
    pub(super) text: String,
}

impl ValidationError {
    pub(super) fn new(
        kind: FieldErrorKind,
        path: &str,
        value: Option<String>,
        detail: String,
        text: String,
    ) -> Self {
        Self { kind, path: Some(path.to_owned()), value, detail, text }
    }

    pub(super) fn about(
        kind: FieldErrorKind,
        path: &str,
        value: &Value,
        detail: String,
        text: String,
    ) -> Self {
        let shown = FieldError::new(kind, "", Some(value), "").value;
        Self::new(kind, path, shown, detail, text)
    }

    pub(super) fn invalid(path: &str, value: &Value, text: String) -> Self {
        Self::about(FieldErrorKind::Invalid, path, value, text.clone(), text)
    }

    /// An error of `allOf`, `anyOf`, `oneOf` or `not`, whose path is only in the message.
    pub(super) fn composite(text: String) -> Self {
        Self {
            kind: FieldErrorKind::Invalid,
            path: None,
            value: Some("\"\"".to_owned()),
            detail: text.clone(),
            text,
        }
    }

    pub(super) fn into_field_error(self, prefix: &str) -> FieldError {
        let name = self.path.as_deref().map(|p| p.trim_start_matches('.')).unwrap_or_default();
        let field = match (prefix.is_empty(), name.is_empty()) {
            (true, true) => "<nil>".to_owned(),
            (true, false) => name.to_owned(),
            (false, true) => prefix.to_owned(),
            (false, false) => format!("{prefix}.{name}"),
        };
        FieldError { kind: self.kind, field, value: self.value, detail: self.detail }
    }
}

#[derive(Default)]
pub(super) struct ValidationResult {
    pub(super) errors: Vec<ValidationError>,
    pub(super) matched: usize,
}

impl ValidationResult {
    pub(super) fn of(found: ValidationError) -> Self {
        Self { errors: vec![found], matched: 0 }
    }

    pub(super) fn push(&mut self, found: ValidationError) {
        self.errors.push(found);
    }

    pub(super) fn merge(&mut self, other: ValidationResult) {
        self.errors.extend(other.errors);
        self.matched += other.matched;
    }

    /// Merges the result of a check that was applicable.
    pub(super) fn merge_counted(&mut self, other: ValidationResult) {
        self.merge(other);
        self.matched += 1;
    }
}
