//! Transformers, and their common error with transformer and object.

pub(crate) mod hash;
pub(crate) mod image;
pub(crate) mod json_patch;
pub(crate) mod labels;
pub(crate) mod name;
pub(crate) mod name_reference;
pub(crate) mod namespace;
pub(crate) mod patch;
pub(crate) mod replacement;
pub(crate) mod replica;
pub(crate) mod sort;
pub(crate) mod value_add;
pub(crate) mod variable;

use crate::error::ErrorKind;
use crate::resource::Resource;

/// The result of a transformer.
pub(crate) type TransformResult = Result<(), ErrorKind>;

/// The error of a transformer for an object.
pub(crate) fn failed(transformer: &str, resource: &Resource, reason: impl ToString) -> ErrorKind {
    ErrorKind::Transform {
        transformer: transformer.to_owned(),
        object: resource.id.to_string(),
        reason: reason.to_string(),
    }
}
