//! User values on top of a chart's defaults: files and `--set` arguments.

use fl_gotemplate::{Entries, Map, Value};

use super::json_value::JsonValue;
use super::set::{self, SetKind};
use crate::decode::DecodeError;
use crate::error::Error;

/// User values. Add files first, then arguments, in Helm's order: JSON, typed, string, file, literal.
#[derive(Debug, Clone)]
pub struct Overrides {
    table: Map,
}

impl Default for Overrides {
    fn default() -> Self {
        Self { table: Map::new(Entries::new()) }
    }
}

impl Overrides {
    /// No values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Uses a table that may be shared: arguments change it in place, as with Go's maps.
    pub fn from_table(table: Map) -> Self {
        Self { table }
    }

    /// Merges a values file into the values. `name` is used in messages.
    pub fn add_file(&mut self, name: &str, data: &[u8]) -> Result<(), Error> {
        let failed = |why: DecodeError| Error::Values(format!("failed to parse {name}: {why}"));
        let document = crate::decode::document(data).map_err(failed)?;
        let tree = JsonValue::table_from_yaml(&document).map_err(failed)?;
        self.add_values(&tree);
        Ok(())
    }

    /// Merges a table into the values.
    pub fn add_values(&mut self, tree: &JsonValue) {
        self.table = merge(&self.table, &tree.to_map());
    }

    /// Applies one `--set…` argument; `read_file` is used only for [`SetKind::File`].
    pub fn set(
        &mut self,
        kind: SetKind,
        text: &str,
        read_file: &mut dyn FnMut(&str) -> Result<Vec<u8>, String>,
    ) -> Result<(), Error> {
        set::apply(text, kind, &self.table, read_file).map_err(|error| {
            let flag = match kind {
                // Helm shows the data without the cause here; the cause is more useful.
                SetKind::Json => {
                    return Error::Values(format!("failed parsing --set-json data {text}: {error}"));
                }
                SetKind::Typed => "--set",
                SetKind::String => "--set-string",
                SetKind::File => "--set-file",
                SetKind::Literal => "--set-literal",
            };
            Error::Values(format!("failed parsing {flag} data: {error}"))
        })
    }

    /// The table so far.
    pub fn table(&self) -> &Map {
        &self.table
    }
}

/// Merges two tables; everything else, including null, is replaced.
fn merge(below: &Map, above: &Map) -> Map {
    let mut entries: Entries = below.borrow().clone();
    for (key, value) in above.borrow().iter() {
        let merged = match (entries.get(key), value) {
            (Some(Value::Map(old)), Value::Map(new)) => Value::Map(merge(old, new)),
            _ => value.clone(),
        };
        entries.insert(key.clone(), merged);
    }
    Map::new(entries)
}
