//! Dotted paths into tables, as used by conditions and import-values.

use fl_gotemplate::{Map, Value};

/// A key of a path that is missing or not a table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a table")]
pub(crate) struct NotATable(String);

/// Returns the table at a path.
pub(crate) fn table(root: &Map, path: &str) -> Result<Map, NotATable> {
    let mut here = root.clone();
    for key in path.split('.') {
        here = match here.get(key.as_bytes()) {
            Some(Value::Map(next)) => next,
            _ => return Err(NotATable(key.to_owned())),
        };
    }
    Ok(here)
}

/// Returns the value at a path if it exists and is not a table.
pub(crate) fn path_value(root: &Map, path: &str) -> Option<Value> {
    let (table, key) = match path.rsplit_once('.') {
        Some((parents, key)) => (table(root, parents).ok()?, key),
        None => (root.clone(), path),
    };
    table.get(key.as_bytes()).filter(|value| !matches!(value, Value::Map(_)))
}
