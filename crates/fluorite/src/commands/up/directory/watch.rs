//! Waits until something in a set of directories changes.

use std::path::PathBuf;
use std::time::Duration;

/// How often it is looked where the system does not tell.
const POLL: Duration = Duration::from_millis(500);
/// A save is several changes in a row; it is over when nothing happens for this long.
const QUIET: Duration = Duration::from_millis(30);
/// A directory that never rests is looked at all the same.
const LONGEST: Duration = Duration::from_millis(500);

/// A watch on directories.
#[derive(Debug)]
pub(in crate::commands::up) struct Watcher {
    system: Option<system::Events>,
}

impl Watcher {
    pub(in crate::commands::up) fn new() -> Self {
        Watcher { system: system::Events::new() }
    }

    /// Watches these directories too; answers whether all of them are watched. Where the system has no watches left,
    /// [`Watcher::changed`] looks again and again instead.
    pub(in crate::commands::up) fn watch(&mut self, directories: &[PathBuf]) -> bool {
        let watched = self.system.as_mut().is_some_and(|s| directories.iter().all(|d| s.watch(d)));
        if !watched {
            self.system = None;
        }
        watched
    }

    /// Resolves when something may have changed, once it is quiet again.
    pub(in crate::commands::up) async fn changed(&mut self) {
        let Some(system) = &mut self.system else {
            tokio::time::sleep(POLL).await;
            return;
        };
        system.next().await;
        let _ = tokio::time::timeout(LONGEST, async {
            while tokio::time::timeout(QUIET, system.next()).await.is_ok() {}
        })
        .await;
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::path::Path;

    use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
    use tokio::io::unix::AsyncFd;

    #[derive(Debug)]
    pub(super) struct Events {
        descriptor: AsyncFd<OwnedFd>,
    }

    impl Events {
        #[expect(
            deprecated,
            reason = "its successor is `unsafe`; this descriptor is owned here and never handed out"
        )]
        pub(super) fn new() -> Option<Self> {
            let descriptor = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
            Some(Events { descriptor: AsyncFd::new(descriptor).ok()? })
        }

        pub(super) fn watch(&mut self, directory: &Path) -> bool {
            let what = WatchFlags::CLOSE_WRITE
                | WatchFlags::CREATE
                | WatchFlags::DELETE
                | WatchFlags::MOVE
                | WatchFlags::ATTRIB
                | WatchFlags::ONLYDIR;
            match inotify::add_watch(self.descriptor.get_ref(), directory, what) {
                Ok(_) => true,
                // Gone again already: whoever holds it told of that.
                Err(error) => error == rustix::io::Errno::NOENT || error == rustix::io::Errno::NOTDIR,
            }
        }

        /// Takes what has happened, waiting for something to happen.
        pub(super) async fn next(&mut self) {
            loop {
                let Ok(mut ready) = self.descriptor.readable().await else { return };
                let mut buffer = [MaybeUninit::uninit(); 4096];
                let mut reader = inotify::Reader::new(self.descriptor.get_ref(), &mut buffer);
                let mut seen = false;
                while reader.next().is_ok() {
                    seen = true;
                }
                ready.clear_ready();
                if seen {
                    return;
                }
            }
        }
    }
}

/// Elsewhere nobody tells.
#[cfg(not(target_os = "linux"))]
mod system {
    use std::path::Path;

    #[derive(Debug)]
    pub(super) struct Events;

    impl Events {
        pub(super) fn new() -> Option<Self> {
            None
        }

        pub(super) fn watch(&mut self, _directory: &Path) -> bool {
            false
        }

        pub(super) async fn next(&mut self) {
            std::future::pending().await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn tells_of_saves_and_of_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let mut watcher = Watcher::new();
        let watched = watcher.watch(&[dir.path().to_owned(), dir.path().join("gone")]);
        if cfg!(target_os = "linux") {
            assert!(watched);
            let quiet = tokio::time::timeout(Duration::from_millis(200), watcher.changed()).await;
            assert!(quiet.is_err(), "nothing happened");
        }
        std::fs::write(dir.path().join("a"), "1").unwrap();
        tokio::time::timeout(Duration::from_secs(5), watcher.changed()).await.expect("a save is told");
    }
}
