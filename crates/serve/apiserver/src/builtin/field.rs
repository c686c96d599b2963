//! Paths and error lists for validation, in the shape of Kubernetes' `field` package.

use fl_schema::{FieldError, FieldErrorKind};
use serde_json::{Map, Value};

/// A place in an object: `spec.containers[0].name`, `data[key]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Path(String);

impl Path {
    pub(super) fn new(root: &str) -> Self {
        Self(root.to_owned())
    }

    pub(super) fn child(&self, name: &str) -> Self {
        if self.0.is_empty() { Self(name.to_owned()) } else { Self(format!("{}.{name}", self.0)) }
    }

    /// Several steps at once: `path.at("resources.limits")`.
    pub(super) fn at(&self, names: &str) -> Self {
        self.child(names)
    }

    pub(super) fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn key(&self, key: &str) -> Self {
        Self([&self.0, "[", key, "]"].concat())
    }
}

/// Collects what is wrong.
#[derive(Debug, Default)]
pub(super) struct Errors(pub(super) Vec<FieldError>);

impl Errors {
    pub(super) fn push(&mut self, error: FieldError) {
        self.0.push(error);
    }

    pub(super) fn required(&mut self, path: &Path, detail: impl Into<String>) {
        self.push(FieldError::required(path.0.as_str(), detail));
    }

    pub(super) fn invalid(&mut self, path: &Path, value: impl Into<Value>, detail: impl Into<String>) {
        self.push(FieldError::invalid(path.0.as_str(), &value.into(), detail));
    }

    /// The printed value is given as it is: for Go values that are not JSON.
    pub(super) fn invalid_printed(
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

    /// An `Invalid` that prints no value at all.
    pub(super) fn invalid_omitted(&mut self, path: &Path, detail: impl Into<String>) {
        self.push(FieldError {
            kind: FieldErrorKind::Invalid,
            field: path.0.clone(),
            value: None,
            detail: detail.into(),
        });
    }

    pub(super) fn forbidden(&mut self, path: &Path, detail: impl Into<String>) {
        self.push(FieldError::forbidden(path.0.as_str(), detail));
    }

    pub(super) fn duplicate(&mut self, path: &Path, value: impl Into<Value>) {
        self.push(FieldError::duplicate(path.0.as_str(), &value.into()));
    }

    pub(super) fn not_found(&mut self, path: &Path, value: impl Into<Value>) {
        self.push(FieldError::not_found(path.0.as_str(), &value.into()));
    }

    pub(super) fn too_long(&mut self, path: &Path, max: usize) {
        self.push(FieldError::too_long(path.0.as_str(), max));
    }

    pub(super) fn too_many(&mut self, path: &Path, actual: usize, max: usize) {
        self.push(FieldError::new(
            FieldErrorKind::TooMany,
            path.0.as_str(),
            Some(&Value::from(actual)),
            format!("must have at most {max} {}", if max == 1 { "item" } else { "items" }),
        ));
    }

    /// `supported` is printed as given: sorted where upstream has a set, in its own order where it has a list.
    pub(super) fn not_supported(&mut self, path: &Path, value: impl Into<Value>, supported: &[&str]) {
        self.push(FieldError::not_supported(path.0.as_str(), &value.into(), supported));
    }

    /// Like [`Errors::not_supported`] with the value printed as it is: for Go values that are not JSON.
    pub(super) fn not_supported_printed(
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
    pub(super) fn each_invalid(&mut self, path: &Path, value: &str, messages: &[String]) {
        for message in messages {
            self.invalid(path, value, message.as_str());
        }
    }

    /// Refuses a value outside of `supported`.
    pub(super) fn one_of(&mut self, path: &Path, value: &str, supported: &[&str]) {
        if !supported.contains(&value) {
            self.not_supported(path, value, supported);
        }
    }

    pub(super) fn non_negative(&mut self, path: &Path, value: &Value) {
        if let Some(number) = value.as_i64().filter(|n| *n < 0) {
            self.invalid(path, number, "must be greater than or equal to 0");
        }
    }

    /// A field that may not change; prints the new value.
    pub(super) fn immutable(&mut self, path: &Path, new: &Value, old: &Value) {
        if new != old {
            self.invalid(path, new.clone(), "field is immutable");
        }
    }
}

/// The text at a field, empty when absent.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// The list at a field, empty when absent.
pub(super) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// The entries of the map at a field, sorted by key as Go's sorted iteration gives them.
pub(super) fn entries<'a>(value: &'a Value, key: &str) -> Vec<(&'a str, &'a Value)> {
    let mut out: Vec<_> =
        value[key].as_object().into_iter().flatten().map(|(k, v)| (k.as_str(), v)).collect();
    out.sort_unstable_by_key(|(k, _)| *k);
    out
}

pub(super) fn is_set(value: &Value, key: &str) -> bool {
    !value[key].is_null()
}

/// The map at a field, for writing; made when absent.
pub(super) fn map_mut<'a>(value: &'a mut Value, key: &str) -> Option<&'a mut Map<String, Value>> {
    let map = value.as_object_mut()?;
    let child = map.entry(key).or_insert_with(|| Value::Object(Map::new()));
    if child.is_null() {
        *child = Value::Object(Map::new());
    }
    child.as_object_mut()
}
