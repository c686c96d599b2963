//! Dotted paths into tables, as conditions and import-values use them.

use fl_gotemplate::{Map, Value};

/// The table at a path, or the key that is none.
pub(crate) fn table(root: &Map, path: &str) -> Result<Map, String> {
    let mut here = root.clone();
    for key in path.split('.') {
        here = match here.get(key.as_bytes()) {
            Some(Value::Map(next)) => next,
            _ => return Err(format!("{key:?} is not a table")),
        };
    }
    Ok(here)
}

/// The value at a path when it exists and is no table.
pub(crate) fn path_value(root: &Map, path: &str) -> Option<Value> {
    let (table, key) = match path.rsplit_once('.') {
        Some((parents, key)) => (table(root, parents).ok()?, key),
        None => (root.clone(), path),
    };
    table.get(key.as_bytes()).filter(|value| !matches!(value, Value::Map(_)))
}
