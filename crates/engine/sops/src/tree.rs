//! Values in order, as SOPS walks them.

use serde_json::{Map, Value};

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Item {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    /// Bytes that are not text; only from an encrypted value.
    Bytes(Vec<u8>),
    List(Vec<Item>),
    Map(Vec<(String, Item)>),
}

impl Item {
    pub(crate) fn get(&self, key: &str) -> Option<&Item> {
        match self {
            Item::Map(entries) => entries.iter().find(|(k, _)| k == key).map(|(_, v)| v),
            _ => None,
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Item::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn items(&self) -> Option<&[Item]> {
        match self {
            Item::List(items) => Some(items),
            _ => None,
        }
    }

    pub(crate) fn remove(&mut self, key: &str) -> Option<Item> {
        match self {
            Item::Map(entries) => {
                let at = entries.iter().position(|(k, _)| k == key)?;
                Some(entries.remove(at).1)
            }
            _ => None,
        }
    }

    /// The bytes that count for the MAC.
    pub(crate) fn mac_bytes(&self) -> Vec<u8> {
        match self {
            Item::Text(text) => text.clone().into_bytes(),
            Item::Bytes(bytes) => bytes.clone(),
            Item::Int(number) => number.to_string().into_bytes(),
            Item::Float(number) => number.to_string().into_bytes(),
            Item::Bool(true) => b"True".to_vec(),
            Item::Bool(false) => b"False".to_vec(),
            Item::Null | Item::List(_) | Item::Map(_) => Vec::new(),
        }
    }

    /// A leaf as text, for formats without types.
    pub(crate) fn plain_text(&self) -> Option<String> {
        Some(match self {
            Item::Null => String::new(),
            Item::Bool(value) => value.to_string(),
            Item::Int(number) => number.to_string(),
            Item::Float(number) => number.to_string(),
            Item::Text(text) => text.clone(),
            Item::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Item::List(_) | Item::Map(_) => return None,
        })
    }

    pub(crate) fn to_json(&self) -> Value {
        match self {
            Item::Null => Value::Null,
            Item::Bool(value) => Value::Bool(*value),
            Item::Int(number) => Value::from(*number),
            Item::Float(number) => Value::from(*number),
            Item::Text(text) => Value::String(text.clone()),
            Item::Bytes(bytes) => Value::String(String::from_utf8_lossy(bytes).into_owned()),
            Item::List(items) => Value::Array(items.iter().map(Item::to_json).collect()),
            Item::Map(entries) => {
                Value::Object(entries.iter().map(|(k, v)| (k.clone(), v.to_json())).collect::<Map<_, _>>())
            }
        }
    }
}
