//! What one check found, with the count of passed checks that decides which alternative explains a failure best.

use serde_json::Value;

use crate::field_error::{FieldError, FieldErrorKind};

pub(super) struct Found {
    kind: FieldErrorKind,
    /// Path of the value; absent for errors about a whole alternative.
    path: Option<String>,
    value: Option<String>,
    detail: String,
    /// The validator's own sentence; equal sentences are reported once.
    pub(super) text: String,
}

impl Found {
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

    /// An error of allOf, anyOf, oneOf or not: it names its path only in its text.
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
pub(super) struct Outcome {
    pub(super) errors: Vec<Found>,
    pub(super) matched: usize,
}

impl Outcome {
    pub(super) fn one(found: Found) -> Self {
        Self { errors: vec![found], matched: 0 }
    }

    pub(super) fn push(&mut self, found: Found) {
        self.errors.push(found);
    }

    pub(super) fn merge(&mut self, other: Outcome) {
        self.errors.extend(other.errors);
        self.matched += other.matched;
    }

    /// Merges the result of a check that applied.
    pub(super) fn merge_counted(&mut self, other: Outcome) {
        self.merge(other);
        self.matched += 1;
    }
}
