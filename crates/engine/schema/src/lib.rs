//! Structural schemas as Kubernetes means them: prune, default, validate.

mod field_error;

pub use field_error::{FieldError, FieldErrorKind};
