//! The remote bases of one build, within its limits.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fl_git_client::RemoteOptions;
use fl_http::{AddressPolicy, ByteBudget, HeldBytes, Lease, Owner};
use fl_kustomize::{Fetcher, HostError, Repository};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::checkout::{Written, check_out};
use crate::error::BaseError;

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
const FILE_TIMEOUT: Duration = Duration::from_secs(27);

/// Fetches what the kustomizations of one build name. The build must be on a thread that may block.
pub struct RemoteBases {
    owner: Owner,
    addresses: AddressPolicy,
    limits: Limits,
    lease: Lease,
    /// Made when something is to be fetched; most builds fetch nothing.
    folder: OnceCell<Folder>,
    /// Where no runtime is around.
    runtime: OnceCell<Runtime>,
    results: RefCell<FetchResults>,
}

struct Folder {
    path: PathBuf,
    _remove_on_drop: tempfile::TempDir,
}

/// Results by address, also of failures: a host that does not answer is requested once.
#[derive(Default)]
struct FetchResults {
    files: HashMap<String, Result<Vec<u8>, String>>,
    checkouts: HashMap<(String, String, bool), Result<PathBuf, String>>,
    /// Counts the files and checkouts.
    held: Vec<HeldBytes>,
    started: Option<Instant>,
    bytes: u64,
    entries: usize,
}

/// What is left of the limits of the build.
pub(crate) struct RemainingBudget {
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
            lease: ByteBudget::shared().lease(owner.clone(), limits.time),
            owner,
            addresses,
            limits,
            folder: OnceCell::new(),
            runtime: OnceCell::new(),
            results: RefCell::default(),
        }
    }

    /// Whether the build fetched anything: then the next build may have another result.
    #[must_use]
    pub fn used(&self) -> bool {
        let results = self.results.borrow();
        !results.files.is_empty() || !results.checkouts.is_empty()
    }

    pub(crate) fn holds(&self, path: &Path) -> bool {
        self.folder.get().is_some_and(|folder| path.starts_with(&folder.path))
    }

    fn folder(&self) -> Result<&Path, BaseError> {
        if self.folder.get().is_none() {
            let made = tempfile::Builder::new().prefix("bases-").tempdir().map_err(BaseError::Folder)?;
            let path = made.path().canonicalize().map_err(BaseError::Folder)?;
            let _ = self.folder.set(Folder { path, _remove_on_drop: made });
        }
        self.folder.get().map(|f| f.path.as_path()).ok_or(BaseError::NoFolder)
    }

    /// Runs a future on the runtime of the process, or on an own one in commands without a runtime.
    fn wait<T>(&self, work: impl Future<Output = Result<T, BaseError>>) -> Result<T, BaseError> {
        if let Ok(handle) = Handle::try_current() {
            return handle.block_on(work);
        }
        if self.runtime.get().is_none() {
            let _ =
                self.runtime.set(Builder::new_current_thread().enable_all().build().map_err(BaseError::Io)?);
        }
        match self.runtime.get() {
            Some(runtime) => runtime.block_on(work),
            None => Err(BaseError::NoRuntime),
        }
    }

    fn remaining(&self) -> Result<RemainingBudget, BaseError> {
        let mut results = self.results.borrow_mut();
        let limits = &self.limits;
        if results.files.len() + results.checkouts.len() >= limits.addresses {
            return Err(BaseError::TooManyAddresses(limits.addresses));
        }
        let spent = results.started.get_or_insert_with(Instant::now).elapsed();
        let time = limits.time.checked_sub(spent).filter(|t| !t.is_zero());
        Ok(RemainingBudget {
            bytes: limits.bytes.saturating_sub(results.bytes),
            entries: limits.entries.saturating_sub(results.entries),
            time: time.ok_or(BaseError::TooLong(limits.time))?,
        })
    }

    async fn get(&self, url: &str, left: &RemainingBudget) -> Result<(Vec<u8>, HeldBytes), BaseError> {
        let settings = fl_http::Settings {
            timeout: FILE_TIMEOUT.min(left.time),
            addresses: self.addresses.clone(),
            ..fl_http::Settings::new(self.owner.clone())
        };
        let client = fl_http::Client::new(settings)?;
        let request = fl_http::Request::get(url)?;
        let response = client.send(request).await?;
        if !response.status().is_success() {
            return Err(BaseError::Status(response.status()));
        }
        let mut held = self.lease.hold();
        let bytes = response.bytes_held(self.limits.file.min(left.bytes), &mut held).await?;
        Ok((bytes.to_vec(), held))
    }

    fn remote_options(&self, left: &RemainingBudget) -> RemoteOptions {
        RemoteOptions {
            pack_bytes: left.bytes,
            addresses: self.addresses.clone(),
            lease: self.lease.clone(),
            ..RemoteOptions::new(self.owner.clone())
        }
    }

    fn clone_into_folder(&self, repository: &Repository) -> Result<PathBuf, BaseError> {
        let left = self.remaining()?;
        let place = self.folder()?.join(self.results.borrow().checkouts.len().to_string());
        let written = self.wait(check_out(repository, self.remote_options(&left), &left, &place));
        let Written { bytes, entries, held } = written.inspect_err(|_| {
            // A partial checkout is of no use.
            let _ = std::fs::remove_dir_all(&place);
        })?;
        let mut results = self.results.borrow_mut();
        results.bytes += bytes;
        results.entries += entries;
        results.held.push(held);
        Ok(place)
    }
}

impl Fetcher for RemoteBases {
    fn file(&self, url: &str) -> Result<Vec<u8>, HostError> {
        if let Some(known) = self.results.borrow().files.get(url) {
            return Ok(known.clone()?);
        }
        let fetched = self.remaining().and_then(|left| self.wait(self.get(url, &left)));
        let mut results = self.results.borrow_mut();
        let fetched = fetched.map_err(|error| error.to_string()).map(|(bytes, held)| {
            results.bytes += bytes.len() as u64;
            results.held.push(held);
            bytes
        });
        results.files.insert(url.to_owned(), fetched.clone());
        Ok(fetched?)
    }

    fn checkout(&self, repository: &Repository) -> Result<PathBuf, HostError> {
        let key = (repository.url.clone(), repository.reference.clone(), repository.submodules);
        if let Some(known) = self.results.borrow().checkouts.get(&key) {
            return Ok(known.clone()?);
        }
        let fetched = self.clone_into_folder(repository).map_err(|error| error.to_string());
        self.results.borrow_mut().checkouts.insert(key, fetched.clone());
        Ok(fetched?)
    }
}
