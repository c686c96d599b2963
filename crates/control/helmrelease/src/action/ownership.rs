//! Whether existing objects may become part of a release.

use std::collections::HashMap;

use fl_apply::{Cluster, ObjectId, annotation, label};
use futures::StreamExt;
use serde_json::Value;

use super::error::ActionError;
use super::resources::{MANAGED_BY, RELEASE_NAME, RELEASE_NAMESPACE, Resource};

/// Concurrent reads.
const MAX_CONCURRENT_READS: usize = 8;

/// Existing objects, by their id.
pub(crate) type Existing = HashMap<ObjectId, Value>;

/// Reads which objects exist.
///
/// Fails if one belongs to another owner, unless ownership is taken over.
pub(crate) async fn existing(
    cluster: &Cluster,
    targets: &[Resource],
    take: bool,
    release: &str,
    namespace: &str,
) -> Result<Existing, ActionError> {
    let named = targets.iter().filter(|target| !target.reference.id.name.is_empty());
    let reads: Vec<_> =
        named.map(|target| async move { (target, cluster.get(&target.reference).await) }).collect();
    let mut found = Existing::new();
    let mut reads = futures::stream::iter(reads).buffered(MAX_CONCURRENT_READS);
    while let Some((target, read)) = reads.next().await {
        let described = || target.described();
        let Some(live) = read.map_err(|error| {
            ActionError::failed(format!(
                "could not get information about the resource {}: {error}",
                described()
            ))
        })?
        else {
            continue;
        };
        if !take && let Err(why) = check(&live, release, namespace) {
            return Err(ActionError::failed(format!(
                "{} exists and cannot be imported into the current release: {why}",
                described()
            )));
        }
        found.insert(target.reference.id.clone(), live);
    }
    Ok(found)
}

/// Whether Helm's ownership metadata names a release.
pub(crate) fn check(live: &Value, release: &str, namespace: &str) -> Result<(), String> {
    let wanted = [
        ("label", MANAGED_BY, "Helm", label(live, MANAGED_BY)),
        ("annotation", RELEASE_NAME, release, annotation(live, RELEASE_NAME)),
        ("annotation", RELEASE_NAMESPACE, namespace, annotation(live, RELEASE_NAMESPACE)),
    ];
    let errors: Vec<String> = wanted
        .into_iter()
        .filter_map(|(what, key, wanted, found)| {
            let why = match found {
                None => format!("missing key {key:?}: must be set to {wanted:?}"),
                Some(found) if found != wanted => {
                    format!("key {key:?} must equal {wanted:?}: current value is {found:?}")
                }
                Some(_) => return None,
            };
            Some(format!("{what} validation error: {why}"))
        })
        .collect();
    if errors.is_empty() { Ok(()) } else { Err(format!("invalid ownership metadata; {}", errors.join("; "))) }
}

/// Whether Helm's ownership metadata names another release. Such an object is not deleted.
pub(crate) fn belongs_to_another(live: &Value, release: &str, namespace: &str) -> bool {
    let name = annotation(live, RELEASE_NAME);
    let place = annotation(live, RELEASE_NAMESPACE);
    name.is_some_and(|name| name != release) || place.is_some_and(|place| place != namespace)
}

/// Whether Helm's ownership metadata names this release.
pub(crate) fn is_marked(live: &Value, release: &str, namespace: &str) -> bool {
    annotation(live, RELEASE_NAME) == Some(release) && annotation(live, RELEASE_NAMESPACE) == Some(namespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_is_missing() {
        let live = serde_json::json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": "Helm"}, "annotations": {
            "meta.helm.sh/release-name": "other"}}});
        assert_eq!(
            check(&live, "app", "ns").expect_err("not ours"),
            "invalid ownership metadata; annotation validation error: key \"meta.helm.sh/release-name\" must equal \
             \"app\": current value is \"other\"; annotation validation error: missing key \
             \"meta.helm.sh/release-namespace\": must be set to \"ns\""
        );
        assert!(belongs_to_another(&live, "app", "ns"));
        assert!(!belongs_to_another(&serde_json::json!({"metadata": {}}), "app", "ns"));
    }
}
