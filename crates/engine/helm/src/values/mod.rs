//! Values: sources, merging, and the tables that templates see.

mod coalesce;
mod json;
mod json_value;
mod overrides;
mod path;
pub(crate) mod schema;
mod set;

pub(crate) use coalesce::{Coalescer, ValueSource, merge_tables};
pub use json_value::JsonValue;
pub use overrides::Overrides;
pub(crate) use path::{path_value, table};
pub use schema::check_schema;
pub use set::{SetError, SetKind};

use fl_gotemplate::{Entries, List, Map, Value};

/// A deep copy: templates can change it without affecting the original.
pub(crate) fn deep_copy(value: &Value) -> Value {
    match value {
        Value::Map(map) => Value::Map(deep_copy_map(map)),
        Value::List(list) if list.items().iter().any(|i| matches!(i, Value::Map(_) | Value::List(_))) => {
            Value::List(List::with_type(list.ty(), list.items().iter().map(deep_copy).collect()))
        }
        other => other.clone(),
    }
}

pub(crate) fn deep_copy_map(map: &Map) -> Map {
    let entries: Entries = map.borrow().iter().map(|(k, v)| (k.clone(), deep_copy(v))).collect();
    Map::new(entries)
}
