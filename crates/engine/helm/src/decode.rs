//! YAML into typed fields, as `sigs.k8s.io/yaml` and `encoding/json` decode it for Helm: names match
//! case-insensitively, numbers and booleans become strings for string fields, and the first type error is
//! reported after everything was read.

use std::collections::BTreeMap;

use fl_gotemplate::fmt::display;
use fl_yaml::{Dialect, Node, Options, Scalar};

/// Error of decoding a YAML document, with the messages of `sigs.k8s.io/yaml`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// Invalid YAML; the message is that of go-yaml.
    #[error("error converting YAML to JSON: {0}")]
    Yaml(String),
    /// A number that JSON cannot represent.
    #[error("error converting YAML to JSON: json: unsupported value: {0}")]
    UnsupportedValue(&'static str),
    /// A value of the wrong type.
    #[error(
        "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {found} into Go {target} of type {go_type}"
    )]
    Type {
        /// JSON type of the value.
        found: &'static str,
        /// `value`, or `struct field` and its name.
        target: String,
        /// The expected Go type.
        go_type: String,
    },
    /// An invalid time.
    #[error(
        "error unmarshaling JSON: while decoding JSON: parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": \
         cannot parse {rest:?} as {part:?}"
    )]
    Time {
        /// The value.
        text: String,
        /// The unparsed rest.
        rest: String,
        /// The part of Go's layout that did not match.
        part: &'static str,
    },
    /// A list of `Chart.yaml` with a null entry.
    #[error("validation: {0} must not contain empty or null nodes")]
    NullEntry(&'static str),
}

/// Parses the first document; empty input is null.
pub(crate) fn document(data: &[u8]) -> Result<Node, DecodeError> {
    or_null(fl_yaml::parse_first(data, &Options::sigs()))
}

/// Parses the first document and builds only the values of those root keys that `wanted` accepts.
pub(crate) fn outline(data: &[u8], wanted: fn(&str) -> bool) -> Result<Node, DecodeError> {
    or_null(fl_yaml::parse_outline(data, wanted))
}

fn or_null(read: Result<Option<Node>, fl_yaml::Error>) -> Result<Node, DecodeError> {
    match read {
        Ok(document) => Ok(document.unwrap_or_default()),
        Err(error) => Err(DecodeError::Yaml(error.go_text(Dialect::Sigs))),
    }
}

/// Whether a node is null.
pub(crate) fn is_null(node: &Node) -> bool {
    node.is_null(Dialect::Sigs)
}

/// Decodes fields and keeps the first type error.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    error: Option<DecodeError>,
}

impl Decoder {
    /// Returns the first type error, if any.
    pub(crate) fn finish(self) -> Result<(), DecodeError> {
        self.error.map_or(Ok(()), Err)
    }

    fn mismatch(&mut self, node: &Node, target: &str, go_type: &str) -> bool {
        self.error.get_or_insert_with(|| DecodeError::Type {
            found: json_kind(node),
            target: target.to_owned(),
            go_type: go_type.to_owned(),
        });
        false
    }

    fn field_mismatch(&mut self, node: &Node, field: &str, go_type: &str) -> bool {
        self.mismatch(node, &format!("struct field {field}"), go_type)
    }

