//! The artifact store as the controllers use it: check, publish, garbage-collect.

use std::time::SystemTime;

use fl_api::condition::{reasons, types};
use fl_api::meta::artifact::Artifact;
use fl_artifact_store::{Check, Location, Store};
use fl_runtime::{Conditions, Context, EventKind, ReconcileError, Source};
use fl_types::Revision;

/// The link to the newest artifact.
pub const LATEST: &str = "latest.tar.gz";
/// What Flux reports when a timeout ends an operation.
pub const DEADLINE_EXCEEDED: &str = "context deadline exceeded";

/// Runs file operations on the blocking pool.
pub async fn blocking<R: Send + 'static>(
    work: impl FnOnce() -> R + Send + 'static,
) -> Result<R, ReconcileError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|e| ReconcileError::backoff("Failed", format!("work on files was cut short: {e}")))
}

/// An artifact could not be written to storage.
pub fn archive_failed(message: String) -> ReconcileError {
    ReconcileError::backoff(reasons::source::ARCHIVE_OPERATION_FAILED, message)
        .on(types::STORAGE_OPERATION_FAILED)
}

/// Where an object's artifacts are.
pub fn location<T: Source>(object: &T) -> Result<Location, ReconcileError> {
    Location::new(T::KIND, object.namespace(), object.name())
        .map_err(|e| ReconcileError::backoff("IllegalPath", e.to_string()))
}

/// An error with its cause, in one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

/// `status.artifact` of a file that was published.
pub fn artifact(published: fl_artifact_store::Artifact, revision: &str) -> Artifact {
    Artifact {
        digest: Some(published.digest),
        last_update_time: published.last_update_time.parse().unwrap_or_default(),
        metadata: None,
        path: published.path,
        revision: revision.to_owned(),
        size: i64::try_from(published.size).ok(),
        url: published.url,
        checksum: None,
    }
}

/// Whether an artifact has this revision, in its current or its old format.
pub fn has_revision(artifact: Option<&Artifact>, revision: &str) -> bool {
    let read = |text: &str| text.parse::<Revision>().map_or_else(|_| text.to_owned(), |r| r.to_string());
    artifact.is_some_and(|a| read(&a.revision) == read(revision))
}

/// The first step of every reconcile: removes old files, checks the current one and refreshes its URL. A missing or corrupt
/// artifact is removed from the status, so that the same reconcile builds it again.
pub async fn check<T: Source>(cx: &mut Context<T>, store: &Store) -> Result<(), ReconcileError> {
    collect(cx, store).await;
    let mut missing = false;
    if let Some(artifact) = cx.object.artifact().cloned() {
        let (disk, path, digest) = (store.clone(), artifact.path.clone(), artifact.digest.clone());
        let found = blocking(move || match digest {
            Some(digest) => disk.check(&path, &digest),
            None => Ok(Check::Damaged),
        })
        .await?;
        match found {
            Ok(Check::Intact) => {}
            Ok(Check::Missing) => missing = true,
            Ok(Check::Damaged) => {
                let problem = match &artifact.digest {
                    Some(digest) => format!("computed digest doesn't match '{digest}'"),
                    None => "artifact has no digest".to_owned(),
                };
                damaged(cx, store, &artifact.path, &problem).await?;
                missing = true;
            }
            Err(error) => {
                damaged(cx, store, &artifact.path, &chain(&error)).await?;
                missing = true;
            }
        }
        if missing {
            cx.object.set_artifact(None);
        }
    }
    match cx.object.artifact().cloned() {
        None => {
            let message =
                if missing { "building artifact: disappeared from storage" } else { "building artifact" };
            cx.object.mark_progressing(true, message);
            cx.object.remove_condition(types::ARTIFACT_IN_STORAGE);
            cx.progress();
        }
        Some(mut artifact) => {
            artifact.url = store.url(&artifact.path);
            cx.object.set_artifact(Some(artifact));
        }
    }
    Ok(())
}

async fn damaged<T: Source>(
    cx: &Context<T>,
    store: &Store,
    path: &str,
    problem: &str,
) -> Result<(), ReconcileError> {
    let message = format!("failed to verify integrity of artifact: {problem}");
    cx.event(EventKind::Warning, "ArtifactVerificationFailed", &message);
    let (disk, path) = (store.clone(), path.to_owned());
    blocking(move || disk.remove(&path)).await?.map_err(|e| {
        let message = format!("failed to remove artifact after digest mismatch: {}", chain(&e));
        // Flux only logs this one.
        ReconcileError::backoff("Failed", message).without_event()
    })
}

/// Garbage-collects old artifacts. A failure is logged and not fatal.
async fn collect<T: Source>(cx: &Context<T>, store: &Store) {
    let Some(artifact) = cx.object.artifact() else { return };
    let Ok(at) = location(&cx.object) else { return };
    let file = artifact.path.rsplit('/').next().unwrap_or_default().to_owned();
    let disk = store.clone();
    match blocking(move || disk.collect(&at, &file, SystemTime::now())).await {
        Ok(Ok(removed)) if !removed.is_empty() => {
            let message = format!("garbage collected {} artifacts", removed.len());
            cx.log.info(&message);
            cx.event(EventKind::Trace, "GarbageCollectionSucceeded", &message);
        }
        Ok(Err(error)) => cx.log.error(&chain(&error), "garbage collection of artifacts failed"),
        _ => {}
    }
}

/// Removes all artifacts of an object that is being deleted.
pub async fn remove<T: Source>(cx: &mut Context<T>, store: &Store) -> Result<(), ReconcileError> {
    let at = location(&cx.object).map_err(ReconcileError::without_event)?;
    let disk = store.clone();
    let removed = match blocking(move || disk.remove_all(&at)).await {
        Ok(removed) => removed.map_err(|e| chain(&e)),
        Err(failure) => Err(failure.message),
    };
    match removed {
        Ok(existed) => {
            if existed {
                let message = "garbage collected artifacts for deleted resource";
                cx.log.info(message);
                cx.event(EventKind::Trace, "GarbageCollectionSucceeded", message);
            }
            cx.object.set_artifact(None);
            Ok(())
        }
        Err(error) => {
            let message = format!("garbage collection for deleted resource failed: {error}");
            Err(ReconcileError::backoff("GarbageCollectionFailed", message))
        }
    }
}
