//! `metadata.managedFields`. Entries that do not change are neither parsed nor rebuilt.

use std::cell::OnceCell;

use serde_json::{Map, Value};
use thiserror::Error;

use crate::set::{FieldsError, Set};

/// Longest manager name taken from a user agent.
const MAX_MANAGER_NAME: usize = 128;

/// Identity of an entry: that of an applier has no version, updaters are distinguished by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) manager: String,
    pub(crate) applied: bool,
    /// Empty for appliers.
    pub(crate) api_version: String,
    pub(crate) subresource: String,
}

impl Identity {
    pub(crate) fn new(manager: &str, applied: bool, api_version: &str, subresource: &str) -> Self {
        Self {
            manager: if manager.is_empty() { "unknown" } else { manager }.to_owned(),
            applied,
            api_version: if applied { String::new() } else { api_version.to_owned() },
            subresource: subresource.to_owned(),
        }
    }

    /// The identity in conflict messages.
    pub(crate) fn print(&self) -> String {
        let mut text = fl_go::quote(&self.manager);
        if !self.subresource.is_empty() {
            text.push_str(&format!(" with subresource {}", fl_go::quote(&self.subresource)));
        }
        if !self.applied {
            text.push_str(&format!(" using {}", self.api_version));
        }
        text
    }

    /// The key that upstream sorts conflicts by: the JSON of the manager.
    pub(crate) fn sort_key(&self) -> String {
        let mut map = Map::new();
        map.insert("manager".to_owned(), Value::from(self.manager.as_str()));
        let quote = |s: &str| Value::from(s).to_string();
        let mut text = format!("{{\"manager\":{}", quote(&self.manager));
        text.push_str(&format!(",\"operation\":\"{}\"", if self.applied { "Apply" } else { "Update" }));
        if !self.api_version.is_empty() {
            text.push_str(&format!(",\"apiVersion\":{}", quote(&self.api_version)));
        }
        if !self.subresource.is_empty() {
            text.push_str(&format!(",\"subresource\":{}", quote(&self.subresource)));
        }
        text.push('}');
        text
    }
}

/// One manager's fields.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) identity: Identity,
    /// API version of the fields.
    pub(crate) version: String,
    pub(crate) time: Option<String>,
    raw: Value,
    set: OnceCell<Set>,
}

impl Entry {
    pub(crate) fn new(identity: Identity, version: &str, set: Set, time: Option<String>) -> Self {
        Self { identity, version: version.to_owned(), time, raw: Value::Null, set: OnceCell::from(set) }
    }

    /// The fields; [`Managed::decode`] has rejected invalid ones.
    pub(crate) fn set(&self) -> &Set {
        self.set.get_or_init(|| Set::from_fields(&self.raw).unwrap_or_default())
    }

    pub(crate) fn replace(&mut self, set: Set) {
        self.raw = Value::Null;
        self.set = OnceCell::from(set);
    }

    /// Takes over the fields of an entry with the same fields, including their encoding.
    pub(crate) fn reuse(&mut self, last: Entry) {
        self.raw = if is_canonical(&last.raw) { last.raw } else { Value::Null };
        self.set = last.set;
    }

    fn encode(self) -> Value {
        let mut map = Map::new();
        map.insert("manager".to_owned(), Value::from(self.identity.manager));
        map.insert(
            "operation".to_owned(),
            Value::from(if self.identity.applied { "Apply" } else { "Update" }),
        );
        map.insert("apiVersion".to_owned(), Value::from(self.version));
        if let Some(time) = self.time {
            map.insert("time".to_owned(), Value::from(time));
        }
        map.insert("fieldsType".to_owned(), Value::from("FieldsV1"));
        let fields = match self.raw {
            Value::Null => self.set.into_inner().unwrap_or_default().to_fields(),
            raw => raw,
        };
        map.insert("fieldsV1".to_owned(), fields);
        if !self.identity.subresource.is_empty() {
            map.insert("subresource".to_owned(), Value::from(self.identity.subresource));
        }
        Value::Object(map)
    }
}

