//! Watches directories for changes.

use std::path::PathBuf;
use std::time::Duration;

/// Poll interval where the system has no watches.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// A save is several events; it is complete after this time without events.
const QUIET_PERIOD: Duration = Duration::from_millis(30);
/// Upper bound of the quiet period, for directories that change continuously.
const MAX_QUIET_WAIT: Duration = Duration::from_millis(500);

/// A watch on directories.
#[derive(Debug)]
pub(crate) struct Watcher {
    system: Option<system::Events>,
}

impl Watcher {
    pub(crate) fn new() -> Self {
        Watcher { system: system::Events::new() }
    }

    /// Adds directories; returns whether all of them are watched. If the system has no watches left,
    /// [`Watcher::changed`] polls instead.
    pub(crate) fn watch(&mut self, directories: &[PathBuf]) -> bool {
        let watched = self.system.as_mut().is_some_and(|s| directories.iter().all(|d| s.watch(d)));
        if !watched {
            self.system = None;
        }
        watched
    }

    /// Resolves after a change, once the quiet period is over.
    pub(crate) async fn changed(&mut self) {
        let Some(system) = &mut self.system else {
            tokio::time::sleep(POLL_INTERVAL).await;
            return;
        };
        system.next().await;
        let _ = tokio::time::timeout(MAX_QUIET_WAIT, async {
            while tokio::time::timeout(QUIET_PERIOD, system.next()).await.is_ok() {}
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
                // Removed meanwhile; the watch of its parent reports that.
                Err(error) => error == rustix::io::Errno::NOENT || error == rustix::io::Errno::NOTDIR,
            }
        }

        /// Waits for events and drains them.
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

/// Other systems are polled.
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
    async fn saved_file_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let mut watcher = Watcher::new();
        let watched = watcher.watch(&[dir.path().to_owned(), dir.path().join("gone")]);
        if cfg!(target_os = "linux") {
            assert!(watched);
            let quiet = tokio::time::timeout(Duration::from_millis(200), watcher.changed()).await;
            assert!(quiet.is_err(), "nothing happened");
        }
        std::fs::write(dir.path().join("a"), "1").unwrap();
        tokio::time::timeout(Duration::from_secs(5), watcher.changed()).await.expect("the save is reported");
    }
}
