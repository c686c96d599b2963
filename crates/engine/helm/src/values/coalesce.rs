//! Merges user values with the defaults of a chart and of its subcharts.
//!
//! Helm has two modes: coalescing, where a user's null removes a default, and merging, where nulls are kept
//! for a later round. Maps are shared and changed in place exactly as Helm's Go maps are, because templates
//! can observe it.

use std::borrow::Cow;

use fl_gotemplate::fmt::{display, sprintf};
use fl_gotemplate::{Entries, Map, Str, Value};

use super::{deep_copy_map, json_value::JsonValue};
use crate::dependencies::{ChartGraph, ChartId};
use crate::error::Error;

/// Maximum bytes of a value in a message.
const MAX_SHOWN_BYTES: u64 = 64 << 10;

/// Origin of a chart's default values.
#[derive(Debug, Clone)]
pub(crate) enum ValueSource<'c> {
    /// From `values.yaml`.
    File(&'c JsonValue),
    /// Values after those of subcharts were imported.
    Imported(Map),
}

impl ValueSource<'_> {
    /// The values, if they differ from the file.
    pub(crate) fn imported(&self) -> Option<JsonValue> {
        match self {
            Self::File(_) => None,
            Self::Imported(map) => Some(JsonValue::from_value(&Value::Map(map.clone()))),
        }
    }

    fn copy(&self) -> Map {
        match self {
            Self::File(tree) => tree.to_map(),
            Self::Imported(map) => deep_copy_map(map),
        }
    }
}

/// One run over the chart graph.
pub(crate) struct Coalescer<'p, 'c> {
    graph: &'p ChartGraph<'c>,
    merge: bool,
    warnings: &'p mut Vec<String>,
}

impl<'p, 'c> Coalescer<'p, 'c> {
    /// User values take precedence; nulls remove defaults.
    pub(crate) fn coalescing(graph: &'p ChartGraph<'c>, warnings: &'p mut Vec<String>) -> Self {
        Self { graph, merge: false, warnings }
    }

    /// User values take precedence; nulls are kept.
    pub(crate) fn merging(graph: &'p ChartGraph<'c>, warnings: &'p mut Vec<String>) -> Self {
        Self { graph, merge: true, warnings }
    }

    /// Returns the values of a chart with those of its subcharts below their names. The user's table is
    /// copied first.
    pub(crate) fn run(&mut self, chart: ChartId, user: &Map) -> Result<Map, Error> {
        let values = deep_copy_map(user);
        self.chart(chart, &values, "")?;
        Ok(values)
    }

    fn chart(&mut self, id: ChartId, values: &Map, prefix: &str) -> Result<(), Error> {
        self.default_values(id, values, prefix);
        self.subcharts(id, values, prefix)
    }

    fn subcharts(&mut self, id: ChartId, values: &Map, prefix: &str) -> Result<(), Error> {
        let graph = self.graph;
        for sub in graph.subcharts(id) {
            let name = graph.name(*sub);
            let own = match values.get(name.as_bytes()) {
                None => {
                    let fresh = Map::new(Entries::new());
                    values.insert(name, Value::Map(fresh.clone()));
                    fresh
                }
                Some(Value::Map(map)) => map,
                Some(other) => {
                    let shown = sprintf(b"%t", &[other], MAX_SHOWN_BYTES).unwrap_or_default();
                    let shown = String::from_utf8_lossy(&shown).into_owned();
                    return Err(Error::SubchartValues { chart: name.to_owned(), shown });
                }
            };
            let below = join(prefix, graph.name(id));
            self.globals(&own, values, &below);
            self.chart(*sub, &own, &below)?;
        }
        Ok(())
    }

    /// Copies the parent's `global` table to the child; the parent takes precedence.
    fn globals(&mut self, child: &Map, parent: &Map, prefix: &str) {
        let table_of = |map: &Map| match map.get(b"global") {
            None => Ok(Map::new(Entries::new())),
            Some(Value::Map(table)) => Ok(table),
            Some(_) => Err(()),
        };
        let Ok(own) = table_of(child) else {
            self.warn(|| "skipping globals because destination global is not a table.".into());
            return;
        };
        let Ok(given) = table_of(parent) else {
            self.warn(|| "skipping globals because source global is not a table.".into());
            return;
        };
        for (key, value) in given.snapshot() {
            match (&value, own.get(&key)) {
                (Value::Map(table), None) => own.insert(key, Value::Map(shallow_copy(table))),
                (Value::Map(table), Some(Value::Map(existing))) => {
                    // Merged top-down with nulls kept: they are applied with the child's own values.
                    let copy = shallow_copy(table);
                    self.tables(&copy, &existing, &join(prefix, &key.to_text()), true);
                    own.insert(key, Value::Map(copy));
                }
                (Value::Map(_), Some(_)) => {
                    self.warn(|| format!("Conflict: cannot merge map onto non-map for {key:?}. Skipping."));
                }
                (_, Some(Value::Map(_))) => self.warn(|| format!("key {key} is table. Skipping")),
                _ => own.insert(key, value),
            }
        }
        child.insert("global", Value::Map(own));
    }

