//! What differs between two values, and where.

use serde_json::Value;

/// One place that differs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Difference {
    pub(super) path: Vec<String>,
    pub(super) details: Vec<Detail>,
}

/// What happened there.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Detail {
    /// Entries of a list or map that were taken away; maps keep the order of their keys.
    Removed(Entries),
    Added(Entries),
    Changed(Value, Value),
    Reordered(Vec<Value>, Vec<Value>),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Entries {
    List(Vec<Value>),
    Map(Vec<(String, Value)>),
}

/// Keys and values of a map by key, whatever the map's own order is.
pub(super) fn sorted(map: &serde_json::Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_by(|a, b| fl_yaml::compare_keys(a.0, b.0));
    entries
}

/// A scalar as YAML writes it, without quotes.
pub(super) fn scalar_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "null".to_owned(),
        other => other.to_string(),
    }
}

fn same_type(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => x.is_f64() == y.is_f64(),
        _ => std::mem::discriminant(a) == std::mem::discriminant(b),
    }
}

/// Values are alike when they would print alike: `1` and `"1"` are, as the reference compares texts.
fn alike(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(x), Value::Array(y)) => x.len() == y.len() && x.iter().zip(y).all(|(x, y)| alike(x, y)),
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len()
                && x.iter().all(|(key, value)| y.get(key).is_some_and(|other| alike(value, other)))
        }
        (Value::Array(_) | Value::Object(_), _) | (_, Value::Array(_) | Value::Object(_)) => false,
        _ => scalar_text(a) == scalar_text(b),
    }
}

pub(super) fn compare(path: &[String], from: &Value, to: &Value) -> Vec<Difference> {
    let changed =
        || vec![Difference { path: path.to_vec(), details: vec![Detail::Changed(from.clone(), to.clone())] }];
    if !same_type(from, to) {
        return changed();
    }
    match (from, to) {
        (Value::Object(a), Value::Object(b)) => maps(path, a, b),
        (Value::Array(a), Value::Array(b)) => lists(path, a, b),
        _ if from != to => changed(),
        _ => Vec::new(),
    }
}

fn below(path: &[String], name: &str) -> Vec<String> {
    let mut path = path.to_vec();
    path.push(name.to_owned());
    path
}

/// The place itself comes before what is deeper in it.
fn with_own(path: &[String], details: Vec<Detail>, mut deeper: Vec<Difference>) -> Vec<Difference> {
    if !details.is_empty() {
        deeper.insert(0, Difference { path: path.to_vec(), details });
    }
    deeper
}

fn maps(
    path: &[String],
    from: &serde_json::Map<String, Value>,
    to: &serde_json::Map<String, Value>,
) -> Vec<Difference> {
    let (mut deeper, mut removed, mut added) = (Vec::new(), Vec::new(), Vec::new());
    for (key, value) in sorted(from) {
        match to.get(key) {
            Some(other) => deeper.extend(compare(&below(path, key), value, other)),
            None => removed.push((key.clone(), value.clone())),
        }
    }
    for (key, value) in sorted(to) {
        if !from.contains_key(key) {
            added.push((key.clone(), value.clone()));
        }
    }
    let mut details = Vec::new();
    if !removed.is_empty() {
        details.push(Detail::Removed(Entries::Map(removed)));
    }
    if !added.is_empty() {
        details.push(Detail::Added(Entries::Map(added)));
    }
    with_own(path, details, deeper)
}

fn lists(path: &[String], from: &[Value], to: &[Value]) -> Vec<Difference> {
    if from.is_empty() && to.is_empty() {
        return Vec::new();
    }
    match identifier(from, to) {
        Some(name) => named_lists(path, &name, from, to),
        None => simple_lists(path, from, to),
    }
}

/// How the entries of two lists are identified.
enum Identifier {
    Field(String),
    /// API version, kind, namespace and name.
    Object,
}

impl Identifier {
    fn name(&self, entry: &Value) -> Option<String> {
        match self {
            Identifier::Field(field) => {
                entry.get(field).filter(|v| !v.is_object() && !v.is_array()).map(scalar_text)
            }
            Identifier::Object => {
                let text = |pointer: &str| entry.pointer(pointer).map(scalar_text);
                let namespace = text("/metadata/namespace").map(|ns| format!("{ns}/")).unwrap_or_default();
                Some(format!(
                    "{}/{}/{namespace}{}",
                    text("/apiVersion")?,
                    text("/kind")?,
                    text("/metadata/name")?
                ))
            }
        }
    }
}

