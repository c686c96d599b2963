//! The rows of the view, from the watch caches.

use std::collections::BTreeMap;
use std::sync::Arc;

use fl_api::helm::HelmRelease;
use fl_api::kustomize::Kustomization;
use fl_api::meta::inventory::ResourceInventory;
use fl_api::source::{Bucket, GitRepository, HelmChart, HelmRepository, OCIRepository};
use fl_apply::Inventory;
use fl_runtime::{CachedObject, Kind, Runtime};
use serde_json::Value;

/// Kustomizations with more objects are not checked object by object.
const MAX_CHECKED_OBJECTS: usize = 300;

/// State of a source, Kustomization or HelmRelease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum State {
    Ready,
    /// Being reconciled, or about to be.
    Progressing,
    /// Waits for another object.
    Waiting,
    Suspended,
    Failed,
}

impl State {
    pub(super) fn glyph(self) -> &'static str {
        match self {
            State::Ready => "✔",
            State::Progressing | State::Waiting => "◎",
            State::Suspended => "⏸",
            State::Failed => "✗",
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            State::Ready => "ready",
            State::Progressing => "progressing",
            State::Waiting => "waiting",
            State::Suspended => "suspended",
            State::Failed => "failed",
        }
    }
}

/// Objects in the inventory of a Kustomization.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AppliedObjects {
    pub(crate) ready: usize,
    pub(crate) total: usize,
    /// Some of those that are not ready yet.
    pub(crate) pending: Vec<String>,
}

/// A source, Kustomization or HelmRelease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) state: State,
    pub(crate) revision: String,
    pub(crate) message: String,
    /// `spec.path` of a Kustomization: errors name files below it.
    pub(crate) path: String,
    pub(crate) applied: Option<AppliedObjects>,
    /// Namespace and name of the Kustomization that applied it.
    pub(crate) parent: Option<(String, String)>,
}

impl Row {
    pub(crate) fn id(&self) -> String {
        format!("{}/{}/{}", self.kind, self.namespace, self.name)
    }
}

