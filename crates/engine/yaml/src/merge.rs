//! Merge keys (`<<`), keys that are not strings, duplicate keys.

use smol_str::SmolStr;
use thin_vec::ThinVec;

use crate::error::{Error, Stage};
use crate::go_syntax::go_syntax;
use crate::map::{Entry, Map};
use crate::node::{Node, Tag, Value};
use crate::number;
use crate::options::{Duplicates, Options};
use crate::resolve::{Dialect, Scalar, resolve_node};

pub(crate) fn is_merge_key(key: &Node, dialect: Dialect) -> bool {
    key.as_text() == Some("<<")
        && match key.tag {
            Tag::Merge => true,
            Tag::Auto => !key.is_quoted(),
            Tag::NonSpecific => dialect == Dialect::Sigs || !key.is_quoted(),
            _ => false,
        }
}

fn merge_needs_maps(key: &Node) -> Error {
    at(key, "map merge requires map or sequence of maps as the value")
}

fn at(node: &Node, message: impl Into<String>) -> Error {
    Error::at(Stage::Decoder, node.line().saturating_sub(1), node.column().saturating_sub(1), message)
}

/// The mappings of a merge key, in order of precedence.
fn sources(key: &Node, value: Node) -> Result<Vec<Map>, Error> {
    match value.value {
        Value::Map(map) => Ok(vec![map]),
        Value::Seq(items) => items
            .into_iter()
            .map(|item| if let Value::Map(map) = item.value { Ok(map) } else { Err(merge_needs_maps(key)) })
            .collect(),
        Value::Scalar(_) => Err(merge_needs_maps(key)),
    }
}

/// Position of a key among entries.
pub(crate) fn find(entries: &[Entry], name: &str) -> Option<usize> {
    entries
        .iter()
        .position(|e| matches!(&e.key.value, Value::Scalar(t) if t.len() == name.len() && t.as_str() == name))
}

/// Merges into a mapping that is still being parsed (the entries from `start` on): later entries win.
pub(crate) fn merge_now(
    entries: &mut Vec<Entry>,
    start: usize,
    key: &Node,
    value: Node,
    options: &Options,
) -> Result<(), Error> {
    for source in sources(key, value)?.into_iter().rev() {
        for Entry { key, value } in source {
            let Some(at) = key.as_text().and_then(|name| find(&entries[start..], name)) else {
                entries.push(Entry { key, value });
                continue;
            };
            let there = &mut entries[start + at];
            if options.duplicates == Duplicates::Refuse {
                return Err(duplicate(&there.key, &key, &value, options.dialect));
            }
            there.value = value;
        }
    }
    Ok(())
}

/// Merges like kustomize, after a mapping is complete: its own keys win and keep their position, merged ones
/// follow.
pub(crate) fn merge_finished(map: Map) -> Result<Map, Error> {
    let mut merge = None;
    let mut own: ThinVec<Entry> = ThinVec::with_capacity(map.len());
    for entry in map {
        if is_merge_key(&entry.key, Dialect::V3) {
            if merge.is_some() {
                return Err(at(&entry.key, "duplicate merge key"));
            }
            merge = Some(entry);
        } else {
            own.push(entry);
        }
    }
    let mut result = Map::default();
    std::mem::swap(result.entries_mut(), &mut own);
    let own_keys = result.len();
    let Some(Entry { key, value }) = merge else { return Ok(result) };
    for source in sources(&key, value)?.into_iter().rev() {
        for Entry { key, value } in source {
            match key.as_text().and_then(|name| result.position(name)) {
                Some(at) if at < own_keys => {}
                Some(at) => result.entries_mut()[at].value = value,
                None => result.push(key, value),
            }
        }
    }
    Ok(result)
}

/// Converts a key to a string like `sigs.k8s.io/yaml`. Its value is for the error message.
pub(crate) fn make_string_key(key: &mut Node, value: &Node) -> Result<(), Error> {
    if !key.is_scalar() {
        return Err(at(key, format!("invalid map key: {}", go_syntax(key))));
    }
    let unsupported = |key: &Node, go_type: &str| {
        let (shown, value) = (go_syntax(key), go_syntax(value));
        let mut error =
            at(key, format!("unsupported map key of type: {go_type}, key: {shown}, value: {value}"));
        error.stage = Stage::Converter;
        error
    };
    let text = match resolve_node(key, Dialect::Sigs)? {
        Scalar::Str(_) => None,
        Scalar::Bool(b) => Some(SmolStr::new_static(if b { "true" } else { "false" })),
        Scalar::Int(i) => Some(smol_str::format_smolstr!("{i}")),
        Scalar::Float(f) => {
            let mut text = String::new();
            number::push_float32(&mut text, f);
            Some(SmolStr::from(text))
        }
        Scalar::Binary(bytes) => Some(SmolStr::from(String::from_utf8_lossy(&bytes))),
        Scalar::Null => return Err(unsupported(key, "%!s(<nil>)")),
        Scalar::Uint(_) => return Err(unsupported(key, "uint64")),
        Scalar::Timestamp(_) => None,
    };
    if let Some(text) = text {
        key.value = Value::Scalar(text);
        key.tag = Tag::Str;
    } else if key.tag == Tag::Auto && !key.is_quoted() {
        key.tag = Tag::Str;
    }
    Ok(())
}

pub(crate) fn duplicate(first: &Node, again: &Node, value: &Node, dialect: Dialect) -> Error {
    let name = again.as_text().unwrap_or_default();
    let (message, line) = match dialect {
        Dialect::V3 => {
            (format!("mapping key {name:?} already defined at line {}", first.line()), again.line())
        }
        Dialect::Sigs => (format!("key {name:?} already set in map"), value.line()),
    };
    Error::at(Stage::Duplicate, line.saturating_sub(1), again.column().saturating_sub(1), message)
}
