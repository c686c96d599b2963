//! What a build fetches, within its budget.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fl_gitfetch::RemoteOptions;
use fl_http::{AddressPolicy, Owner};
use fl_kustomize::{Fetcher, Repository};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::checkout::check_out;

/// What one build may fetch.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Different addresses of files and repositories.
    pub addresses: usize,
    /// Bytes of one file.
    pub file: u64,
    /// Bytes of all files, and of repositories unpacked.
    pub bytes: u64,
    /// Files and directories of all repositories.
    pub entries: usize,
    /// For all of it together; each address has its own time within this.
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            addresses: 256,
            file: 64 << 20,
            bytes: 1 << 30,
            entries: 200_000,
            time: Duration::from_secs(10 * 60),
        }
    }
}

/// How long kustomize waits for a repository; files get no longer.
const FILE_TIME: Duration = Duration::from_secs(27);

/// Fetches what the kustomizations of one build name. The build must be on a thread that may block.
pub struct RemoteBases {
    owner: Owner,
    addresses: AddressPolicy,
    limits: Limits,
    /// Made when something is to be fetched; most builds fetch nothing.
    folder: OnceCell<Folder>,
    /// Where no runtime is around.
    runtime: OnceCell<Runtime>,
    done: RefCell<Done>,
}

struct Folder {
    path: PathBuf,
    _vanishes: tempfile::TempDir,
}

/// Also what failed: a host that does not answer is asked once.
#[derive(Default)]
struct Done {
    files: HashMap<String, Result<Vec<u8>, String>>,
    checkouts: HashMap<(String, String, bool), Result<PathBuf, String>>,
    started: Option<Instant>,
    bytes: u64,
    entries: usize,
}

/// What is left of the budget.
pub(crate) struct Left {
    pub(crate) bytes: u64,
    pub(crate) entries: usize,
    pub(crate) time: Duration,
}

impl std::fmt::Debug for RemoteBases {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteBases").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

impl RemoteBases {
    /// Nothing is fetched yet.
    #[must_use]
    pub fn new(owner: Owner, addresses: AddressPolicy, limits: Limits) -> Self {
        RemoteBases {
            owner,
            addresses,
            limits,
            folder: OnceCell::new(),
            runtime: OnceCell::new(),
            done: RefCell::default(),
        }
    }

    /// Whether the build asked for anything: then nobody knows whether the next one would come to the same.
    #[must_use]
    pub fn used(&self) -> bool {
        let done = self.done.borrow();
        !done.files.is_empty() || !done.checkouts.is_empty()
    }

    pub(crate) fn holds(&self, path: &Path) -> bool {
        self.folder.get().is_some_and(|folder| path.starts_with(&folder.path))
    }

    fn folder(&self) -> Result<&Path, String> {
        if self.folder.get().is_none() {
            let no = |e: std::io::Error| format!("there is no folder for it: {e}");
            let made = tempfile::Builder::new().prefix("bases-").tempdir().map_err(no)?;
            let path = made.path().canonicalize().map_err(no)?;
            let _ = self.folder.set(Folder { path, _vanishes: made });
        }
        self.folder.get().map(|f| f.path.as_path()).ok_or_else(|| "there is no folder for it".to_owned())
    }

    /// Waits on the runtime of the process, or on one of its own where a command has none.
    fn wait<T>(&self, work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
        if let Ok(handle) = Handle::try_current() {
            return handle.block_on(work);
        }
        if self.runtime.get().is_none() {
            let _ = self
                .runtime
                .set(Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?);
        }
        match self.runtime.get() {
            Some(runtime) => runtime.block_on(work),
            None => Err("nothing can be fetched here".to_owned()),
        }
    }

    fn left(&self) -> Result<Left, String> {
        let mut done = self.done.borrow_mut();
        let limits = &self.limits;
        if done.files.len() + done.checkouts.len() >= limits.addresses {
            return Err(format!("the build fetches from more than {} addresses", limits.addresses));
        }
        let spent = done.started.get_or_insert_with(Instant::now).elapsed();
        let time = limits.time.checked_sub(spent).filter(|t| !t.is_zero());
        Ok(Left {
            bytes: limits.bytes.saturating_sub(done.bytes),
            entries: limits.entries.saturating_sub(done.entries),
            time: time.ok_or_else(|| format!("the build has fetched for {:?} already", limits.time))?,
        })
    }

    async fn get(&self, url: &str, left: &Left) -> Result<Vec<u8>, String> {
        let settings = fl_http::Settings {
            timeout: FILE_TIME.min(left.time),
            addresses: self.addresses.clone(),
            ..fl_http::Settings::new(self.owner.clone())
        };
        let client = fl_http::Client::new(settings).map_err(|e| e.to_string())?;
        let request = fl_http::Request::get(url).map_err(|e| e.to_string())?;
        let response = client.send(request).await.map_err(|e| e.to_string())?;
        if !response.status().is_success() {
            return Err(format!("the server answered {}", response.status()));
        }
        let bytes = response.bytes(self.limits.file.min(left.bytes)).await.map_err(|e| e.to_string())?;
        Ok(bytes.to_vec())
    }

    fn remote_options(&self, left: &Left) -> RemoteOptions {
        RemoteOptions {
            pack_bytes: left.bytes,
            addresses: self.addresses.clone(),
            ..RemoteOptions::new(self.owner.clone())
        }
    }

    fn clone_into_folder(&self, repository: &Repository) -> Result<PathBuf, String> {
        let left = self.left()?;
        let place = self.folder()?.join(self.done.borrow().checkouts.len().to_string());
        let written = self.wait(check_out(repository, self.remote_options(&left), &left, &place));
        let (bytes, entries) = written.inspect_err(|_| {
            // What was written before it failed is of no use.
            let _ = std::fs::remove_dir_all(&place);
        })?;
        let mut done = self.done.borrow_mut();
        done.bytes += bytes;
        done.entries += entries;
        Ok(place)
    }
}

impl Fetcher for RemoteBases {
    fn file(&self, url: &str) -> Result<Vec<u8>, String> {
        if let Some(known) = self.done.borrow().files.get(url) {
            return known.clone();
        }
        let fetched = self.left().and_then(|left| self.wait(self.get(url, &left)));
        let mut done = self.done.borrow_mut();
        done.bytes += fetched.as_ref().map_or(0, |f| f.len() as u64);
        done.files.insert(url.to_owned(), fetched.clone());
        fetched
    }

    fn checkout(&self, repository: &Repository) -> Result<PathBuf, String> {
        let key = (repository.url.clone(), repository.reference.clone(), repository.submodules);
        if let Some(known) = self.done.borrow().checkouts.get(&key) {
            return known.clone();
        }
        let fetched = self.clone_into_folder(repository);
        self.done.borrow_mut().checkouts.insert(key, fetched.clone());
        fetched
    }
}