/// The kinds that are shown, sources first.
pub(crate) fn kinds() -> Vec<Kind> {
    vec![
        Kind::of::<GitRepository>(),
        Kind::of::<OCIRepository>(),
        Kind::of::<Bucket>(),
        Kind::of::<HelmRepository>(),
        Kind::of::<HelmChart>(),
        Kind::of::<Kustomization>(),
        Kind::of::<HelmRelease>(),
    ]
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// All rows, in the order of the kinds and then by name.
pub(crate) async fn gather(runtime: &Runtime, objects: &fl_apply::Cluster) -> Vec<Row> {
    let mut found: Vec<(Kind, Arc<CachedObject>)> = Vec::new();
    for kind in kinds() {
        let Some(store) = runtime.informers().store(&kind) else { continue };
        let mut of_kind = store.list(None);
        of_kind.sort_by(|a, b| (a.namespace(), a.name()).cmp(&(b.namespace(), b.name())));
        found.extend(of_kind.into_iter().map(|live| (kind.clone(), live)));
    }
    let values: Vec<(Kind, Arc<CachedObject>, Value)> =
        found.into_iter().map(|(kind, live)| (kind, live.clone(), live.value())).collect();
    let revisions: BTreeMap<String, String> = values
        .iter()
        .map(|(kind, live, value)| {
            let id = format!("{}/{}/{}", kind.kind(), live.namespace(), live.name());
            (id, text(&value["status"]["artifact"]["revision"]))
        })
        .collect();
    let mut rows = Vec::with_capacity(values.len());
    for (kind, live, value) in &values {
        rows.push(row(kind, live, value, &revisions, objects).await);
    }
    rows
}

async fn row(
    kind: &Kind,
    live: &CachedObject,
    value: &Value,
    revisions: &BTreeMap<String, String>,
    objects: &fl_apply::Cluster,
) -> Row {
    let label = |key: &str| live.label(key).map(str::to_owned);
    let (mut state, mut message) = evaluate(value);
    let mut revision = text(&value["status"]["artifact"]["revision"]);
    let mut applied = None;
    if kind.kind() == "Kustomization" {
        revision = text(&value["status"]["lastAppliedRevision"]);
        applied = check_objects(value, objects).await;
        let source = &value["spec"]["sourceRef"];
        let namespace = source["namespace"].as_str().unwrap_or_else(|| live.namespace());
        let id = format!("{}/{namespace}/{}", text(&source["kind"]), text(&source["name"]));
        let newest = revisions.get(&id).filter(|r| !r.is_empty());
        if state == State::Ready && newest.is_some_and(|newest| *newest != revision) {
            (state, message) = (State::Progressing, "new revision available".to_owned());
        }
        // A failure of the last revision does not apply to the new one.
        let attempted = text(&value["status"]["lastAttemptedRevision"]);
        if state == State::Failed
            && newest.is_some_and(|newest| *newest != attempted)
            && !attempted.is_empty()
        {
            state = State::Progressing;
        }
    } else if kind.kind() == "HelmRelease" {
        revision = text(&value["status"]["history"][0]["chartVersion"]);
    }
    Row {
        kind: kind.kind().to_owned(),
        namespace: live.namespace().to_owned(),
        name: live.name().to_owned(),
        state,
        revision,
        message,
        path: text(&value["spec"]["path"]),
        applied,
        parent: label("kustomize.toolkit.fluxcd.io/namespace").zip(label("kustomize.toolkit.fluxcd.io/name")),
    }
}

/// State and message of an object, from its conditions.
pub(crate) fn evaluate(value: &Value) -> (State, String) {
    let conditions = value["status"]["conditions"].as_array();
    let condition = |kind: &str| conditions.into_iter().flatten().find(|c| c["type"] == kind);
    if value["metadata"]["deletionTimestamp"].is_string() {
        return (State::Progressing, "being deleted".to_owned());
    }
    if value["spec"]["suspend"] == true {
        return (State::Suspended, "suspended".to_owned());
    }
    // A HelmRepository of type oci is not reconciled.
    if value["kind"] == "HelmRepository" && value["spec"]["type"] == "oci" {
        return (State::Ready, "Helm repository is Ready".to_owned());
    }
    let Some(ready) = condition("Ready") else {
        return (State::Progressing, "waiting to be reconciled".to_owned());
    };
    let observed = value["status"]["observedGeneration"].as_i64();
    let stale = observed.is_some_and(|o| Some(o) != value["metadata"]["generation"].as_i64());
    let message = text(&ready["message"]);
    let reason = ready["reason"].as_str().unwrap_or_default();
    let progressing = condition("Reconciling").filter(|c| c["reason"] == "Progressing");
    match ready["status"].as_str() {
        Some("True") if stale => (State::Progressing, "the spec has changed".to_owned()),
        Some("True") => match progressing {
            Some(now) => (State::Progressing, text(&now["message"])),
            None => (State::Ready, message),
        },
        Some("False") if matches!(reason, "DependencyNotReady" | "SourceNotReady") => {
            (State::Waiting, message)
        }
        // The source was just created.
        Some("False") if message.starts_with("Source artifact not found") => (State::Waiting, message),
        Some("False") => (State::Failed, message),
        _ => {
            let now = condition("Reconciling").map(|c| text(&c["message"]));
            (State::Progressing, now.filter(|m| !m.is_empty()).unwrap_or(message))
        }
    }
}

/// How many of the objects in the inventory are ready.
async fn check_objects(value: &Value, objects: &fl_apply::Cluster) -> Option<AppliedObjects> {
    let stored: ResourceInventory = serde_json::from_value(value["status"]["inventory"].clone()).ok()?;
    let inventory = Inventory::read(&stored).ok()?;
    let total = inventory.objects().len();
    if total > MAX_CHECKED_OBJECTS {
        return Some(AppliedObjects { ready: total, total, pending: Vec::new() });
    }
    let now = jiff::Timestamp::now().as_second();
    let mut applied = AppliedObjects { total, ..AppliedObjects::default() };
    for object in inventory.objects() {
        let state = match objects.get(object).await {
            Ok(Some(live)) => fl_kstatus::health(&live, now).state,
            _ => fl_kstatus::State::Unknown,
        };
        if state == fl_kstatus::State::Current {
            applied.ready += 1;
        } else {
            let id = &object.id;
            let place = if id.namespace.is_empty() { String::new() } else { format!("{}/", id.namespace) };
            applied.pending.push(format!("{}/{place}{}", id.kind, id.name));
        }
    }
    Some(applied)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(conditions: Value) -> Value {
        json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 2, "conditions": conditions}})
    }

    #[test]
    fn state_follows_from_the_conditions() {
        let judged = |conditions: Value| evaluate(&object(conditions)).0;
        assert_eq!(judged(json!([])), State::Progressing);
        assert_eq!(judged(json!([{"type": "Ready", "status": "True"}])), State::Ready);
        assert_eq!(judged(json!([{"type": "Ready", "status": "Unknown"}])), State::Progressing);
        assert_eq!(
            judged(json!([{"type": "Ready", "status": "False", "reason": "BuildFailed"}])),
            State::Failed
        );
        let waits = json!([{"type": "Ready", "status": "False", "reason": "DependencyNotReady"}]);
        assert_eq!(judged(waits), State::Waiting);
        let stale = json!({"metadata": {"generation": 3}, "status": {"observedGeneration": 2,
            "conditions": [{"type": "Ready", "status": "True"}]}});
        assert_eq!(evaluate(&stale).0, State::Progressing);
    }
}
