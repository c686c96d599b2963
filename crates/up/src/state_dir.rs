//! The state directory of `up`: locked by one process, with a format version, and written atomically.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rustix::fs::FlockOperation;
use rustix::process::{Flock, FlockType, Pid, Signal};
use serde_json::{Value, json};

/// Content of the `format` file; the version is raised when older programs cannot read the directory.
const FORMAT: &str = "fluorite up ";
const VERSION: u32 = 1;
/// How long `down` waits for a running `up` to exit.
const EXIT_TIMEOUT: Duration = Duration::from_secs(20);
/// A longer log is truncated at the next start.
const MAX_LOG_BYTES: u64 = 8 << 20;

/// The default state directory: `$XDG_STATE_HOME/fluorite/up`, else below `~/.local/state`.
///
/// # Errors
/// Neither `XDG_STATE_HOME` nor `HOME` is set.
pub fn default_state_dir() -> anyhow::Result<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let base = set("XDG_STATE_HOME")
        .filter(|p| p.is_absolute())
        .or_else(|| set("HOME").map(|home| home.join(".local/state")))
        .context("neither XDG_STATE_HOME nor HOME is set; name a state directory with --state-dir")?;
    Ok(base.join("fluorite/up"))
}

/// Settings that are kept between two runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Settings {
    /// What is delivered.
    pub(super) source: String,
    /// The context of a real cluster; `None` for the embedded one.
    pub(super) context: Option<String>,
    /// The branch of a remote repository that is delivered.
    pub(super) branch: Option<String>,
    /// Last addresses of the API server and the artifact server; reused when they are free.
    pub(super) api: Option<String>,
    pub(super) artifacts: Option<String>,
}

/// An open state directory, locked until it is dropped.
#[derive(Debug)]
pub(super) struct Folder {
    root: PathBuf,
    /// The lock lives as long as this file is open. POSIX locks are released however the process ends, and the kernel
    /// names their holder.
    _lock: File,
}

impl Folder {
    /// Opens and locks the directory; creates it if it does not exist.
    pub(super) fn open(root: &Path) -> anyhow::Result<Self> {
        if !root.exists() {
            DirBuilder::new().recursive(true).mode(0o700).create(root).map_err(|e| denied(root, e))?;
        }
        let root = root.canonicalize().map_err(|e| denied(root, e))?;
        let format = read_format(&root)?;
        if format.is_none() {
            let mut entries = std::fs::read_dir(&root).map_err(|e| denied(&root, e))?;
            // An interrupted first start leaves only these.
            let ours = |name: &std::ffi::OsStr| name == "lock" || name == "format.new";
            if entries.any(|e| e.is_ok_and(|e| !ours(&e.file_name()))) {
                bail!(
                    "{} contains files that are not of `fluorite up`; nothing was changed. Use another directory with --state-dir",
                    root.display()
                );
            }
        }
        let lock_path = root.join("lock");
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let lock = options.open(&lock_path).map_err(|e| denied(&lock_path, e))?;
        if rustix::fs::fcntl_lock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            let who = holder(&lock).map_or_else(String::new, |pid| format!(" (process {pid})"));
            bail!(
                "`fluorite up` already runs on {}{who}; use the kubeconfig there, stop it with `fluorite down`, or use another directory with --state-dir",
                root.display()
            );
        }
        if format.is_none() {
            write_atomically(&root.join("format"), format!("{FORMAT}{VERSION}\n").as_bytes())?;
        }
        // It holds keys, tokens and the content of Secrets: only the owner may read it, whatever its mode was.
        fl_apiserver::private_dir(&root).map_err(|e| denied(&root, e))?;
        Ok(Folder { root, _lock: lock })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The settings of the last run; `None` in a new directory.
    pub(super) fn settings(&self) -> anyhow::Result<Option<Settings>> {
        let path = self.path("settings.json");
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(denied(&path, e)),
        };
        let value: Value = serde_json::from_slice(&text)
            .map_err(|e| anyhow::anyhow!(corrupt(&self.root, &format!("settings.json: {e}"))))?;
        let field = |name: &str| value[name].as_str().map(str::to_owned);
        let source = field("source")
            .ok_or_else(|| anyhow::anyhow!(corrupt(&self.root, "settings.json names no source")))?;
        Ok(Some(Settings {
            source,
            context: field("context"),
            branch: field("branch"),
            api: field("api"),
            artifacts: field("artifacts"),
        }))
    }

    pub(super) fn save(&self, settings: &Settings) -> anyhow::Result<()> {
        let text = json!({
            "source": settings.source, "context": settings.context, "api": settings.api,
            "artifacts": settings.artifacts, "branch": settings.branch,
        });
        write_atomically(&self.path("settings.json"), format!("{text:#}\n").as_bytes())
    }

    /// Opens the log file of the controllers.
    pub(super) fn log(&self) -> anyhow::Result<File> {
        let path = self.path("log");
        let long = std::fs::metadata(&path).is_ok_and(|m| m.len() > MAX_LOG_BYTES);
        let mut options = OpenOptions::new();
        options.create(true).mode(0o600);
        let options = if long { options.write(true).truncate(true) } else { options.append(true) };
        options.open(&path).map_err(|e| denied(&path, e))
    }
}

