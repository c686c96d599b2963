//! Finding the old value of a list item: only items of keyed lists can be told apart.

use serde_json::Value;

use crate::model::{ListType, Schema};

/// The item of `old` with the same keys as `item`, for lists of type map whose keys are unique in `old`.
pub fn item<'v>(old: &'v Value, item: &Value, schema: &Schema) -> Option<&'v Value> {
    if schema.list != ListType::Map || schema.list_keys.is_empty() {
        return None;
    }
    let list = old.as_array()?;
    let mut matches = list.iter().filter(|candidate| {
        schema.list_keys.iter().all(|key| candidate.get(key.as_ref()) == item.get(key.as_ref()))
    });
    let first = matches.next()?;
    // Upstream compares with the first element when keys repeat in the old list.
    Some(first)
}
