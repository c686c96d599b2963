//! Shuts down before the memory limit is reached (feature gate `OOMWatch`), so that running Helm actions can finish.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use fl_runtime::Shutdown;
use fl_runtime::log::Log;

use super::Args;

/// Files with limit and usage, of control groups version 2 and version 1.
const LIMIT_FILES: [&str; 2] = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
const USAGE_FILES: [&str; 2] =
    ["/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory/memory.usage_in_bytes"];

/// Polls the memory usage of the control group.
pub(super) struct OomWatch {
    limit: u64,
    current: PathBuf,
    percent: u8,
    interval: Duration,
}

fn find(given: Option<&PathBuf>, places: [&str; 2], what: &str, flag: &str) -> anyhow::Result<PathBuf> {
    if let Some(given) = given {
        return Ok(given.clone());
    }
    let found = places.iter().map(PathBuf::from).find(|p| p.exists());
    found.with_context(|| format!("no file with the {what} was found; name one with {flag}"))
}

fn number(path: &Path) -> anyhow::Result<u64> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    // A group without a limit has `max`.
    match text.trim() {
        "max" => Ok(u64::MAX),
        digits => digits.parse().with_context(|| format!("{} does not contain a number", path.display())),
    }
}

impl OomWatch {
    /// # Errors
    /// A setting out of range, or files that cannot be found or read.
    pub(super) fn new(args: &Args) -> anyhow::Result<Self> {
        let percent = args.oom_watch_memory_threshold;
        anyhow::ensure!(
            (1..=100).contains(&percent),
            "--oom-watch-memory-threshold must be between 1 and 100"
        );
        let interval = args.oom_watch_interval.into_std()?;
        anyhow::ensure!(interval >= Duration::from_millis(50), "--oom-watch-interval must be at least 50ms");
        let limit = find(
            args.oom_watch_max_memory_path.as_ref(),
            LIMIT_FILES,
            "memory limit",
            "--oom-watch-max-memory-path",
        )?;
        let current = find(
            args.oom_watch_current_memory_path.as_ref(),
            USAGE_FILES,
            "memory in use",
            "--oom-watch-current-memory-path",
        )?;
        number(&current)?;
        Ok(OomWatch { limit: number(&limit)?, current, percent, interval })
    }

    fn is_reached(&self, used: u64) -> bool {
        u128::from(used) * 100 >= u128::from(self.limit) * u128::from(self.percent)
    }

    /// Triggers the shutdown when the threshold is reached.
    pub(super) async fn run(self, stop: Shutdown, log: Log) {
        loop {
            tokio::select! {
                () = stop.stopped() => return,
                () = tokio::time::sleep(self.interval) => {}
            }
            match number(&self.current) {
                Ok(used) if self.is_reached(used) => {
                    log.with([("used", used.into()), ("limit", self.limit.into())])
                        .info("memory is nearly used up, shutting down");
                    stop.now();
                    return;
                }
                Ok(_) => {}
                Err(error) => log.error(&format!("{error:#}"), "the memory in use cannot be read"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn shutdown_at_the_threshold() {
        let folder = tempfile::tempdir().unwrap();
        let current = folder.path().join("current");
        std::fs::write(&current, "94\n").unwrap();
        let watch = OomWatch {
            limit: 100,
            current: current.clone(),
            percent: 95,
            interval: Duration::from_millis(5),
        };
        assert!(!watch.is_reached(94) && watch.is_reached(95));
        let stop = Shutdown::default();
        let running = tokio::spawn(watch.run(stop.clone(), Log::default()));
        tokio::time::sleep(Duration::from_millis(30)).await;
        assert!(!stop.is_stopped());
        std::fs::write(&current, "99\n").unwrap();
        tokio::time::timeout(Duration::from_secs(5), running).await.unwrap().unwrap();
        assert!(stop.is_stopped());
    }

    #[test]
    fn missing_limit_is_never_reached() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("max");
        std::fs::write(&file, "max\n").unwrap();
        assert_eq!(number(&file).unwrap(), u64::MAX);
        std::fs::write(&file, "much\n").unwrap();
        assert!(format!("{:#}", number(&file).unwrap_err()).contains("does not contain a number"));
    }
}
