//! Reporting: progress conditions, history and events.

use std::collections::BTreeMap;
use std::time::Duration;

use fl_api::condition::{reasons, types};
use fl_api::kustomize::Kustomization;
use fl_api::meta::artifact::Artifact;
use fl_api::meta::history::Snapshot;
use fl_runtime::{Conditions as _, Context, EventKind, conditions};

/// The metadata of an artifact that names the revision it was made from.
const ORIGIN_REVISION: &str = "org.opencontainers.image.revision";
/// Flux's limit of snapshots in `status.history`.
const MAX_HISTORY: usize = 5;

/// The revision that a reconcile applies.
#[derive(Clone, Debug, Default)]
pub(crate) struct Revision {
    pub(crate) revision: String,
    pub(crate) origin: String,
}

impl Revision {
    /// The revision of an artifact, and the revision it was made from.
    pub(crate) fn of(artifact: &Artifact) -> Self {
        let origin = artifact.metadata.as_ref().and_then(|m| m.get(ORIGIN_REVISION)).cloned();
        Revision { revision: artifact.revision.clone(), origin: origin.unwrap_or_default() }
    }

    pub(crate) fn last_applied(object: &Kustomization) -> Self {
        let status = object.status.as_ref();
        let text = |field: Option<&String>| field.cloned().unwrap_or_default();
        Revision {
            revision: text(status.and_then(|s| s.last_applied_revision.as_ref())),
            origin: text(status.and_then(|s| s.last_applied_origin_revision.as_ref())),
        }
    }

    /// The metadata of events.
    pub(crate) fn metadata(&self) -> BTreeMap<&'static str, String> {
        let mut metadata = BTreeMap::new();
        if !self.revision.is_empty() {
            metadata.insert("revision", self.revision.clone());
        }
        if !self.origin.is_empty() {
            metadata.insert("originRevision", self.origin.clone());
        }
        metadata
    }
}

/// Go's text of a duration.
pub(crate) fn go(duration: Duration) -> String {
    fl_types::Duration::from(duration).to_string()
}

/// Reports the step that is running.
pub(crate) fn progressing(cx: &mut Context<Kustomization>, step: &str, revision: &str, timeout: Duration) {
    let message = format!("{step} for revision {revision} with a timeout of {}", go(timeout));
    cx.object.mark_reconciling(reasons::PROGRESSING, &message);
    cx.progress();
}

/// Records an event whose reason is that of the Ready condition.
pub(crate) fn event(cx: &Context<Kustomization>, kind: EventKind, message: &str, revision: &Revision) {
    send(cx, kind, message, revision.metadata());
}

/// Reports a reconcile that succeeded.
pub(crate) fn finished(cx: &Context<Kustomization>, elapsed: Duration) {
    let mut metadata = Revision::last_applied(&cx.object).metadata();
    metadata.insert("commit_status", "update".to_owned());
    let message =
        format!("Reconciliation finished in {}, next run in {}", go(elapsed), cx.object.spec.interval);
    cx.log.info(&message);
    send(cx, EventKind::Normal, &message, metadata);
}

fn send(
    cx: &Context<Kustomization>,
    kind: EventKind,
    message: &str,
    metadata: BTreeMap<&'static str, String>,
) {
    let severity = if kind == EventKind::Warning { "error" } else { "info" };
    let reason = cx.object.condition(types::READY).map_or(severity, |c| c.reason.as_str());
    cx.event_with(kind, reason, message, metadata);
}

/// One attempt to apply a build.
#[derive(Clone, Debug)]
pub(crate) struct Record<'a> {
    pub(crate) digest: &'a str,
    pub(crate) duration: Duration,
    pub(crate) status: &'a str,
    pub(crate) revision: &'a Revision,
}

/// Adds an attempt to the history: the newest first, one entry per build and result.
pub(crate) fn record(object: &mut Kustomization, record: &Record<'_>) {
    let history = object.status.get_or_insert_default().history.get_or_insert_default();
    let now = conditions::now();
    let mut metadata = BTreeMap::from([("revision".to_owned(), record.revision.revision.clone())]);
    if !record.revision.origin.is_empty() {
        metadata.insert("originRevision".to_owned(), record.revision.origin.clone());
    }
    let known =
        history.iter().position(|s| s.digest == record.digest && s.last_reconciled_status == record.status);
    let (first_reconciled, total) = match known {
        Some(at) => {
            let old = history.remove(at);
            (old.first_reconciled, old.total_reconciliations)
        }
        None => (now, 0),
    };
    history.insert(
        0,
        Snapshot {
            digest: record.digest.to_owned(),
            first_reconciled,
            last_reconciled: now,
            last_reconciled_duration: go(record.duration),
            last_reconciled_status: record.status.to_owned(),
            metadata: Some(metadata),
            total_reconciliations: total + 1,
        },
    );
    history.truncate(MAX_HISTORY);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn history_is_short_and_newest_first() {
        let mut object: Kustomization = serde_json::from_value(serde_json::json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": {"name": "a"},
            "spec": {"interval": "1m", "prune": true, "sourceRef": {"kind": "GitRepository", "name": "a"}}}))
        .expect("a Kustomization");
        let revision = Revision::default();
        for digest in ["a", "b", "a", "c", "d", "e", "f"] {
            record(
                &mut object,
                &Record { digest, duration: Duration::from_millis(1), status: "ok", revision: &revision },
            );
        }
        let history = object.status.and_then(|s| s.history).expect("recorded");
        let digests: Vec<&str> = history.iter().map(|s| s.digest.as_str()).collect();
        assert_eq!(digests, ["f", "e", "d", "c", "a"]);
        assert_eq!(history[4].total_reconciliations, 2);
    }
}
