//! Kinds whose CustomResourceDefinition is not in the repository: the embedded API server serves them provisionally, so that an
//! ExternalSecret or a ServiceMonitor does not stop a delivery.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use fl_apiserver::{ApiServer, ProvisionalKind};
use fl_runtime::{Key, Patch, Runtime, Write};
use serde_json::json;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::bootstrap_objects::MANAGER;
use super::view::{Notes, State, evaluate, kinds};

/// How long a missing kind may be defined by the repository itself while nothing else is in progress.
const IDLE_GRACE: Duration = Duration::from_secs(2);
/// The same while other objects are still being reconciled.
const BUSY_GRACE: Duration = Duration::from_secs(20);
/// Poll interval while a kind is missing.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Discovery caches that a kind is not served; an earlier retry fails again.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Retries of the objects that need a kind once it is served.
const MAX_RETRIES: u32 = 5;

/// Serves missing kinds until it is aborted.
pub(super) fn start(server: &ApiServer, runtime: &Runtime, notes: Notes) -> JoinHandle<()> {
    let (server, runtime) = (server.clone(), runtime.clone());
    let changed = Arc::new(Notify::new());
    let told = changed.clone();
    runtime.informers().listen(Arc::new(move |_| told.notify_one()));
    tokio::spawn(async move {
        let mut missing: BTreeMap<ProvisionalKind, Instant> = BTreeMap::new();
        let mut served: BTreeMap<ProvisionalKind, (Instant, u32)> = BTreeMap::new();
        loop {
            let (found, is_busy) = find_missing(&runtime);
            missing.retain(|kind, _| found.contains_key(kind));
            for (kind, objects) in &found {
                let since = *missing.entry(kind.clone()).or_insert_with(Instant::now);
                let grace = if is_busy { BUSY_GRACE } else { IDLE_GRACE };
                let is_due = match served.get(kind) {
                    Some((last, tries)) => last.elapsed() >= RETRY_INTERVAL && *tries < MAX_RETRIES,
                    None => since.elapsed() >= grace && serve(&server, kind, &notes).await,
                };
                if is_due {
                    let (last, tries) = served.entry(kind.clone()).or_insert((Instant::now(), 0));
                    (*last, *tries) = (Instant::now(), *tries + 1);
                    for object in objects {
                        retry(&runtime, object).await;
                    }
                }
            }
            tokio::select! {
                () = changed.notified(), if missing.is_empty() => {}
                () = tokio::time::sleep(POLL_INTERVAL), if !missing.is_empty() => {}
            }
        }
    })
}

/// The missing kinds with the objects that need them, and whether a reconcile is in progress that may still define them.
fn find_missing(runtime: &Runtime) -> (BTreeMap<ProvisionalKind, BTreeSet<Key>>, bool) {
    let mut found: BTreeMap<ProvisionalKind, BTreeSet<Key>> = BTreeMap::new();
    let mut is_busy = false;
    for kind in kinds() {
        let Some(store) = runtime.informers().store(&kind) else { continue };
        for live in store.list(None) {
            let value = live.value();
            let (state, message) = evaluate(&value);
            let wanted = if matches!(kind.kind(), "Kustomization" | "HelmRelease") {
                missing_kinds(&message)
            } else {
                Vec::new()
            };
            is_busy |= state == State::Progressing && wanted.is_empty();
            for missing in wanted {
                found.entry(missing).or_default().insert(live.key());
            }
        }
    }
    (found, is_busy)
}

/// Serves the kind provisionally; returns whether it is served now.
async fn serve(server: &ApiServer, kind: &ProvisionalKind, notes: &Notes) -> bool {
    let scope = if kind.namespaced { "namespaced" } else { "cluster-scoped" };
    match server.serve_provisionally(kind).await {
        Ok(true) => {
            notes.add(format!(
                "{} of {}/{} has no CustomResourceDefinition: its objects are accepted as they are ({scope}) until one is applied; --strict-kinds turns this off",
                kind.kind, kind.group, kind.version
            ));
            true
        }
        // Its definition lacks the version: an error that the user should see.
        Ok(false) => false,
        Err(error) => {
            notes.add(format!("cannot serve {} provisionally: {error}", kind.kind));
            false
        }
    }
}

/// Enqueues an object. A HelmRelease with exhausted retries also needs its counters reset.
async fn retry(runtime: &Runtime, key: &Key) {
    if key.kind() == "HelmRelease" {
        let token = jiff::Timestamp::now().to_string();
        let patch = json!({"metadata": {"annotations": {
            fl_runtime::REQUESTED_AT: token, "reconcile.fluxcd.io/resetAt": token,
        }}});
        let kind = kinds().into_iter().find(|k| k.kind() == "HelmRelease");
        if let Some(kind) = kind {
            let write = Write::by(MANAGER);
            let patched = runtime
                .cluster()
                .patch(&kind, Some(key.namespace()), key.name(), Patch::Merge, &patch, &write)
                .await;
            if let Err(error) = patched {
                runtime.log().error(&error.to_string(), "cannot request a reconciliation");
            }
        }
    }
    runtime.graph().trigger(key);
}