    /// Calls `read` for every known field of a mapping, in the order of their names.
    pub(crate) fn fields(
        &mut self,
        node: &Node,
        go_type: &str,
        at: &str,
        known: &[&'static str],
        mut read: impl FnMut(&mut Self, &'static str, &Node) -> bool,
    ) {
        let Some(map) = node.as_map() else {
            if !is_null(node) {
                if at.contains('.') {
                    self.field_mismatch(node, at, go_type);
                } else {
                    self.mismatch(node, "value", go_type);
                }
            }
            return;
        };
        let mut entries: Vec<_> = map.iter().filter_map(|e| Some((e.name()?, &e.value))).collect();
        entries.sort_by(|a, b| a.0.cmp(b.0));
        for (name, value) in entries {
            let exact = known.iter().find(|k| **k == name);
            if let Some(field) = exact.or_else(|| known.iter().find(|k| k.eq_ignore_ascii_case(name))) {
                read(self, field, value);
            }
        }
    }

    /// Decodes a string; numbers and booleans are formatted.
    pub(crate) fn string(&mut self, node: &Node, parent: &str, field: &str, into: &mut String) -> bool {
        if is_null(node) {
            return true;
        }
        match scalar_text(node) {
            Some(text) => {
                *into = text;
                true
            }
            None => self.field_mismatch(node, &format!("{parent}.{field}"), "string"),
        }
    }

    /// Decodes a list of strings.
    pub(crate) fn strings(&mut self, node: &Node, field: &str, into: &mut Vec<String>) -> bool {
        into.clear();
        self.items(node, field, "[]string", |d, item| {
            let mut text = String::new();
            match scalar_text(item) {
                Some(found) => text = found,
                None if is_null(item) => {}
                None => drop(d.field_mismatch(item, field, "string")),
            }
            into.push(text);
        })
    }

    /// Decodes a boolean.
    pub(crate) fn boolean(&mut self, node: &Node, field: &str, into: &mut bool) -> bool {
        match node.scalar(Dialect::Sigs) {
            Some(Scalar::Bool(value)) => *into = value,
            Some(Scalar::Null) => {}
            _ => return self.field_mismatch(node, field, "bool"),
        }
        true
    }

    /// Decodes a map of strings.
    pub(crate) fn string_map(
        &mut self,
        node: &Node,
        field: &str,
        into: &mut BTreeMap<String, String>,
    ) -> bool {
        let Some(map) = node.as_map() else {
            return is_null(node) || self.field_mismatch(node, field, "map[string]string");
        };
        for entry in map.iter() {
            let Some(name) = entry.name() else { continue };
            let text = into.entry(name.to_owned()).or_default();
            if is_null(&entry.value) {
                text.clear();
            } else if let Some(value) = scalar_text(&entry.value) {
                *text = value;
            } else {
                self.field_mismatch(&entry.value, field, "string");
            }
        }
        true
    }

    /// Calls `read` for each item of a list; returns false for null and for other types.
    pub(crate) fn items(
        &mut self,
        node: &Node,
        field: &str,
        go_type: &str,
        mut read: impl FnMut(&mut Self, &Node),
    ) -> bool {
        let Some(items) = node.as_seq() else {
            if !is_null(node) {
                self.field_mismatch(node, field, go_type);
            }
            return false;
        };
        items.iter().for_each(|item| read(self, item));
        true
    }
}

/// A scalar as string; `None` for null and collections.
pub(crate) fn scalar_text(node: &Node) -> Option<String> {
    Some(match node.scalar(Dialect::Sigs)? {
        Scalar::Null => return None,
        Scalar::Bool(value) => value.to_string(),
        Scalar::Int(value) => value.to_string(),
        Scalar::Uint(value) => value.to_string(),
        Scalar::Float(value) => fl_gotemplate::fmt::format_float(value, b'g', None),
        Scalar::Str(text) => text.to_owned(),
        Scalar::Timestamp(text) => text,
        Scalar::Binary(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
    })
}

/// A value read from JSON, formatted with Go's `%v`.
pub(crate) fn printed(node: &Node) -> String {
    if is_null(node) {
        return "<nil>".into();
    }
    match scalar_text(node) {
        Some(text) => text,
        None => crate::values::JsonValue::from_yaml(node)
            .map_or_else(|e| e.to_string(), |tree| display(&tree.to_value())),
    }
}

fn json_kind(node: &Node) -> &'static str {
    if node.as_map().is_some() {
        return "object";
    }
    if node.as_seq().is_some() {
        return "array";
    }
    match node.scalar(Dialect::Sigs) {
        Some(Scalar::Bool(_)) => "bool",
        Some(Scalar::Int(_) | Scalar::Uint(_) | Scalar::Float(_)) => "number",
        _ => "string",
    }
}
