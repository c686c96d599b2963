//! What a pass tells: conditions, history, events.

use std::collections::BTreeMap;
use std::time::Duration;

use fl_api::condition::{reasons, types};
use fl_api::kustomize::Kustomization;
use fl_api::meta::history::Snapshot;
use fl_runtime::{Conditions as _, EventKind, Pass, conditions};

/// As many as Flux keeps.
const HISTORY: usize = 5;

/// The revision a pass is about.
#[derive(Clone, Debug, Default)]
pub(crate) struct Revision {
    pub(crate) revision: String,
    pub(crate) origin: String,
}

/// Go's text of a duration.
pub(crate) fn go(duration: Duration) -> String {
    fl_types::Duration::from(duration).to_string()
}

/// Says which step is under way.
pub(crate) fn progressing(pass: &mut Pass<Kustomization>, step: &str, revision: &str, timeout: Duration) {
    let message = format!("{step} for revision {revision} with a timeout of {}", go(timeout));
    pass.object.mark_reconciling(reasons::PROGRESSING, &message);
    pass.progress();
}

/// Records an event whose reason is that of the Ready condition.
pub(crate) fn event(pass: &Pass<Kustomization>, kind: EventKind, message: &str, revision: &Revision) {
    let metadata = metadata(revision);
    send(pass, kind, message, metadata);
}

/// The event of a pass that ended well.
pub(crate) fn finished(pass: &Pass<Kustomization>, elapsed: Duration) {
    let status = pass.object.status.as_ref();
    let text = |field: Option<&String>| field.cloned().unwrap_or_default();
    let revision = Revision {
        revision: text(status.and_then(|s| s.last_applied_revision.as_ref())),
        origin: text(status.and_then(|s| s.last_applied_origin_revision.as_ref())),
    };
    let mut metadata = metadata(&revision);
    metadata.insert("commit_status", "update".to_owned());
    let message =
        format!("Reconciliation finished in {}, next run in {}", go(elapsed), pass.object.spec.interval);
    pass.log.info(&message);
    send(pass, EventKind::Normal, &message, metadata);
}

fn metadata(revision: &Revision) -> BTreeMap<&'static str, String> {
    let mut metadata = BTreeMap::new();
    if !revision.revision.is_empty() {
        metadata.insert("revision", revision.revision.clone());
    }
    if !revision.origin.is_empty() {
        metadata.insert("originRevision", revision.origin.clone());
    }
    metadata
}

fn send(
    pass: &Pass<Kustomization>,
    kind: EventKind,
    message: &str,
    metadata: BTreeMap<&'static str, String>,
) {
    let severity = if kind == EventKind::Warning { "error" } else { "info" };
    let reason = pass.object.condition(types::READY).map_or(severity, |c| c.reason.as_str());
    pass.event_with(kind, reason, message, metadata);
}

/// What a pass did with a build.
#[derive(Clone, Debug)]
pub(crate) struct Record<'a> {
    pub(crate) digest: &'a str,
    pub(crate) duration: Duration,
    pub(crate) status: &'a str,
    pub(crate) revision: &'a Revision,
}

/// Notes a pass in the history: the newest first, one entry per build and result.
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
    history.truncate(HISTORY);
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
