//! Paths and error lists for validation, in the shape of Kubernetes' `field` package.

use fl_schema::{FieldError, FieldErrorKind};
use serde_json::{Map, Value};

/// The path of a field: `spec.containers[0].name`, `data[key]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Path(String);

impl Path {
    pub(crate) fn new(root: &str) -> Self {
        Self(root.to_owned())
    }

    pub(crate) fn child(&self, name: &str) -> Self {
        if self.0.is_empty() { Self(name.to_owned()) } else { Self(format!("{}.{name}", self.0)) }
    }

    /// A nested field: `path.at("resources.limits")`.
    pub(crate) fn at(&self, names: &str) -> Self {
        self.child(names)
    }

    pub(crate) fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn key(&self, key: &str) -> Self {
        Self([&self.0, "[", key, "]"].concat())
    }
}

/// The validation errors of an object.
#[derive(Debug, Default)]
pub(crate) struct Errors(pub(crate) Vec<FieldError>);

impl Errors {
    pub(crate) fn push(&mut self, error: FieldError) {
        self.0.push(error);
    }

    pub(crate) fn required(&mut self, path: &Path, detail: impl Into<String>) {
        self.push(FieldError::required(path.0.as_str(), detail));
    }

    pub(crate) fn invalid(&mut self, path: &Path, value: impl Into<Value>, detail: impl Into<String>) {
        self.push(FieldError::invalid(path.0.as_str(), &value.into(), detail));
    }

    /// An `Invalid` with a value that is already printed: for Go values that are not JSON.
    pub(crate) fn invalid_printed(
        &mut self,
        path: &Path,
        value: impl Into<String>,
        detail: impl Into<String>,
    ) {
        self.push(FieldError {
            kind: FieldErrorKind::Invalid,
            field: path.0.clone(),
            value: Some(value.into()),
            detail: detail.into(),
        });
    }

    /// An `Invalid` without a value.
    pub(crate) fn invalid_omitted(&mut self, path: &Path, detail: impl Into<String>) {
        self.push(FieldError {
            kind: FieldErrorKind::Invalid,
            field: path.0.clone(),
            value: None,
            detail: detail.into(),
        });
    }

    pub(crate) fn forbidden(&mut self, path: &Path, detail: impl Into<String>) {
        self.push(FieldError::forbidden(path.0.as_str(), detail));
    }

    pub(crate) fn duplicate(&mut self, path: &Path, value: impl Into<Value>) {
        self.push(FieldError::duplicate(path.0.as_str(), &value.into()));
    }

    pub(crate) fn not_found(&mut self, path: &Path, value: impl Into<Value>) {
        self.push(FieldError::not_found(path.0.as_str(), &value.into()));
    }

    pub(crate) fn too_long(&mut self, path: &Path, max: usize) {
        self.push(FieldError::too_long(path.0.as_str(), max));
    }

    pub(crate) fn too_many(&mut self, path: &Path, actual: usize, max: usize) {
        self.push(FieldError::new(
            FieldErrorKind::TooMany,
            path.0.as_str(),
            Some(&Value::from(actual)),
            format!("must have at most {max} {}", if max == 1 { "item" } else { "items" }),
        ));
    }

    /// `supported` is printed in the given order: sorted where upstream has a set, in its order where it has
    /// a list.
    pub(crate) fn not_supported(&mut self, path: &Path, value: impl Into<Value>, supported: &[&str]) {
        self.push(FieldError::not_supported(path.0.as_str(), &value.into(), supported));
    }

    /// Like [`Errors::not_supported`], with a value that is already printed: for Go values that are not JSON.
    pub(crate) fn not_supported_printed(
        &mut self,
        path: &Path,
        value: impl Into<String>,
        supported: &[&str],
    ) {
        let mut error = FieldError::not_supported(path.0.as_str(), &Value::Null, supported);
        error.value = Some(value.into());
        self.push(error);
    }

    /// One `Invalid` per message about `value`.
    pub(crate) fn each_invalid(&mut self, path: &Path, value: &str, messages: &[String]) {
        for message in messages {
            self.invalid(path, value, message.as_str());
        }
    }

    /// Rejects a value that is not in `supported`.
    pub(crate) fn one_of(&mut self, path: &Path, value: &str, supported: &[&str]) {
        if !supported.contains(&value) {
            self.not_supported(path, value, supported);
        }
    }

    pub(crate) fn non_negative(&mut self, path: &Path, value: &Value) {
        if let Some(number) = value.as_i64().filter(|n| *n < 0) {
            self.invalid(path, number, "must be greater than or equal to 0");
        }
    }

    /// Rejects the change of an immutable field; prints the new value.
    pub(crate) fn immutable(&mut self, path: &Path, new: &Value, old: &Value) {
        if new != old {
            self.invalid(path, new.clone(), "field is immutable");
        }
    }
}

/// The string of a field, empty when absent.
pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// The list of a field, empty when absent.
pub(crate) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// The entries of the map of a field, sorted by key.
pub(crate) fn entries<'a>(value: &'a Value, key: &str) -> Vec<(&'a str, &'a Value)> {
    let mut out: Vec<_> =
        value[key].as_object().into_iter().flatten().map(|(k, v)| (k.as_str(), v)).collect();
    out.sort_unstable_by_key(|(k, _)| *k);
    out
}

pub(crate) fn is_set(value: &Value, key: &str) -> bool {
    !value[key].is_null()
}

/// The map of a field, created when absent or null.
pub(crate) fn map_mut<'a>(value: &'a mut Value, key: &str) -> Option<&'a mut Map<String, Value>> {
    let map = value.as_object_mut()?;
    let child = map.entry(key).or_insert_with(|| Value::Object(Map::new()));
    if child.is_null() {
        *child = Value::Object(Map::new());
    }
    child.as_object_mut()
}
