//! YAML into fields, as `sigs.k8s.io/yaml` and `encoding/json` do it for Helm: names match in any case, numbers and
//! booleans become text where text is wanted, the first value of a wrong type is reported after everything was read.

use std::collections::BTreeMap;

use fl_gotemplate::fmt::display;
use fl_yaml::{Dialect, Node, Options, Scalar};

/// Reads the first document; nothing at all is null.
pub(crate) fn document(data: &[u8]) -> Result<Node, String> {
    or_null(fl_yaml::parse_first(data, &Options::sigs()))
}

/// Reads the first document and builds only what stands under the keys of the root that are wanted.
pub(crate) fn outline(data: &[u8], wanted: fn(&str) -> bool) -> Result<Node, String> {
    or_null(fl_yaml::parse_outline(data, wanted))
}

fn or_null(read: Result<Option<Node>, fl_yaml::Error>) -> Result<Node, String> {
    match read {
        Ok(document) => Ok(document.unwrap_or_default()),
        Err(error) => Err(format!("error converting YAML to JSON: {}", error.go_text(Dialect::Sigs))),
    }
}

/// Whether a node is null.
pub(crate) fn is_null(node: &Node) -> bool {
    node.is_null(Dialect::Sigs)
}

/// Collects the first error of a type.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    error: Option<String>,
}

impl Decoder {
    /// The verdict at the end.
    pub(crate) fn finish(self) -> Result<(), String> {
        match self.error {
            None => Ok(()),
            Some(error) => Err(format!("error unmarshaling JSON: while decoding JSON: json: {error}")),
        }
    }

    fn mismatch(&mut self, node: &Node, target: &str, go_type: &str) -> bool {
        let got = json_kind(node);
        self.error
            .get_or_insert_with(|| format!("cannot unmarshal {got} into Go {target} of type {go_type}"));
        false
    }

    fn field_mismatch(&mut self, node: &Node, field: &str, go_type: &str) -> bool {
        self.mismatch(node, &format!("struct field {field}"), go_type)
    }

    /// Hands every known field of a mapping to `read`, in the order of their names.
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

    /// Text; numbers and booleans are written out.
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

    /// A list of texts.
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

    /// A boolean.
    pub(crate) fn boolean(&mut self, node: &Node, field: &str, into: &mut bool) -> bool {
        match node.scalar(Dialect::Sigs) {
            Some(Scalar::Bool(value)) => *into = value,
            Some(Scalar::Null) => {}
            _ => return self.field_mismatch(node, field, "bool"),
        }
        true
    }

    /// Texts by name.
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

    /// The items of a list; false for null and for what is not a list.
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

/// The text of a scalar where text is wanted; `None` for null and collections.
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

/// What `%v` prints of a value read from JSON.
pub(crate) fn printed(node: &Node) -> String {
    if is_null(node) {
        return "<nil>".into();
    }
    match scalar_text(node) {
        Some(text) => text,
        None => crate::values::Tree::from_yaml(node).map_or_else(|e| e, |tree| display(&tree.to_value())),
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
