//! The strategy and the stored form of each built-in kind.

use std::sync::Arc;

use crate::kind_strategy::KindStrategy;
use crate::strategy::{DefaultStrategy, Strategy};
use crate::{strategies, table};

/// Where the objects of a resource are stored and in which version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageKey {
    /// `group/plural`: the prefix of the keys. All versions of a resource share it.
    pub prefix: String,
    /// apiVersion of the stored form.
    pub api_version: String,
    /// kind of the stored form (differs from the served kind for `Scale`-like views only).
    pub kind: String,
}

/// The strategy of a built-in kind.
#[must_use]
pub fn strategy(group: &str, version: &str, kind: &str) -> Arc<dyn Strategy> {
    let Some(def) = fl_kubeschema::type_of(group, version, kind) else { return Arc::new(DefaultStrategy) };
    let version = fl_kubeschema::group_versions()
        .iter()
        .find(|g| g.group == group && g.version == version)
        .map_or("v1", |g| g.version);
    let mut rules = strategies::rules(group, kind);
    rules.printer = table::printer(group, kind);
    Arc::new(KindStrategy { def, version, rules })
}

/// The stored form of a built-in resource. `preferred` is the first version of the group that serves it:
/// objects are stored in that one, unless the resource shares its objects with another group.
#[must_use]
pub fn storage_key(group: &str, plural: &str, kind: &str, preferred: &str) -> StorageKey {
    let (prefix, api_version) = match (group, plural) {
        // Both event groups serve the same objects.
        ("events.k8s.io", "events") => ("/events".to_owned(), "v1".to_owned()),
        // Only v2 can hold every autoscaler.
        ("autoscaling", "horizontalpodautoscalers") => {
            (format!("{group}/{plural}"), "autoscaling/v2".to_owned())
        }
        ("", _) => (format!("/{plural}"), preferred.to_owned()),
        _ => (format!("{group}/{plural}"), format!("{group}/{preferred}")),
    };
    StorageKey { prefix, api_version, kind: kind.to_owned() }
}
