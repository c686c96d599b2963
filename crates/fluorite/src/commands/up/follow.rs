//! Tells the source controller as soon as a directory holds something new.

use std::sync::Arc;
use std::time::Duration;

use fl_runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::directory::{Directory, LocalGit, Now, Watcher};
use super::objects::{self, Delivered};
use super::source::Source;

/// After a look that failed.
const AGAIN: Duration = Duration::from_secs(1);

/// Follows a directory until it is aborted. What cannot be read is told by the GitRepository, which tries the same.
pub(super) fn start(
    source: &Source,
    git: Arc<LocalGit>,
    runtime: &Runtime,
    delivered: Delivered,
    wanted: watch::Sender<Option<String>>,
) -> JoinHandle<()> {
    let (directory, runtime) = (source.directory().cloned(), runtime.clone());
    tokio::spawn(async move {
        match directory {
            Some(directory) => follow(&directory, &git, &runtime, delivered, &wanted).await,
            // Keeps the channel open: nothing is ever wanted in particular.
            None => std::future::pending::<()>().await,
        }
    })
}

async fn follow(
    directory: &Arc<Directory>,
    git: &LocalGit,
    runtime: &Runtime,
    mut delivered: Delivered,
    wanted: &watch::Sender<Option<String>>,
) {
    let mut watcher = Watcher::new();
    let mut last: Option<Now> = None;
    let mut watched = Vec::new();
    loop {
        let looked = directory.clone();
        let Ok(Ok((now, directories))) = tokio::task::spawn_blocking(move || looked.now()).await else {
            wake(directory, git, runtime);
            tokio::time::sleep(AGAIN).await;
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
            wake(directory, git, runtime);
            last = Some(now);
        }
        watcher.watch(&directories);
        if directories != watched {
            // What came between the look and the watch is seen by another look.
            watched = directories;
            continue;
        }
        watcher.changed().await;
    }
}

/// Makes every GitRepository due that is served from the directory.
fn wake(directory: &Arc<Directory>, git: &LocalGit, runtime: &Runtime) {
    let Some(store) = runtime.hub().store(&objects::git_repository()) else { return };
    for live in store.list(None) {
        let url = live.value()["spec"]["url"].as_str().map(str::to_owned).unwrap_or_default();
        if git.directory(&url).is_some_and(|d| Arc::ptr_eq(d, directory)) {
            runtime.graph().wake(&live.key());
        }
    }
}
