//! Laying user values over the defaults of a chart and of its subcharts.
//!
//! Helm has two ways: coalescing, where a user's null removes a default, and merging, where nulls are kept for a later
//! round. Maps are shared and changed in place exactly as Helm's Go maps are, because templates can see it.

use std::borrow::Cow;

use fl_gotemplate::fmt::{display, sprintf};
use fl_gotemplate::{Entries, Map, Str, Value};

use super::{deep_copy_map, tree::Tree};
use crate::error::Error;
use crate::plan::{ChartId, Plan};

/// Bytes of a value in a message.
const SHOWN: u64 = 64 << 10;

/// Where the defaults of a chart come from.
#[derive(Debug, Clone)]
pub(crate) enum ValueSource<'c> {
    /// From `values.yaml`.
    File(&'c Tree),
    /// After values of subcharts were imported.
    Imported(Map),
}

impl ValueSource<'_> {
    /// The values when they are no longer those of the file.
    pub(crate) fn imported(&self) -> Option<Tree> {
        match self {
            Self::File(_) => None,
            Self::Imported(map) => Some(Tree::from_value(&Value::Map(map.clone()))),
        }
    }

    fn copy(&self) -> Map {
        match self {
            Self::File(tree) => tree.to_map(),
            Self::Imported(map) => deep_copy_map(map),
        }
    }
}

/// One pass over a plan.
pub(crate) struct Coalescer<'p, 'c> {
    plan: &'p Plan<'c>,
    merge: bool,
    warnings: &'p mut Vec<String>,
}

impl<'p, 'c> Coalescer<'p, 'c> {
    /// User values that win; nulls remove defaults.
    pub(crate) fn coalescing(plan: &'p Plan<'c>, warnings: &'p mut Vec<String>) -> Self {
        Self { plan, merge: false, warnings }
    }

    /// User values that win; nulls stay.
    pub(crate) fn merging(plan: &'p Plan<'c>, warnings: &'p mut Vec<String>) -> Self {
        Self { plan, merge: true, warnings }
    }

    /// The values of a chart and, below their names, of its subcharts. The user's table is copied first.
    pub(crate) fn run(&mut self, chart: ChartId, user: &Map) -> Result<Map, Error> {
        let values = deep_copy_map(user);
        self.chart(chart, &values, "")?;
        Ok(values)
    }

    fn chart(&mut self, id: ChartId, values: &Map, prefix: &str) -> Result<(), Error> {
        self.own_values(id, values, prefix);
        self.subcharts(id, values, prefix)
    }

    fn subcharts(&mut self, id: ChartId, values: &Map, prefix: &str) -> Result<(), Error> {
        let plan = self.plan;
        for sub in plan.subcharts(id) {
            let name = plan.name(*sub);
            let own = match values.get(name.as_bytes()) {
                None => {
                    let fresh = Map::new(Entries::new());
                    values.insert(name, Value::Map(fresh.clone()));
                    fresh
                }
                Some(Value::Map(map)) => map,
                Some(other) => {
                    let shown = sprintf(b"%t", &[other], SHOWN).unwrap_or_default();
                    let shown = String::from_utf8_lossy(&shown).into_owned();
                    return Err(Error::SubchartValues { chart: name.to_owned(), shown });
                }
            };
            let below = join(prefix, plan.name(id));
            self.globals(&own, values, &below);
            self.chart(*sub, &own, &below)?;
        }
        Ok(())
    }

    /// Hands the parent's `global` table down; the parent wins.
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
                    // Merged top-down, keeping nulls: they are dealt with when the child's own values follow.
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

    /// The chart's defaults below the given values.
    fn own_values(&mut self, id: ChartId, values: &Map, prefix: &str) {
        let prefix = join(prefix, self.plan.name(id));
        let defaults = self.plan.values(id).copy();
        let entries = std::mem::take(&mut *defaults.borrow_mut());
        for (key, default) in entries {
            match values.get(&key) {
                None => values.insert(key, default),
                Some(Value::Nil) if !self.merge => drop(values.borrow_mut().remove(&key)),
                Some(Value::Map(given)) => match default {
                    Value::Map(default) => {
                        // What belongs to a subchart keeps its nulls until the subchart's own turn.
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
        self.plan.subcharts(id).iter().any(|sub| self.plan.name(*sub).as_bytes() == key.as_bytes())
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
    // A null of the winner hides the default; whether there was a real one decides if the key goes for good.
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
