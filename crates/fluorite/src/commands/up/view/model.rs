//! What there is to show, gathered from the watches.

use std::collections::BTreeMap;
use std::sync::Arc;

use fl_api::helm::HelmRelease;
use fl_api::kustomize::Kustomization;
use fl_api::meta::inventory::ResourceInventory;
use fl_api::source::{Bucket, GitRepository, HelmChart, HelmRepository, OCIRepository};
use fl_apply::Inventory;
use fl_runtime::{Kind, Live, Runtime};
use serde_json::Value;

/// Objects of one Kustomization that are looked at one by one.
const LOOKED_AT: usize = 300;

/// How far an object of the engine has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::commands::up) enum State {
    Ready,
    /// On its way, or about to be.
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

    pub(in crate::commands::up) fn word(self) -> &'static str {
        match self {
            State::Ready => "ready",
            State::Progressing => "progressing",
            State::Waiting => "waiting",
            State::Suspended => "suspended",
            State::Failed => "failed",
        }
    }
}

/// Objects that a Kustomization applied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::commands::up) struct Applied {
    pub(in crate::commands::up) ready: usize,
    pub(in crate::commands::up) total: usize,
    /// Some of those that are not ready yet.
    pub(in crate::commands::up) pending: Vec<String>,
}

/// One object of the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::commands::up) struct Row {
    pub(in crate::commands::up) kind: String,
    pub(in crate::commands::up) namespace: String,
    pub(in crate::commands::up) name: String,
    pub(in crate::commands::up) state: State,
    pub(in crate::commands::up) revision: String,
    pub(in crate::commands::up) message: String,
    /// `spec.path` of a Kustomization: errors name files below it.
    pub(in crate::commands::up) path: String,
    pub(in crate::commands::up) applied: Option<Applied>,
    /// The row of the Kustomization that brought it.
    pub(in crate::commands::up) parent: Option<(String, String)>,
}

impl Row {
    pub(in crate::commands::up) fn id(&self) -> String {
        format!("{}/{}/{}", self.kind, self.namespace, self.name)
    }
}

/// The kinds that are shown, sources first.
pub(in crate::commands::up) fn kinds() -> Vec<Kind> {
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
pub(in crate::commands::up) async fn gather(runtime: &Runtime, objects: &fl_apply::Cluster) -> Vec<Row> {
    let mut found: Vec<(Kind, Arc<Live>)> = Vec::new();
    for kind in kinds() {
        let Some(store) = runtime.hub().store(&kind) else { continue };
        let mut of_kind = store.list(None);
        of_kind.sort_by(|a, b| (a.namespace(), a.name()).cmp(&(b.namespace(), b.name())));
        found.extend(of_kind.into_iter().map(|live| (kind.clone(), live)));
    }
    let values: Vec<(Kind, Arc<Live>, Value)> =
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
    live: &Live,
    value: &Value,
    revisions: &BTreeMap<String, String>,
    objects: &fl_apply::Cluster,
) -> Row {
    let label = |key: &str| live.label(key).map(str::to_owned);
    let (mut state, mut message) = judge(value);
    let mut revision = text(&value["status"]["artifact"]["revision"]);
    let mut applied = None;
    if kind.kind() == "Kustomization" {
        revision = text(&value["status"]["lastAppliedRevision"]);
        applied = look(value, objects).await;
        let source = &value["spec"]["sourceRef"];
        let namespace = source["namespace"].as_str().unwrap_or_else(|| live.namespace());
        let id = format!("{}/{namespace}/{}", text(&source["kind"]), text(&source["name"]));
        let newest = revisions.get(&id).filter(|r| !r.is_empty());
        if state == State::Ready && newest.is_some_and(|newest| *newest != revision) {
            (state, message) = (State::Progressing, "a new revision is there".to_owned());
        }
        // A failure of the revision before is no verdict on the new one.
        let tried = text(&value["status"]["lastAttemptedRevision"]);
        if state == State::Failed && newest.is_some_and(|newest| *newest != tried) && !tried.is_empty() {
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
pub(in crate::commands::up) fn judge(value: &Value) -> (State, String) {
    let conditions = value["status"]["conditions"].as_array();
    let condition = |kind: &str| conditions.into_iter().flatten().find(|c| c["type"] == kind);
    if value["metadata"]["deletionTimestamp"].is_string() {
        return (State::Progressing, "being deleted".to_owned());
    }
    if value["spec"]["suspend"] == true {
        return (State::Suspended, "suspended".to_owned());
    }
    // A HelmRepository of type oci has no life of its own.
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
        // What Flux says of a source that has just been created, too.
        Some("False") if message.starts_with("Source artifact not found") => (State::Waiting, message),
        Some("False") => (State::Failed, message),
        _ => {
            let now = condition("Reconciling").map(|c| text(&c["message"]));
            (State::Progressing, now.filter(|m| !m.is_empty()).unwrap_or(message))
        }
    }
}

/// How many of the objects in the inventory are ready.
async fn look(value: &Value, objects: &fl_apply::Cluster) -> Option<Applied> {
    let stored: ResourceInventory = serde_json::from_value(value["status"]["inventory"].clone()).ok()?;
    let inventory = Inventory::read(&stored).ok()?;
    let total = inventory.objects().len();
    if total > LOOKED_AT {
        return Some(Applied { ready: total, total, pending: Vec::new() });
    }
    let now = jiff::Timestamp::now().as_second();
    let mut applied = Applied { total, ..Applied::default() };
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
    fn states() {
        let judged = |conditions: Value| judge(&object(conditions)).0;
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
        assert_eq!(judge(&stale).0, State::Progressing);
    }
}
