//! From a change of an object to the nodes of the graph it concerns.

use fl_api::Resource as _;
use serde_json::Value;

use crate::graph::On;
use crate::hub::{Change, Live};
use fl_client::Key;

/// What consumers compare: other changes of an artifact do not concern them.
fn artifact(live: Option<&Live>) -> Option<Vec<String>> {
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
        // Published anew at the same revision: its file is back after it was lost, and who missed it must hear.
        parts.push(text(&artifact["lastUpdateTime"]));
    }
    Some(parts)
}

/// What the readers of `dependsOn` compare.
fn readiness(live: Option<&Live>) -> Option<(bool, String)> {
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

/// Which edges a change passes along. As with Flux, good news travels and bad news waits: an artifact that is gone, or an object
/// that is no longer ready, changes nothing for those who have what they needed of it; they see it at their own time. The
/// artifacts of Open Flux are told of when they go, too: they are all that shows of a foreign source.
pub(crate) fn accounts(change: &Change) -> Vec<On> {
    let (old, new) = (change.old.as_deref(), change.new.as_deref());
    let mut on = vec![On::Change];
    let recreated = matches!((old, new), (Some(o), Some(n)) if o.uid() != n.uid());
    let published = artifact(new);
    let open = change.kind.group() == fl_api::openflux::Artifact::GROUP;
    if (open || published.is_some()) && (artifact(old) != published || recreated) {
        on.push(On::Artifact);
    }
    let state = readiness(new);
    if state.as_ref().is_some_and(|(ready, _)| *ready) && (readiness(old) != state || recreated) {
        on.push(On::Ready);
    }
    on
}

/// The nodes an object stands for: itself, and for an artifact whoever owns it or is named as its source. Consumers refer to
/// the owner; the artifact is how its content shows.
pub(crate) fn nodes(change: &Change) -> Vec<Key> {
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

    fn source(revision: Option<&str>, ready: &str) -> Option<Arc<Live>> {
        let mut value = json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
            "metadata": {"name": "app", "namespace": "ns", "uid": "u", "generation": 1},
            "status": {"observedGeneration": 1, "conditions": [{"type": "Ready", "status": ready}]},
        });
        if let Some(revision) = revision {
            value["status"]["artifact"] = json!({"revision": revision, "lastUpdateTime": "t"});
        }
        let kind = Kind::of::<fl_api::source::GitRepository>();
        Some(Arc::new(Live::new(&kind, value, true).unwrap()))
    }

    fn passes(old: Option<Arc<Live>>, new: Option<Arc<Live>>) -> Vec<On> {
        let kind = Kind::of::<fl_api::source::GitRepository>();
        accounts(&Change { kind, old, new })
    }

    #[test]
    fn good_news_travels_and_bad_news_waits() {
        let all = [On::Change, On::Artifact, On::Ready];
        assert_eq!(passes(None, source(Some("a"), "True")), all);
        assert_eq!(passes(source(Some("a"), "True"), source(Some("b"), "True")), [On::Change, On::Artifact]);
        assert_eq!(passes(source(Some("a"), "False"), source(Some("a"), "True")), [On::Change, On::Ready]);
        // Recorded from Flux: consumers of a source that fails or goes stay as they are.
        assert_eq!(passes(source(Some("a"), "True"), source(Some("a"), "False")), [On::Change]);
        assert_eq!(passes(source(Some("a"), "True"), source(None, "False")), [On::Change]);
        assert_eq!(passes(source(Some("a"), "True"), None), [On::Change]);
        let kind = Kind::of::<fl_api::openflux::Artifact>();
        let value = json!({
            "apiVersion": "openfluxcd.ocm.software/v1alpha1", "kind": "Artifact",
            "metadata": {"name": "a", "namespace": "ns", "uid": "u"}, "spec": {"revision": "a"},
        });
        let old = Some(Arc::new(Live::new(&kind, value, true).unwrap()));
        assert_eq!(accounts(&Change { kind, old, new: None }), [On::Change, On::Artifact]);
    }
}
