//! Errors about fields, with the messages of Kubernetes' `field.Error`.

use std::fmt;

use serde_json::Value;

use crate::print::print_value;

/// Kind of a field error, named as in Kubernetes' `field.ErrorType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldErrorKind {
    NotFound,
    Required,
    Duplicate,
    Invalid,
    NotSupported,
    Forbidden,
    TooLong,
    TooMany,
    Internal,
    TypeInvalid,
}

impl FieldErrorKind {
    /// The `reason` of a Status cause.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::NotFound => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::Internal => "InternalError",
            Self::TypeInvalid => "FieldValueTypeInvalid",
        }
    }

    /// The beginning of the message.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::NotFound => "Not found",
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::Internal => "Internal error",
        }
    }
}

/// An error about one field.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldError {
    pub kind: FieldErrorKind,
    /// Path as Kubernetes writes it: `spec.containers[0].name`, `data[key]`.
    pub field: String,
    /// The invalid value as it is printed (quoted where Go quotes it); `None` if the message has no value.
    pub value: Option<String>,
    pub detail: String,
}

impl FieldError {
    /// An error of `kind` about `field`; `value` is printed as in Go's field errors.
    pub fn new(
        kind: FieldErrorKind,
        field: impl Into<String>,
        value: Option<&Value>,
        detail: impl Into<String>,
    ) -> Self {
        Self { kind, field: field.into(), value: value.map(print_value), detail: detail.into() }
    }

    pub fn required(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Required, field, None, detail)
    }

    pub fn invalid(field: impl Into<String>, value: &Value, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Invalid, field, Some(value), detail)
    }

    pub fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Forbidden, field, None, detail)
    }

    pub fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Self::new(FieldErrorKind::Duplicate, field, Some(value), "")
    }

    pub fn not_found(field: impl Into<String>, value: &Value) -> Self {
        Self::new(FieldErrorKind::NotFound, field, Some(value), "")
    }

    /// `supported` values are printed in the given order, each quoted.
    pub fn not_supported(field: impl Into<String>, value: &Value, supported: &[&str]) -> Self {
        let quoted: Vec<String> = supported.iter().map(|s| format!("{s:?}")).collect();
        let detail = if quoted.is_empty() {
            String::new()
        } else {
            format!("supported values: {}", quoted.join(", "))
        };
        Self::new(FieldErrorKind::NotSupported, field, Some(value), detail)
    }

    pub fn too_long(field: impl Into<String>, max: usize) -> Self {
        Self::new(FieldErrorKind::TooLong, field, None, format!("may not be more than {max} bytes"))
    }

    /// The message without the field: what a Status cause carries.
    #[must_use]
    pub fn body(&self) -> String {
        let mut out = self.kind.title().to_owned();
        if let Some(value) = &self.value {
            out.push_str(": ");
            out.push_str(value);
        }
        if !self.detail.is_empty() {
            out.push_str(": ");
            out.push_str(&self.detail);
        }
        out
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}
