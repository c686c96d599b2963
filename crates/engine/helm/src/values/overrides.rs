//! What the user gives on top of a chart's defaults: files and `--set` arguments.

use fl_gotemplate::{Entries, Map, Value};

use super::set::{self, SetKind};
use super::tree::Tree;
use crate::error::Error;

/// User values under construction. Add files first, then arguments, in Helm's order: JSON, typed, string, file, literal.
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
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Values in a table that others may hold too: arguments change it in place, as Go's maps are changed.
    pub fn from_table(table: Map) -> Self {
        Self { table }
    }

    /// Lays a values file over what is there. `name` is for messages.
    pub fn add_file(&mut self, name: &str, data: &[u8]) -> Result<(), Error> {
        let failed = |why: String| Error::Values(format!("failed to parse {name}: {why}"));
        let document = crate::decode::document(data).map_err(failed)?;
        let tree = Tree::table_from_yaml(&document).map_err(failed)?;
        self.add_tree(&tree);
        Ok(())
    }

    /// Lays a table over what is there.
    pub fn add_tree(&mut self, tree: &Tree) {
        self.table = lay_over(&self.table, &tree.to_map());
    }

    /// Applies one `--set…` argument; `read_file` is only used for [`SetKind::File`].
    pub fn set(
        &mut self,
        kind: SetKind,
        text: &str,
        read_file: &mut dyn FnMut(&str) -> Result<Vec<u8>, String>,
    ) -> Result<(), Error> {
        set::apply(text, kind, &self.table, read_file).map_err(|error| {
            let flag = match kind {
                // Helm keeps the reason to itself here and shows the data; the reason helps.
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

/// Tables merge, everything else (null too) replaces.
fn lay_over(below: &Map, above: &Map) -> Map {
    let mut entries: Entries = below.borrow().clone();
    for (key, value) in above.borrow().iter() {
        let merged = match (entries.get(key), value) {
            (Some(Value::Map(old)), Value::Map(new)) => Value::Map(lay_over(old, new)),
            _ => value.clone(),
        };
        entries.insert(key.clone(), merged);
    }
    Map::new(entries)
}
