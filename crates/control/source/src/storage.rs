//! The artifact store as the controllers use it: check, publish, clean up.

use std::time::SystemTime;

use fl_api::condition::types;
use fl_api::meta::artifact::Artifact;
use fl_runtime::{Conditions, EventKind, Failure, Outcome, Pass, Source};
use fl_store::{Check, Location, Store};
use fl_types::Revision;

/// Runs file work where it may block.
pub async fn blocking<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> Result<R, Failure> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|e| Failure::retry("Failed", format!("work on files was cut short: {e}")))
}

/// Where an object's artifacts are.
pub fn location<T: Source>(object: &T) -> Result<Location, Failure> {
    Location::new(T::KIND, object.namespace(), object.name())
        .map_err(|e| Failure::retry("IllegalPath", e.to_string()))
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
pub fn artifact(published: fl_store::Artifact, revision: &str) -> Artifact {
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

/// Whether an artifact is of this revision; the old spelling counts too.
pub fn has_revision(artifact: Option<&Artifact>, revision: &str) -> bool {
    let read = |text: &str| text.parse::<Revision>().map_or_else(|_| text.to_owned(), |r| r.to_string());
    artifact.is_some_and(|a| read(&a.revision) == read(revision))
}

/// The first step of every pass: old files go, the current one must be there and intact, its address is made anew.
/// A missing or damaged file is forgotten, so that it is built again in the same pass.
pub async fn check<T: Source>(pass: &mut Pass<T>, store: &Store) -> Result<(), Failure> {
    collect(pass, store).await;
    let mut missing = false;
    if let Some(artifact) = pass.object.artifact().cloned() {
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
                damaged(pass, store, &artifact.path, &problem).await?;
                missing = true;
            }
            Err(error) => {
                damaged(pass, store, &artifact.path, &chain(&error)).await?;
                missing = true;
            }
        }
        if missing {
            pass.object.set_artifact(None);
        }
    }
    match pass.object.artifact().cloned() {
        None => {
            let message =
                if missing { "building artifact: disappeared from storage" } else { "building artifact" };
            pass.object.mark_progressing(true, message);
            pass.object.remove_condition(types::ARTIFACT_IN_STORAGE);
            pass.progress();
        }
        Some(mut artifact) => {
            artifact.url = store.url(&artifact.path);
            pass.object.set_artifact(Some(artifact));
        }
    }
    Ok(())
}

async fn damaged<T: Source>(pass: &Pass<T>, store: &Store, path: &str, problem: &str) -> Result<(), Failure> {
    let message = format!("failed to verify integrity of artifact: {problem}");
    pass.event(EventKind::Warning, "ArtifactVerificationFailed", &message);
    let (disk, path) = (store.clone(), path.to_owned());
    blocking(move || disk.remove(&path)).await?.map_err(|e| {
        let message = format!("failed to remove artifact after digest mismatch: {}", chain(&e));
        // Flux tells nobody of this one but the log.
        Failure::retry("Failed", message).silent()
    })
}

/// Removes files past their time. Trouble here is told, not fatal.
async fn collect<T: Source>(pass: &Pass<T>, store: &Store) {
    let Some(artifact) = pass.object.artifact() else { return };
    let Ok(at) = location(&pass.object) else { return };
    let file = artifact.path.rsplit('/').next().unwrap_or_default().to_owned();
    let disk = store.clone();
    match blocking(move || disk.collect(&at, &file, SystemTime::now())).await {
        Ok(Ok(removed)) if !removed.is_empty() => {
            let message = format!("garbage collected {} artifacts", removed.len());
            pass.log.info(&message);
            pass.event(EventKind::Trace, "GarbageCollectionSucceeded", &message);
        }
        Ok(Err(error)) => pass.log.error(&chain(&error), "garbage collection of artifacts failed"),
        _ => {}
    }
}

/// The end of a source: its directory goes.
pub async fn remove<T: Source>(pass: &mut Pass<T>, store: &Store) -> Result<(), Outcome> {
    let at = location(&pass.object).map_err(|f| Outcome::backoff(f.message))?;
    let disk = store.clone();
    let removed = match blocking(move || disk.remove_all(&at)).await {
        Ok(removed) => removed.map_err(|e| chain(&e)),
        Err(failure) => Err(failure.message),
    };
    match removed {
        Ok(existed) => {
            if existed {
                let message = "garbage collected artifacts for deleted resource";
                pass.log.info(message);
                pass.event(EventKind::Trace, "GarbageCollectionSucceeded", message);
            }
            pass.object.set_artifact(None);
            Ok(())
        }
        Err(error) => {
            let message = format!("garbage collection for deleted resource failed: {error}");
            pass.event(EventKind::Warning, "GarbageCollectionFailed", &message);
            Err(Outcome::backoff(message))
        }
    }
}
