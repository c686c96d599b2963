//! From a change of an object to the graph keys and triggers it concerns.

use fl_api::Resource as _;
use serde_json::Value;

use crate::graph::Trigger;
use crate::informer::{CachedObject, Change};
use fl_client::Key;

/// The parts of an artifact that consumers react to.
fn artifact(live: Option<&CachedObject>) -> Option<Vec<String>> {
    let live = live?;
    let value = live.value();
    let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    if live.kind().group() == fl_api::openflux::Artifact::GROUP {
        let spec = &value["spec"];
        let owners = live.meta().owner_references.iter().flatten().map(|o| format!("{}/{}", o.kind, o.name));
        let mut parts = vec![text(&spec["revision"]), text(&spec["digest"]), text(&spec["url"])];
        parts.extend(owners);
        return Some(parts);
    }
    let artifact = value["status"].get("artifact").filter(|a| a.is_object())?;
    let mut parts = vec![text(&artifact["revision"])];
    if live.kind().kind() == fl_api::source::ExternalArtifact::KIND {
        parts.extend([text(&artifact["digest"]), text(&artifact["url"])]);
    } else {
        // Published again at the same revision: the file was restored, and consumers that missed it must
        // retry.
        parts.push(text(&artifact["lastUpdateTime"]));
    }
    Some(parts)
}

/// The parts of a status that dependents react to.
fn readiness(live: Option<&CachedObject>) -> Option<(bool, String)> {
    let live = live?;
    let value = live.value();
    let status = &value["status"];
    let ready = status["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|c| c["type"] == "Ready" && c["status"] == "True");
    let observed = status["observedGeneration"].as_i64() == Some(live.generation());
    let revision = ["lastAppliedRevision", "lastAttemptedRevision"]
        .iter()
        .find_map(|f| status[*f].as_str())
        .unwrap_or_default();
    Some((ready && observed, revision.to_owned()))
}

/// The triggers of a change. As in Flux, only improvements enqueue consumers: a missing artifact, or an
/// object that is no longer ready, changes nothing for consumers that already have what they needed. Open
/// Flux artifacts also trigger on deletion, because they are all that is visible of a foreign source.
pub(crate) fn triggers_of(change: &Change) -> Vec<Trigger> {
    let (old, new) = (change.old.as_deref(), change.new.as_deref());
    let mut on = vec![Trigger::Change];
    let recreated = matches!((old, new), (Some(o), Some(n)) if o.uid() != n.uid());
    let published = artifact(new);
    let open = change.kind.group() == fl_api::openflux::Artifact::GROUP;
    if (open || published.is_some()) && (artifact(old) != published || recreated) {
        on.push(Trigger::Artifact);
    }
    let state = readiness(new);
    if state.as_ref().is_some_and(|(ready, _)| *ready) && (readiness(old) != state || recreated) {
        on.push(Trigger::Ready);
    }
    on
}

/// The graph keys of an object: its own, and for an artifact also those of its owners and its source.
/// Consumers refer to the owner.
pub(crate) fn graph_keys(change: &Change) -> Vec<Key> {
    let mut nodes = vec![change.object().key()];
    let openflux = change.kind.group() == fl_api::openflux::Artifact::GROUP;
    let external = change.kind.kind() == fl_api::source::ExternalArtifact::KIND;
    if !openflux && !external {
        return nodes;
    }
    for side in [&change.old, &change.new].into_iter().flatten() {
        for owner in side.meta().owner_references.iter().flatten() {
            nodes.push(Key::from_api_version(&owner.api_version, &owner.kind, side.namespace(), &owner.name));
        }
        if external {
            let value = side.value();
            let source = &value["spec"]["sourceRef"];
            if let (Some(kind), Some(name)) = (source["kind"].as_str(), source["name"].as_str()) {
                let namespace = source["namespace"].as_str().unwrap_or(side.namespace());
                let api_version = source["apiVersion"].as_str().unwrap_or_default();
                nodes.push(Key::from_api_version(api_version, kind, namespace, name));
            }
        }
    }
    nodes.sort();
    nodes.dedup();
    nodes
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use fl_client::Kind;

    fn source(revision: Option<&str>, ready: &str) -> Option<Arc<CachedObject>> {
        let mut value = json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
            "metadata": {"name": "app", "namespace": "ns", "uid": "u", "generation": 1},
            "status": {"observedGeneration": 1, "conditions": [{"type": "Ready", "status": ready}]},
        });
        if let Some(revision) = revision {
            value["status"]["artifact"] = json!({"revision": revision, "lastUpdateTime": "t"});
        }
        let kind = Kind::of::<fl_api::source::GitRepository>();
        Some(Arc::new(CachedObject::new(&kind, value, true).unwrap()))
    }

    fn passes(old: Option<Arc<CachedObject>>, new: Option<Arc<CachedObject>>) -> Vec<Trigger> {
        let kind = Kind::of::<fl_api::source::GitRepository>();
        triggers_of(&Change { kind, old, new })
    }

    #[test]
    fn only_ready_and_artifact_changes_trigger_dependents() {
        let all = [Trigger::Change, Trigger::Artifact, Trigger::Ready];
        assert_eq!(passes(None, source(Some("a"), "True")), all);
        assert_eq!(
            passes(source(Some("a"), "True"), source(Some("b"), "True")),
            [Trigger::Change, Trigger::Artifact]
        );
        assert_eq!(
            passes(source(Some("a"), "False"), source(Some("a"), "True")),
            [Trigger::Change, Trigger::Ready]
        );
        // Recorded from Flux: consumers of a source that fails or is deleted are not enqueued.
        assert_eq!(passes(source(Some("a"), "True"), source(Some("a"), "False")), [Trigger::Change]);
        assert_eq!(passes(source(Some("a"), "True"), source(None, "False")), [Trigger::Change]);
        assert_eq!(passes(source(Some("a"), "True"), None), [Trigger::Change]);
        let kind = Kind::of::<fl_api::openflux::Artifact>();
        let value = json!({
            "apiVersion": "openfluxcd.ocm.software/v1alpha1", "kind": "Artifact",
            "metadata": {"name": "a", "namespace": "ns", "uid": "u"}, "spec": {"revision": "a"},
        });
        let old = Some(Arc::new(CachedObject::new(&kind, value, true).unwrap()));
        assert_eq!(triggers_of(&Change { kind, old, new: None }), [Trigger::Change, Trigger::Artifact]);
    }
}
