//! The built-in kinds: their defaults, validation, write strategies, tables and second versions.
//!
//! [`strategy()`] hands the server the rules of one kind; what is not listed follows the rules most types share.
//! Rows are in `kinds`, defaults per Go type in `defaults`, checks in one file per family of kinds.

mod checks;
mod defaults;
mod diff;
mod field;
mod internal;
mod kinds;
mod pod_strategy;
#[cfg(test)]
mod recorded;
mod rules;
mod strategy;
mod table;
mod validate;
mod versions;
mod warnings;

use std::sync::Arc;

use crate::resource::{Plain, Strategy};

pub(crate) use pod_strategy::qos_class;
pub(crate) use validate::access_review;

/// The rules of a built-in kind.
#[must_use]
pub fn strategy(group: &str, version: &str, kind: &str) -> Arc<dyn Strategy> {
    let Some(def) = fl_kubeschema::type_of(group, version, kind) else { return Arc::new(Plain) };
    let version = fl_kubeschema::group_versions()
        .iter()
        .find(|g| g.group == group && g.version == version)
        .map_or("v1", |g| g.version);
    let mut rules = kinds::rules(group, kind);
    rules.printer = table::printer(group, kind);
    Arc::new(rules::Kind { def, version, rules })
}

/// `apiVersion` the objects of a built-in kind are stored in: its own, or that of the form that keeps everything.
#[must_use]
pub fn storage_api_version(group: &str, version: &str, kind: &str) -> String {
    match versions::storage_version(group, version, kind) {
        Some(stored) => stored.to_owned(),
        None if group.is_empty() => version.to_owned(),
        None => format!("{group}/{version}"),
    }
}
