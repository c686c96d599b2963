//! Correlation of list items with those of the old list, which is possible for keyed lists only.

use serde_json::Value;

use crate::structural::{ListType, Schema};

/// The item of `old` with the same keys as `item`, for lists of type map.
pub fn item<'v>(old: &'v Value, item: &Value, schema: &Schema) -> Option<&'v Value> {
    if schema.list != ListType::Map || schema.list_keys.is_empty() {
        return None;
    }
    let list = old.as_array()?;
    let mut matches = list.iter().filter(|candidate| {
        schema.list_keys.iter().all(|key| candidate.get(key.as_ref()) == item.get(key.as_ref()))
    });
    let first = matches.next()?;
    // With duplicate keys in the old list, upstream takes the first item.
    Some(first)
}
