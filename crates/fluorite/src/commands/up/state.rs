//! The folder that `up` keeps everything in: one process at a time, of one format, never half written.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rustix::fs::FlockOperation;
use rustix::process::{Flock, FlockType, Pid, Signal};
use serde_json::{Value, json};

/// What the folder's `format` file says; a number that grows when older programs could not read the rest.
const FORMAT: &str = "fluorite up ";
const VERSION: u32 = 1;
/// How long a running `up` is given to end.
const PATIENCE: Duration = Duration::from_secs(20);
/// A log longer than this is begun anew at the next start.
const LOG_BYTES: u64 = 8 << 20;

/// Where state is kept when nobody says otherwise.
pub(crate) fn default_folder() -> anyhow::Result<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let base = set("XDG_STATE_HOME")
        .filter(|p| p.is_absolute())
        .or_else(|| set("HOME").map(|home| home.join(".local/state")))
        .context("neither XDG_STATE_HOME nor HOME is set; say where to keep state with --state-dir")?;
    Ok(base.join("fluorite/up"))
}

/// What the folder remembers between two runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Settings {
    /// What is delivered.
    pub(super) source: String,
    /// The cluster, if it is not the one in the folder.
    pub(super) context: Option<String>,
    /// The branch of a remote repository that is delivered.
    pub(super) branch: Option<String>,
    /// Where the API server and the artifacts were last found; taken again when they are free.
    pub(super) api: Option<String>,
    pub(super) artifacts: Option<String>,
}

/// An open folder; nobody else has it until this is dropped.
#[derive(Debug)]
pub(super) struct Folder {
    root: PathBuf,
    /// The lock lives as long as this file is open. POSIX locks end with the process, whatever ends it, and the kernel
    /// knows who holds them.
    _lock: File,
}

impl Folder {
    /// Takes the folder, making it when it is not there.
    pub(super) fn open(root: &Path) -> anyhow::Result<Self> {
        if !root.exists() {
            DirBuilder::new().recursive(true).mode(0o700).create(root).map_err(|e| denied(root, e))?;
        }
        let root = root.canonicalize().map_err(|e| denied(root, e))?;
        let format = read_format(&root)?;
        if format.is_none() {
            let mut entries = std::fs::read_dir(&root).map_err(|e| denied(&root, e))?;
            // A start that was cut short leaves these and nothing else.
            let ours = |name: &std::ffi::OsStr| name == "lock" || name == "format.new";
            if entries.any(|e| e.is_ok_and(|e| !ours(&e.file_name()))) {
                bail!(
                    "{} holds files that are not of `fluorite up`; nothing was touched. Give another folder with --state-dir",
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
                "`fluorite up` runs on {} already{who}; watch it with the kubeconfig there, end it with `fluorite down`, or give another folder with --state-dir",
                root.display()
            );
        }
        if format.is_none() {
            write_whole(&root.join("format"), format!("{FORMAT}{VERSION}\n").as_bytes())?;
        }
        // The folder is ours now, whoever could read it before: it holds keys, tokens and the content of Secrets.
        fl_apiserver::private_dir(&root).map_err(|e| denied(&root, e))?;
        Ok(Folder { root, _lock: lock })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// What is remembered; `None` in a fresh folder.
    pub(super) fn settings(&self) -> anyhow::Result<Option<Settings>> {
        let path = self.path("settings.json");
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(denied(&path, e)),
        };
        let value: Value = serde_json::from_slice(&text)
            .map_err(|e| anyhow::anyhow!(damaged(&self.root, &format!("settings.json: {e}"))))?;
        let field = |name: &str| value[name].as_str().map(str::to_owned);
        let source = field("source")
            .ok_or_else(|| anyhow::anyhow!(damaged(&self.root, "settings.json names no source")))?;
        Ok(Some(Settings {
            source,
            context: field("context"),
            branch: field("branch"),
            api: field("api"),
            artifacts: field("artifacts"),
        }))
    }

    pub(super) fn remember(&self, settings: &Settings) -> anyhow::Result<()> {
        let text = json!({
            "source": settings.source, "context": settings.context, "api": settings.api,
            "artifacts": settings.artifacts, "branch": settings.branch,
        });
        write_whole(&self.path("settings.json"), format!("{text:#}\n").as_bytes())
    }

    /// Where the controllers' log goes.
    pub(super) fn log(&self) -> anyhow::Result<File> {
        let path = self.path("log");
        let long = std::fs::metadata(&path).is_ok_and(|m| m.len() > LOG_BYTES);
        let mut options = OpenOptions::new();
        options.create(true).mode(0o600);
        let options = if long { options.write(true).truncate(true) } else { options.append(true) };
        options.open(&path).map_err(|e| denied(&path, e))
    }
}

/// A sentence for a folder whose content cannot be trusted.
pub(super) fn damaged(root: &Path, problem: &str) -> String {
    format!(
        "the state in {} is damaged ({problem}); nothing was changed. Start elsewhere with --state-dir, or throw it away with `fluorite down --purge`",
        root.display()
    )
}

fn denied(path: &Path, error: std::io::Error) -> anyhow::Error {
    let shown = path.display();
    match error.kind() {
        ErrorKind::PermissionDenied => anyhow::anyhow!(
            "no permission for {shown}; give a folder of your own with --state-dir, or correct the owner of this one"
        ),
        ErrorKind::ReadOnlyFilesystem => {
            anyhow::anyhow!("{shown} is on a read-only disk; give another folder with --state-dir")
        }
        _ => anyhow::Error::new(error).context(format!("cannot use {shown}")),
    }
}

/// The version of the folder; `None` when it is not one of ours.
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
            "the state in {} was written by a newer fluorite (format {version}, this one knows {VERSION}); nothing was changed. Use the newer one, or another folder with --state-dir",
            root.display()
        ),
        Some(version) => Ok(Some(version)),
        None => bail!(damaged(root, "its format file cannot be understood")),
    }
}