/// Why the managed fields of an object cannot be decoded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ManagedFieldsError {
    #[error("managedFields must be a list")]
    NotAList,
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    #[error("apiVersion must not be empty")]
    ApiVersion,
    #[error("missing fieldsType in managed fields entry {0}")]
    MissingFieldsType(usize),
    #[error("invalid fieldsType {fields_type:?} in managed fields entry {index}")]
    FieldsType { fields_type: String, index: usize },
    #[error("error decoding set: {0}")]
    Fields(#[from] FieldsError),
    #[error("error decoding set: invalid field set")]
    InvalidSet,
}

/// All managers of an object.
#[derive(Debug, Clone, Default)]
pub(crate) struct Managed {
    pub(crate) entries: Vec<Entry>,
}

/// The encoded managed fields of an object.
pub(crate) fn encoded_managed_fields(object: &Value) -> Option<&Value> {
    object.get("metadata")?.get("managedFields")
}

impl Managed {
    /// Parses the managed fields of an object.
    pub(crate) fn decode(object: &Value) -> Result<Self, ManagedFieldsError> {
        match encoded_managed_fields(object) {
            None | Some(Value::Null) => Ok(Self::default()),
            Some(Value::Array(list)) => Self::decode_list(list),
            Some(_) => Err(ManagedFieldsError::NotAList),
        }
    }

    pub(crate) fn decode_list(list: &[Value]) -> Result<Self, ManagedFieldsError> {
        let mut managed = Self::default();
        for (index, entry) in list.iter().enumerate() {
            let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
            let applied = match text("operation") {
                "Apply" => true,
                "Update" => false,
                _ => return Err(ManagedFieldsError::Operation),
            };
            if text("apiVersion").is_empty() {
                return Err(ManagedFieldsError::ApiVersion);
            }
            match text("fieldsType") {
                "FieldsV1" => {}
                "" => return Err(ManagedFieldsError::MissingFieldsType(index)),
                other => {
                    return Err(ManagedFieldsError::FieldsType { fields_type: other.to_owned(), index });
                }
            }
            let raw = entry.get("fieldsV1").cloned().unwrap_or_else(|| Value::Object(Map::new()));
            if !looks_like_fields(&raw, 0) {
                Set::from_fields(&raw)?;
                return Err(ManagedFieldsError::InvalidSet);
            }
            let version = text("apiVersion");
            let decoded = Entry {
                identity: Identity::new_exact(text("manager"), applied, version, text("subresource")),
                version: version.to_owned(),
                time: Some(text("time")).filter(|t| !t.is_empty()).map(str::to_owned),
                raw,
                set: OnceCell::new(),
            };
            managed.put(decoded);
        }
        Ok(managed)
    }

    pub(crate) fn get(&self, identity: &Identity) -> Option<&Entry> {
        self.entries.iter().find(|e| e.identity == *identity)
    }

    /// Adds an entry or replaces that of the same identity, which is returned.
    pub(crate) fn put(&mut self, entry: Entry) -> Option<Entry> {
        if let Some(slot) = self.entries.iter_mut().find(|e| e.identity == entry.identity) {
            return Some(std::mem::replace(slot, entry));
        }
        self.entries.push(entry);
        None
    }

    pub(crate) fn remove(&mut self, identity: &Identity) -> Option<Entry> {
        let at = self.entries.iter().position(|e| e.identity == *identity)?;
        Some(self.entries.remove(at))
    }

    /// The wire form, in upstream's order.
    pub(crate) fn encode(mut self) -> Vec<Value> {
        self.entries.sort_by(|a, b| {
            (!a.identity.applied)
                .cmp(&!b.identity.applied)
                .then_with(|| a.time.cmp(&b.time))
                .then_with(|| a.identity.manager.cmp(&b.identity.manager))
                .then_with(|| a.version.cmp(&b.version))
                .then_with(|| a.identity.subresource.cmp(&b.identity.subresource))
        });
        self.entries.into_iter().map(Entry::encode).collect()
    }

