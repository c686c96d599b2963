//! Triggers the GitRepositories of a directory when its content changes.

use std::sync::Arc;
use std::time::Duration;

use fl_runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::bootstrap_objects::{self as objects, SourceSpec};
use super::directory::{Directory, DirectoryState, LocalGit, Watcher};
use super::source::Source;

/// Delay after a failed scan.
const SCAN_RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Watches the directory of a source until the task is aborted. Read errors are reported by the GitRepository.
pub(super) fn start(
    source: &Source,
    git: Arc<LocalGit>,
    runtime: &Runtime,
    delivered: SourceSpec,
    wanted: watch::Sender<Option<String>>,
) -> JoinHandle<()> {
    let (directory, runtime) = (source.directory().cloned(), runtime.clone());
    tokio::spawn(async move {
        match directory {
            Some(directory) => follow(&directory, &git, &runtime, delivered, &wanted).await,
            // Keeps the channel open; a remote source has no wanted commit.
            None => std::future::pending::<()>().await,
        }
    })
}

async fn follow(
    directory: &Arc<Directory>,
    git: &LocalGit,
    runtime: &Runtime,
    mut delivered: SourceSpec,
    wanted: &watch::Sender<Option<String>>,
) {
    let mut watcher = Watcher::new();
    let mut last: Option<DirectoryState> = None;
    let mut watched = Vec::new();
    loop {
        let looked = directory.clone();
        let Ok(Ok((now, directories))) = tokio::task::spawn_blocking(move || looked.state()).await else {
            enqueue(directory, git, runtime);
            tokio::time::sleep(SCAN_RETRY_INTERVAL).await;
            continue;
        };
        if last.as_ref() != Some(&now) {
            wanted.send_replace(Some(now.commit.clone()));
            if delivered.reference != now.reference {
                delivered.reference.clone_from(&now.reference);
                if let Err(error) = objects::deliver(runtime.cluster(), &delivered).await {
                    runtime.log().error(&error.to_string(), "cannot follow what is checked out");
                }
            }
            enqueue(directory, git, runtime);
            last = Some(now);
        }
        watcher.watch(&directories);
        if directories != watched {
            // Scan again: something may have changed before the watch was added.
            watched = directories;
            continue;
        }
        watcher.changed().await;
    }
}

/// Enqueues every GitRepository that is served from the directory.
fn enqueue(directory: &Arc<Directory>, git: &LocalGit, runtime: &Runtime) {
    let Some(store) = runtime.informers().store(&objects::git_repository()) else { return };
    for live in store.list(None) {
        let url = live.value()["spec"]["url"].as_str().map(str::to_owned).unwrap_or_default();
        if git.directory(&url).is_some_and(|d| Arc::ptr_eq(d, directory)) {
            runtime.graph().trigger(&live.key());
        }
    }
}