fn identifier(from: &[Value], to: &[Value]) -> Option<Identifier> {
    let distinct = |list: &[Value], key: &str, only_text: bool| {
        let mut seen: Vec<String> = Vec::new();
        for value in list.iter().filter_map(|e| e.get(key)).filter(|v| !only_text || v.is_string()) {
            let text = if value.is_object() || value.is_array() { String::new() } else { scalar_text(value) };
            if !seen.contains(&text) {
                seen.push(text);
            }
        }
        seen.len()
    };
    for key in ["name", "key", "id", "manager"] {
        let has = |list: &[Value]| list.iter().any(|e| e.get(key).is_some());
        if has(from)
            && has(to)
            && distinct(from, key, false) == from.len()
            && distinct(to, key, false) == to.len()
        {
            return Some(Identifier::Field(key.to_owned()));
        }
    }
    // Any other text field identifies entries if it has distinct values for more than three on both sides.
    if from.len() > 3 && from.iter().chain(to).all(Value::is_object) {
        let mut keys: Vec<&String> =
            from.iter().filter_map(Value::as_object).flat_map(|o| o.keys()).collect();
        keys.sort();
        keys.dedup();
        for key in keys {
            if distinct(from, key, true) == from.len()
                && distinct(to, key, true) == to.len()
                && !to.is_empty()
            {
                return Some(Identifier::Field(key.clone()));
            }
        }
    }
    let objects = |list: &[Value]| list.iter().all(|e| Identifier::Object.name(e).is_some());
    (objects(from) && objects(to)).then_some(Identifier::Object)
}

fn named_lists(path: &[String], identifier: &Identifier, from: &[Value], to: &[Value]) -> Vec<Difference> {
    let named = |list: &[Value], name: &str| {
        list.iter().find(|e| identifier.name(e).as_deref() == Some(name)).cloned()
    };
    let (mut deeper, mut removed, mut added) = (Vec::new(), Vec::new(), Vec::new());
    let (mut from_names, mut to_names) = (Vec::new(), Vec::new());
    for entry in from {
        let name = identifier.name(entry).unwrap_or_default();
        match named(to, &name) {
            Some(other) => {
                deeper.extend(compare(&below(path, &name), entry, &other));
                from_names.push(name);
            }
            None => removed.push(entry.clone()),
        }
    }
    for entry in to {
        let name = identifier.name(entry).unwrap_or_default();
        match named(from, &name) {
            Some(_) => to_names.push(name),
            None => added.push(entry.clone()),
        }
    }
    let mut details = Vec::new();
    if from_names != to_names {
        let texts = |names: Vec<String>| names.into_iter().map(Value::String).collect();
        details.push(Detail::Reordered(texts(from_names), texts(to_names)));
    }
    with_own(path, packed(details, removed, added), deeper)
}

fn packed(mut details: Vec<Detail>, removed: Vec<Value>, added: Vec<Value>) -> Vec<Detail> {
    if !removed.is_empty() {
        details.push(Detail::Removed(Entries::List(removed)));
    }
    if !added.is_empty() {
        details.push(Detail::Added(Entries::List(added)));
    }
    details
}

fn simple_lists(path: &[String], from: &[Value], to: &[Value]) -> Vec<Difference> {
    if let ([a], [b]) = (from, to) {
        return compare(&below(path, "0"), a, b);
    }
    let count = |list: &[Value], value: &Value| list.iter().filter(|v| alike(v, value)).count();
    let missing = |list: &[Value], other: &[Value]| {
        let mut out: Vec<Value> = Vec::new();
        for value in list {
            let (here, there) = (count(list, value), count(other, value));
            if there == 0 {
                out.push(value.clone());
            } else if here > there && count(&out, value) == 0 {
                out.extend(std::iter::repeat_n(value.clone(), here - there));
            }
        }
        out
    };
    let common = |list: &[Value], other: &[Value]| {
        list.iter().filter(|v| count(other, v) > 0).cloned().collect::<Vec<_>>()
    };
    let (from_common, to_common) = (common(from, to), common(to, from));
    let mut details = Vec::new();
    if from_common.len() == to_common.len() && from_common.iter().zip(&to_common).any(|(a, b)| !alike(a, b)) {
        details.push(Detail::Reordered(from_common, to_common));
    }
    with_own(path, packed(details, missing(from, to), missing(to, from)), Vec::new())
}