/// The error message for a directory with invalid content.
pub(super) fn corrupt(root: &Path, problem: &str) -> String {
    format!(
        "the state in {} is corrupt ({problem}); nothing was changed. Use another directory with --state-dir, or delete the state with `fluorite down --purge`",
        root.display()
    )
}

fn denied(path: &Path, error: std::io::Error) -> anyhow::Error {
    let shown = path.display();
    match error.kind() {
        ErrorKind::PermissionDenied => anyhow::anyhow!(
            "no permission for {shown}; use another directory with --state-dir, or correct the owner of this one"
        ),
        ErrorKind::ReadOnlyFilesystem => {
            anyhow::anyhow!("{shown} is on a read-only disk; use another directory with --state-dir")
        }
        _ => anyhow::Error::new(error).context(format!("cannot use {shown}")),
    }
}

/// The format version of the directory; `None` without a `format` file.
fn read_format(root: &Path) -> anyhow::Result<Option<u32>> {
    let path = root.join("format");
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) if e.kind() == ErrorKind::InvalidData => String::new(),
        Err(e) => return Err(denied(&path, e)),
    };
    match text.strip_prefix(FORMAT).and_then(|n| n.trim().parse::<u32>().ok()) {
        Some(version) if version > VERSION => bail!(
            "the state in {} was written by a newer fluorite (format {version}, this one supports {VERSION}); nothing was changed. Use the newer one, or another directory with --state-dir",
            root.display()
        ),
        Some(version) => Ok(Some(version)),
        None => bail!(corrupt(root, "its format file is invalid")),
    }
}

/// Replaces a file atomically.
pub(super) fn write_atomically(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = PathBuf::from(new);
    let write = || -> std::io::Result<()> {
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&new, path)
    };
    write().map_err(|e| denied(path, e))
}

/// The process that holds the lock of a file, from the kernel.
fn holder(lock: &File) -> Option<i32> {
    let found = rustix::process::fcntl_getlk(lock, &Flock::from(FlockType::WriteLock)).ok()??;
    found.pid.map(Pid::as_raw_pid)
}

/// Result of [`stop`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopResult {
    NotRunning,
    Stopped(i32),
}