/// Replaces a file so that a reader finds the old or the new one, whole.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
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

/// The process that holds the lock of a file, as the kernel tells it.
fn holder(lock: &File) -> Option<i32> {
    let found = rustix::process::fcntl_getlk(lock, &Flock::from(FlockType::WriteLock)).ok()??;
    found.pid.map(Pid::as_raw_pid)
}

/// How a request to end went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    NotRunning,
    Stopped(i32),
}

/// Ends the `up` that holds a folder. Whom to tell comes from the kernel's own table of locks, so no stranger is met.
pub(crate) fn stop(root: &Path) -> anyhow::Result<Ended> {
    let path = root.join("lock");
    let lock = match OpenOptions::new().read(true).write(true).open(&path) {
        Ok(lock) => lock,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Ended::NotRunning),
        Err(e) => return Err(denied(&path, e)),
    };
    let Some(pid) = holder(&lock) else { return Ok(Ended::NotRunning) };
    let process = Pid::from_raw(pid).with_context(|| {
        format!(
            "the process that holds {} is not one of this container; end it where it runs",
            path.display()
        )
    })?;
    rustix::process::kill_process(process, Signal::TERM)
        .with_context(|| format!("process {pid} holds {} and cannot be told to end", path.display()))?;
    let start = Instant::now();
    while holder(&lock) == Some(pid) {
        if start.elapsed() > PATIENCE {
            bail!("process {pid} was told to end but has not after {} s", PATIENCE.as_secs());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(Ended::Stopped(pid))
}

/// Removes a folder of `up`, and nothing that is not one. `false` when there is none.
pub(crate) fn purge(root: &Path) -> anyhow::Result<bool> {
    if !root.exists() {
        return Ok(false);
    }
    let text = std::fs::read(root.join("format")).unwrap_or_default();
    let only_lock = std::fs::read_dir(root)
        .map_err(|e| denied(root, e))?
        .all(|e| e.is_ok_and(|e| e.file_name() == "lock" || e.file_name() == "format.new"));
    if !text.starts_with(FORMAT.as_bytes()) && !only_lock && !looks_ours(root) {
        bail!("{} was not made by `fluorite up`; it is left alone", root.display());
    }
    // The mark goes last: what is cut short can be told again.
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

/// A folder whose mark is damaged but which has the parts.
fn looks_ours(root: &Path) -> bool {
    ["lock", "format", "settings.json"].iter().all(|name| root.join(name).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_made_kept_and_understood_again() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("deep/state");
        let folder = Folder::open(&root).unwrap();
        assert_eq!(folder.settings().unwrap(), None);
        let settings = Settings { source: "example".to_owned(), ..Settings::default() };
        folder.remember(&settings).unwrap();
        drop(folder);
        assert_eq!(Folder::open(&root).unwrap().settings().unwrap(), Some(settings));
    }

    #[test]
    fn strangers_newer_and_damaged_folders_are_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let says = |root: &Path| format!("{:#}", Folder::open(root).unwrap_err());
        std::fs::write(dir.path().join("thesis.txt"), "mine").unwrap();
        assert!(says(dir.path()).contains("not of `fluorite up`"));
        assert!(purge(dir.path()).unwrap_err().to_string().contains("left alone"));

        let newer = tempfile::tempdir().unwrap();
        std::fs::write(newer.path().join("format"), "fluorite up 7\n").unwrap();
        assert!(says(newer.path()).contains("a newer fluorite (format 7"));
        std::fs::write(newer.path().join("format"), "garbage").unwrap();
        assert!(says(newer.path()).contains("damaged"));

        let broken = tempfile::tempdir().unwrap();
        let folder = Folder::open(broken.path()).unwrap();
        std::fs::write(folder.path("settings.json"), "{").unwrap();
        assert!(folder.settings().unwrap_err().to_string().contains("damaged"));
        drop(folder);
        assert!(purge(broken.path()).unwrap() && !broken.path().exists());
    }

    #[test]
    fn a_folder_that_others_could_read_becomes_private() {
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
    fn nobody_to_stop() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(stop(dir.path()).unwrap(), Ended::NotRunning);
        drop(Folder::open(dir.path()).unwrap());
        assert_eq!(stop(dir.path()).unwrap(), Ended::NotRunning);
    }
}