    /// Writes the entries into the object, or removes the field if there are none.
    pub(crate) fn store(self, object: &mut Value) {
        let Some(map) = object.as_object_mut() else { return };
        let meta = map.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
        let Some(meta) = meta.as_object_mut() else { return };
        if self.entries.is_empty() {
            meta.remove("managedFields");
        } else {
            meta.insert("managedFields".to_owned(), Value::Array(self.encode()));
        }
    }
}

impl Identity {
    fn new_exact(manager: &str, applied: bool, api_version: &str, subresource: &str) -> Self {
        Self { manager: manager.to_owned(), ..Self::new(manager, applied, api_version, subresource) }
    }
}

/// A cheap check that parsing will succeed, so that entries can stay unparsed.
fn looks_like_fields(fields: &Value, depth: usize) -> bool {
    match fields {
        Value::Null => true,
        Value::Object(map) => {
            depth < 500
                && map.iter().all(|(key, below)| {
                    let fine =
                        key == "." || key.starts_with("f:") || crate::path::PathElement::decode(key).is_ok();
                    fine && looks_like_fields(below, depth + 1)
                })
        }
        _ => false,
    }
}

/// Whether a set of named fields is encoded as [`Set::to_fields`] does.
fn is_canonical(fields: &Value) -> bool {
    let Some(map) = fields.as_object() else { return false };
    map.iter().all(|(key, below)| match key.as_str() {
        "." => map.len() > 1 && below.as_object().is_some_and(Map::is_empty),
        key => key.starts_with("f:") && is_canonical(below),
    })
}

/// The manager of a request: the parameter `fieldManager`, else the product name of the user agent.
pub fn manager_name(field_manager: &str, user_agent: &str) -> String {
    if !field_manager.is_empty() {
        return field_manager.to_owned();
    }
    let product = user_agent.split('/').next().unwrap_or_default();
    let mut name = String::new();
    for c in product.chars() {
        if name.len() + c.len_utf8() > MAX_MANAGER_NAME {
            break;
        }
        if !c.is_control() {
            name.push(c);
        }
    }
    name
}

/// If only the times in managedFields differ, restores the old ones, so that the write is a no-op.
pub fn ignore_time_only_changes(new: &mut Value, old: &Value) {
    let list = |object| encoded_managed_fields(object).and_then(Value::as_array);
    let (Some(after), Some(before)) = (list(new), list(old)) else { return };
    if after.len() != before.len() {
        return;
    }
    let equal_except_metadata = |a: &Value, b: &Value| {
        let (Some(a), Some(b)) = (a.as_object(), b.as_object()) else { return false };
        a.len() == b.len() && a.iter().all(|(key, value)| key == "metadata" || b.get(key) == Some(value))
    };
    let same_meta = |a: &Value, b: &Value| {
        let (Some(a), Some(b)) = (a["metadata"].as_object(), b["metadata"].as_object()) else { return false };
        a.len() == b.len() && a.iter().all(|(key, value)| key == "managedFields" || b.get(key) == Some(value))
    };
    // The rest first: a change usually shows there.
    if !equal_except_metadata(new, old) || !same_meta(new, old) || after == before {
        return;
    }
    let timeless = |list: &[Value]| -> Vec<Value> {
        let mut list: Vec<Value> = list
            .iter()
            .map(|entry| {
                let mut entry = entry.clone();
                if let Some(map) = entry.as_object_mut() {
                    map.remove("time");
                }
                entry
            })
            .collect();
        list.sort_by_key(ToString::to_string);
        list
    };
    if timeless(after) != timeless(before) {
        return;
    }
    let before = before.clone();
    if let Some(slot) = new.pointer_mut("/metadata/managedFields") {
        *slot = Value::Array(before);
    }
}