/// Stops the `up` that holds the lock of a state directory. The kernel names the holder, so no other process is signalled.
pub(crate) fn stop(root: &Path) -> anyhow::Result<StopResult> {
    let path = root.join("lock");
    let lock = match OpenOptions::new().read(true).write(true).open(&path) {
        Ok(lock) => lock,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(StopResult::NotRunning),
        Err(e) => return Err(denied(&path, e)),
    };
    let Some(pid) = holder(&lock) else { return Ok(StopResult::NotRunning) };
    let process = Pid::from_raw(pid).with_context(|| {
        format!("the process that holds {} runs outside this container; stop it there", path.display())
    })?;
    rustix::process::kill_process(process, Signal::TERM)
        .with_context(|| format!("process {pid} holds {} and cannot be signalled", path.display()))?;
    let start = Instant::now();
    while holder(&lock) == Some(pid) {
        if start.elapsed() > EXIT_TIMEOUT {
            bail!("process {pid} has not exited {} s after SIGTERM", EXIT_TIMEOUT.as_secs());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(StopResult::Stopped(pid))
}

/// Removes a state directory of `up`, and no other directory. `false` if it does not exist.
pub(crate) fn purge(root: &Path) -> anyhow::Result<bool> {
    if !root.exists() {
        return Ok(false);
    }
    let text = std::fs::read(root.join("format")).unwrap_or_default();
    let only_lock = std::fs::read_dir(root)
        .map_err(|e| denied(root, e))?
        .all(|e| e.is_ok_and(|e| e.file_name() == "lock" || e.file_name() == "format.new"));
    if !text.starts_with(FORMAT.as_bytes()) && !only_lock && !has_state_files(root) {
        bail!("{} was not created by `fluorite up`; nothing was removed", root.display());
    }
    // The format file is removed last, so that an interrupted purge can be repeated.
    for entry in std::fs::read_dir(root).map_err(|e| denied(root, e))? {
        let path = entry?.path();
        if path.file_name().is_some_and(|n| n != "format") {
            let gone = if path.is_dir() && !path.is_symlink() {
                std::fs::remove_dir_all(&path)
            } else {
                std::fs::remove_file(&path)
            };
            gone.map_err(|e| denied(&path, e))?;
        }
    }
    std::fs::remove_dir_all(root).map_err(|e| denied(root, e))?;
    Ok(true)
}

/// A directory with a corrupt `format` file but the other files of `up`.
fn has_state_files(root: &Path) -> bool {
    ["lock", "format", "settings.json"].iter().all(|name| root.join(name).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_kept_between_runs() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("deep/state");
        let folder = Folder::open(&root).unwrap();
        assert_eq!(folder.settings().unwrap(), None);
        let settings = Settings { source: "example".to_owned(), ..Settings::default() };
        folder.save(&settings).unwrap();
        drop(folder);
        assert_eq!(Folder::open(&root).unwrap().settings().unwrap(), Some(settings));
    }

    #[test]
    fn foreign_newer_or_corrupt_state_dir_is_not_modified() {
        let dir = tempfile::tempdir().unwrap();
        let message = |root: &Path| format!("{:#}", Folder::open(root).unwrap_err());
        std::fs::write(dir.path().join("thesis.txt"), "mine").unwrap();
        assert!(message(dir.path()).contains("not of `fluorite up`"));
        assert!(purge(dir.path()).unwrap_err().to_string().contains("nothing was removed"));

        let newer = tempfile::tempdir().unwrap();
        std::fs::write(newer.path().join("format"), "fluorite up 7\n").unwrap();
        assert!(message(newer.path()).contains("a newer fluorite (format 7"));
        std::fs::write(newer.path().join("format"), "garbage").unwrap();
        assert!(message(newer.path()).contains("corrupt"));

        let broken = tempfile::tempdir().unwrap();
        let folder = Folder::open(broken.path()).unwrap();
        std::fs::write(folder.path("settings.json"), "{").unwrap();
        assert!(folder.settings().unwrap_err().to_string().contains("corrupt"));
        drop(folder);
        assert!(purge(broken.path()).unwrap() && !broken.path().exists());
    }

    #[test]
    fn readable_state_dir_becomes_private() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        drop(Folder::open(dir.path()).unwrap());
        let log = dir.path().join("log");
        std::fs::write(&log, "").unwrap();
        for (path, mode) in [(dir.path(), 0o755), (&log, 0o644)] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        drop(Folder::open(dir.path()).unwrap());
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(dir.path()), mode(&log)), (0o700, 0o600));
    }

    #[test]
    fn stop_without_a_running_process() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(stop(dir.path()).unwrap(), StopResult::NotRunning);
        drop(Folder::open(dir.path()).unwrap());
        assert_eq!(stop(dir.path()).unwrap(), StopResult::NotRunning);
    }
}
