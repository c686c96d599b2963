//! From a change of an object to the nodes of the graph it concerns.

use fl_api::Resource as _;
use serde_json::Value;

use crate::graph::On;
use crate::hub::{Change, Live};
use crate::kind::Key;

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

/// Which edges a change passes along.
pub(crate) fn accounts(change: &Change) -> Vec<On> {
    let (old, new) = (change.old.as_deref(), change.new.as_deref());
    let mut on = vec![On::Change];
    let recreated = matches!((old, new), (Some(o), Some(n)) if o.uid() != n.uid());
    if artifact(old) != artifact(new) || recreated {
        on.push(On::Artifact);
    }
    if readiness(old) != readiness(new) || recreated {
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
