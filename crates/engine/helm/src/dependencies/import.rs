//! `import-values`: tables of subcharts that become defaults of their parent.

use fl_gotemplate::{Entries, Map, Value};

use super::{ChartGraph, ChartId};
use crate::chart::ImportValue;
use crate::error::Error;
use crate::values::{Coalescer, ValueSource, deep_copy_map, merge_tables, table};

impl ChartGraph<'_> {
    /// Imports bottom-up: subcharts first.
    pub(super) fn import(&mut self, id: ChartId, warnings: &mut Vec<String>) -> Result<(), Error> {
        for sub in self.subcharts(id).to_vec() {
            self.import(sub, warnings)?;
        }
        self.import_into(id, warnings)
    }

    fn import_into(&mut self, id: ChartId, warnings: &mut Vec<String>) -> Result<(), Error> {
        let Some(requirements) = self.charts[id.0].requirements.clone() else { return Ok(()) };
        let values = Coalescer::merging(self, warnings).run(id, &Map::new(Entries::new()))?;
        let imports = Map::new(Entries::new());
        for dependency in requirements {
            let dependency = &mut self.dependencies[dependency.0];
            dependency.imports += 1;
            if dependency.imports > 1 {
                continue;
            }
            for import in &dependency.declared.import_values {
                let (child, parent) = match import {
                    ImportValue::Table { child, parent } => (child.clone(), parent.as_str()),
                    ImportValue::Export(name) => (format!("exports.{name}"), "."),
                    ImportValue::Other => continue,
                };
                match table(&values, &format!("{}.{child}", dependency.name)) {
                    Ok(found) => merge_tables(&imports, &at_path(parent, found), warnings),
                    Err(why) => warnings.push(format!(
                        "Warning: ImportValues missing table from chart {}: {why}",
                        dependency.name
                    )),
                }
            }
        }
        // The parent's own values take precedence over imported ones.
        self.charts[id.0].values = ValueSource::Imported(if imports.is_empty() {
            values
        } else {
            let values = deep_copy_map(&values);
            merge_tables(&values, &imports, warnings);
            values
        });
        Ok(())
    }
}

fn at_path(path: &str, table: Map) -> Map {
    if path == "." {
        return table;
    }
    path.rsplit('.').fold(table, |inner, key| {
        let outer = Map::new(Entries::new());
        outer.insert(key, Value::Map(inner));
        outer
    })
}
