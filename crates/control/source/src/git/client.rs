//! The Git client of the controller, as a trait so that tests can use a fake.

use std::io::{self, Read};
use std::path::PathBuf;
use std::time::Duration;

use fl_git_client::{
    Auth, Commit, FetchOptions, Reference, Remote, RemoteOptions, Resolved, Snapshot, SshAlgorithms,
};
use fl_http::{Lease, Owner, Proxy};
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::tree::{Node, Tree};

/// The repository and reference of one object.
#[derive(Clone, Debug)]
pub struct GitRequest {
    /// On whose behalf it is fetched.
    pub owner: Owner,
    pub url: String,
    pub auth: Auth,
    pub proxy: Option<Proxy>,
    pub timeout: Duration,
    pub reference: Reference,
    /// Counts what is fetched.
    pub lease: Lease,
}

/// Why a repository could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GitError {
    #[error("{0}")]
    Remote(#[from] fl_git_client::Error),
    #[error("nothing was resolved yet")]
    NotResolved,
    /// Of another implementation of [`GitClient`].
    #[error("{0}")]
    Other(String),
}

impl From<String> for GitError {
    fn from(problem: String) -> Self {
        GitError::Other(problem)
    }
}

/// The commit that a reference resolved to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedCommit {
    /// `main@sha1:…`
    pub revision: String,
    /// The hash alone.
    pub commit: String,
}

/// A commit and its files.
pub struct FetchedCommit {
    pub commit: Commit,
    pub tree: Box<dyn Tree>,
}

impl std::fmt::Debug for FetchedCommit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FetchedCommit").field("commit", &self.commit).finish_non_exhaustive()
    }
}

/// A connection to a repository.
pub trait GitRemote: Send {
    /// The commit that the reference names now; `None` for an empty repository.
    fn resolve(&mut self, has_artifact: bool) -> BoxFuture<'_, Result<Option<ResolvedCommit>, GitError>>;
    /// The files of the resolved commit.
    fn fetch<'a>(&'a mut self, options: &'a FetchOptions) -> BoxFuture<'a, Result<FetchedCommit, GitError>>;
}

/// Opens repositories.
pub trait GitClient: Send + Sync {
    fn open(&self, request: &GitRequest) -> Result<Box<dyn GitRemote>, GitError>;
}

/// Repositories over HTTP and SSH.
#[derive(Clone, Debug)]
pub struct NetworkGit {
    /// Where packs are kept while they are read.
    pub scratch: PathBuf,
    /// What connections over SSH may use.
    pub ssh: SshAlgorithms,
}

impl GitClient for NetworkGit {
    fn open(&self, request: &GitRequest) -> Result<Box<dyn GitRemote>, GitError> {
        let options = RemoteOptions {
            proxy: request.proxy.clone(),
            timeout: request.timeout,
            scratch: self.scratch.clone(),
            ssh: self.ssh.clone(),
            lease: request.lease.clone(),
            ..RemoteOptions::new(request.owner.clone())
        };
        let remote = Remote::new(&request.url, request.auth.clone(), options)?;
        Ok(Box::new(GitConnection { remote, reference: request.reference.clone(), resolved: None }))
    }
}

struct GitConnection {
    remote: Remote,
    reference: Reference,
    resolved: Option<Resolved>,
}

impl GitRemote for GitConnection {
    fn resolve(&mut self, has_artifact: bool) -> BoxFuture<'_, Result<Option<ResolvedCommit>, GitError>> {
        async move {
            let resolved = self.remote.resolve(&self.reference, has_artifact).await?;
            let found = resolved
                .as_ref()
                .map(|r| ResolvedCommit { revision: r.revision(), commit: r.commit.to_string() });
            self.resolved = resolved;
            Ok(found)
        }
        .boxed()
    }

    fn fetch<'a>(&'a mut self, options: &'a FetchOptions) -> BoxFuture<'a, Result<FetchedCommit, GitError>> {
        async move {
            let resolved = self.resolved.as_ref().ok_or(GitError::NotResolved)?;
            let checkout = self.remote.fetch(resolved, options).await?;
            Ok(FetchedCommit { commit: checkout.commit, tree: Box::new(SnapshotTree(checkout.snapshot)) })
        }
        .boxed()
    }
}

/// The tree of a commit.
struct SnapshotTree(Snapshot);

impl Tree for SnapshotTree {
    fn paths(&self) -> Vec<(String, Node)> {
        let node = |kind| match kind {
            fl_git_client::Kind::Directory => Node::Directory,
            fl_git_client::Kind::File { executable } => Node::File { executable },
        };
        self.0.entries().iter().map(|e| (e.path.clone(), node(e.kind))).collect()
    }

    fn open(&mut self, path: &str) -> io::Result<(u64, Box<dyn Read + '_>)> {
        // Entries are in the order of an archive.
        let at = self.0.entries().binary_search_by(|e| e.path.split('/').cmp(path.split('/')));
        let entry = at.ok().and_then(|i| self.0.entries().get(i)).cloned().ok_or(io::ErrorKind::NotFound)?;
        self.0.open_file(&entry).map_err(io::Error::other)
    }

    fn has(&self, path: &str) -> bool {
        self.0.has_path(path)
    }
}