/// The kinds that a condition message reports as unknown, except those of the core API group, which has no CRDs.
fn missing_kinds(message: &str) -> Vec<ProvisionalKind> {
    const MARK: &str = "no matches for kind \"";
    let mut kinds = BTreeSet::new();
    for (at, _) in message.match_indices(MARK) {
        let rest = &message[at + MARK.len()..];
        let Some((kind, rest)) = rest.split_once("\" in version \"") else { continue };
        let Some((api_version, _)) = rest.split_once('"') else { continue };
        let Some((group, version)) = api_version.split_once('/') else { continue };
        let line_start = message[..at].rfind('\n').map_or(0, |end| end + 1);
        // If other objects lack a namespace too, its absence does not show the scope of the kind.
        let is_reliable = !message.contains("namespace not specified");
        let namespaced = is_namespaced(kind, &message[line_start..at], is_reliable);
        kinds.insert(ProvisionalKind {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            namespaced,
        });
    }
    // One object with a namespace shows that the kind is namespaced.
    let of_namespace: Vec<ProvisionalKind> = kinds.iter().filter(|k| k.namespaced).cloned().collect();
    kinds
        .into_iter()
        .filter(|k| {
            k.namespaced || !of_namespace.contains(&ProvisionalKind { namespaced: true, ..k.clone() })
        })
        .collect()
}

/// Guesses the scope of a kind from how its object is named in front of the error (`Kind/namespace/name` or `Kind/name` by
/// Kustomizations, `namespace: ""` by Helm, which may mean either).
fn is_namespaced(kind: &str, before: &str, is_reliable: bool) -> bool {
    let subject = before.split_whitespace().find_map(|word| word.strip_prefix(kind)?.strip_prefix('/'));
    match subject {
        Some(subject) if is_reliable || subject.contains('/') => subject.contains('/'),
        _ => !is_known_cluster_scoped(kind),
    }
}

/// Cluster-scoped kinds of common projects; most have a name that begins with `Cluster`.
fn is_known_cluster_scoped(kind: &str) -> bool {
    const KNOWN: [&str; 8] = [
        "CompositeResourceDefinition",
        "Composition",
        "DeploymentRuntimeConfig",
        "EC2NodeClass",
        "GatewayClass",
        "NodePool",
        "ProviderConfig",
        "VolumeSnapshotClass",
    ];
    (kind.starts_with("Cluster") && kind != "Cluster") || KNOWN.contains(&kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(message: &str) -> Vec<(String, bool)> {
        let kinds = missing_kinds(message).into_iter();
        kinds.map(|k| (format!("{}/{}/{}", k.group, k.version, k.kind), k.namespaced)).collect()
    }

    #[test]
    fn missing_kinds_are_parsed_from_both_controllers() {
        let kustomization = "ExternalSecret/apps/db dry-run failed: no matches for kind \"ExternalSecret\" in version \"external-secrets.io/v1\"\n\
            ClusterIssuer/le dry-run failed: no matches for kind \"ClusterIssuer\" in version \"cert-manager.io/v1\"\n";
        assert_eq!(
            found(kustomization),
            [
                ("cert-manager.io/v1/ClusterIssuer".to_owned(), false),
                ("external-secrets.io/v1/ExternalSecret".to_owned(), true)
            ]
        );
        let helm = |kind: &str| {
            format!(
                "Helm install failed: unable to build kubernetes objects from release manifest: resource mapping not found for name: \"x\" namespace: \"\" from \"\": no matches for kind {kind:?} in version \"monitoring.coreos.com/v1\"\nensure CRDs are installed first"
            )
        };
        assert_eq!(
            found(&helm("ServiceMonitor")),
            [("monitoring.coreos.com/v1/ServiceMonitor".to_owned(), true)]
        );
        assert_eq!(
            found(&helm("ClusterPolicy")),
            [("monitoring.coreos.com/v1/ClusterPolicy".to_owned(), false)]
        );
        assert_eq!(found("Applied revision: main@sha1:1"), []);
        assert_eq!(found("x: no matches for kind \"Pood\" in version \"v1\""), []);
    }

    #[test]
    fn object_in_a_namespace_determines_the_scope() {
        let message = "Foo/a dry-run failed: no matches for kind \"Foo\" in version \"x.io/v1\"\n\
            Foo/ns/b dry-run failed: no matches for kind \"Foo\" in version \"x.io/v1\"";
        assert_eq!(found(message), [("x.io/v1/Foo".to_owned(), true)]);
        let message = "Service/web namespace not specified: the server could not find the requested resource\n\
            Rollout/web dry-run failed: no matches for kind \"Rollout\" in version \"argoproj.io/v1alpha1\"";
        assert_eq!(found(message), [("argoproj.io/v1alpha1/Rollout".to_owned(), true)]);
    }
}