    /// Adds the chart's defaults below the given values.
    fn default_values(&mut self, id: ChartId, values: &Map, prefix: &str) {
        let prefix = join(prefix, self.graph.name(id));
        let defaults = self.graph.values(id).copy();
        let entries = std::mem::take(&mut *defaults.borrow_mut());
        for (key, default) in entries {
            match values.get(&key) {
                None => values.insert(key, default),
                Some(Value::Nil) if !self.merge => drop(values.borrow_mut().remove(&key)),
                Some(Value::Map(given)) => match default {
                    Value::Map(default) => {
                        // Keys of a subchart keep their nulls until the subchart is processed.
                        let merge = self.merge || self.is_subchart(id, &key);
                        self.tables(&given, &default, &join(&prefix, &key.to_text()), merge);
                    }
                    Value::Nil => {}
                    _ => self.warn(|| format!("skipped value for {prefix}.{key}: Not a table.")),
                },
                Some(_) => {}
            }
        }
    }

    fn is_subchart(&self, id: ChartId, key: &Str) -> bool {
        self.graph.subcharts(id).iter().any(|sub| self.graph.name(*sub).as_bytes() == key.as_bytes())
    }

    fn tables(&mut self, winner: &Map, defaults: &Map, prefix: &str, merge: bool) {
        coalesce_tables(winner, defaults, prefix, merge, self.warnings);
    }

    fn warn(&mut self, text: impl FnOnce() -> String) {
        self.warnings.push(format!("warning: {}", text()));
    }
}

/// Fills a table from another one, keeping nulls.
pub(crate) fn merge_tables(winner: &Map, defaults: &Map, warnings: &mut Vec<String>) {
    coalesce_tables(winner, defaults, "", true, warnings);
}

fn coalesce_tables(winner: &Map, defaults: &Map, prefix: &str, merge: bool, warnings: &mut Vec<String>) {
    if winner.same(defaults) {
        return;
    }
    let nulls: Vec<Str> = winner
        .borrow()
        .iter()
        .filter(|(_, value)| matches!(value, Value::Nil))
        .map(|(key, _)| key.clone())
        .collect();
    // A null in the winner hides the default; the key is removed only if there was a real default.
    let hidden: Vec<bool> =
        nulls.iter().map(|key| defaults.get(key).is_some_and(|value| !matches!(value, Value::Nil))).collect();
    for key in &nulls {
        defaults.insert(key.clone(), Value::Nil);
    }
    if !merge {
        for (key, hid_default) in nulls.iter().zip(hidden) {
            if hid_default {
                winner.borrow_mut().remove(key);
            }
        }
    }
    for (key, default) in defaults.snapshot() {
        if matches!(default, Value::Nil) && nulls.contains(&key) {
            continue;
        }
        match (winner.get(&key), default) {
            (None, default) => winner.insert(key, default),
            (Some(Value::Map(table)), Value::Map(default)) => {
                coalesce_tables(&table, &default, &join(prefix, &key.to_text()), merge, warnings);
            }
            (Some(_), Value::Map(default)) => warnings.push(format!(
                "warning: cannot overwrite table with non table for {} ({})",
                join(prefix, &key.to_text()),
                display(&Value::Map(default))
            )),
            (Some(Value::Map(_)), default) if !matches!(default, Value::Nil) => warnings.push(format!(
                "warning: destination for {} is a table. Ignoring non-table value ({})",
                join(prefix, &key.to_text()),
                display(&default)
            )),
            _ => {}
        }
    }
}

fn shallow_copy(map: &Map) -> Map {
    Map::new(map.borrow().clone())
}

fn join<'a>(prefix: &str, name: &'a str) -> Cow<'a, str> {
    if prefix.is_empty() { Cow::Borrowed(name) } else { Cow::Owned(format!("{prefix}.{name}")) }
}
