//! How the controller reaches Git: through a trait, so that tests can put a twin in its place.

use std::io::{self, Read};
use std::path::PathBuf;
use std::time::Duration;

use fl_gitfetch::{
    Auth, Commit, FetchOptions, Reference, Remote, RemoteOptions, Resolved, Snapshot, SshAlgorithms,
};
use fl_http::{Owner, Proxy};
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::tree::{Node, Tree};

/// One repository as one object asks for it.
#[derive(Clone, Debug)]
pub struct GitRequest {
    /// On whose behalf it is fetched.
    pub owner: Owner,
    pub url: String,
    pub auth: Auth,
    pub proxy: Option<Proxy>,
    pub timeout: Duration,
    pub reference: Reference,
}

/// The commit a reference stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// `main@sha1:…`
    pub revision: String,
    /// The hash alone.
    pub commit: String,
}

/// A commit and its files.
pub struct Fetched {
    pub commit: Commit,
    pub tree: Box<dyn Tree>,
}

impl std::fmt::Debug for Fetched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fetched").field("commit", &self.commit).finish_non_exhaustive()
    }
}

/// A repository that has been opened.
pub trait GitRemote: Send {
    /// Which commit it is now; `None` for an empty repository. Errors are texts for people.
    fn resolve(&mut self, has_artifact: bool) -> BoxFuture<'_, Result<Option<Found>, String>>;
    /// The files of the commit that was resolved.
    fn fetch<'a>(&'a mut self, options: &'a FetchOptions) -> BoxFuture<'a, Result<Fetched, String>>;
}

/// Opens repositories.
pub trait GitClient: Send + Sync {
    fn open(&self, request: &GitRequest) -> Result<Box<dyn GitRemote>, String>;
}

/// The real one.
#[derive(Clone, Debug)]
pub struct NetworkGit {
    /// Where packs are kept while they are read.
    pub scratch: PathBuf,
    /// What connections over SSH may use.
    pub ssh: SshAlgorithms,
}

impl GitClient for NetworkGit {
    fn open(&self, request: &GitRequest) -> Result<Box<dyn GitRemote>, String> {
        let options = RemoteOptions {
            proxy: request.proxy.clone(),
            timeout: request.timeout,
            scratch: self.scratch.clone(),
            ssh: self.ssh.clone(),
            ..RemoteOptions::new(request.owner.clone())
        };
        let remote = Remote::new(&request.url, request.auth.clone(), options).map_err(|e| e.to_string())?;
        Ok(Box::new(Opened { remote, reference: request.reference.clone(), resolved: None }))
    }
}

struct Opened {
    remote: Remote,
    reference: Reference,
    resolved: Option<Resolved>,
}

impl GitRemote for Opened {
    fn resolve(&mut self, has_artifact: bool) -> BoxFuture<'_, Result<Option<Found>, String>> {
        async move {
            let resolved =
                self.remote.resolve(&self.reference, has_artifact).await.map_err(|e| e.to_string())?;
            let found =
                resolved.as_ref().map(|r| Found { revision: r.revision(), commit: r.commit.to_string() });
            self.resolved = resolved;
            Ok(found)
        }
        .boxed()
    }

    fn fetch<'a>(&'a mut self, options: &'a FetchOptions) -> BoxFuture<'a, Result<Fetched, String>> {
        async move {
            let resolved = self.resolved.as_ref().ok_or("nothing was resolved yet")?;
            let checkout = self.remote.fetch(resolved, options).await.map_err(|e| e.to_string())?;
            Ok(Fetched { commit: checkout.commit, tree: Box::new(SnapshotTree(checkout.snapshot)) })
        }
        .boxed()
    }
}

/// The tree of a commit.
struct SnapshotTree(Snapshot);

impl Tree for SnapshotTree {
    fn paths(&self) -> Vec<(String, Node)> {
        let node = |kind| match kind {
            fl_gitfetch::Kind::Directory => Node::Directory,
            fl_gitfetch::Kind::File { executable } => Node::File { executable },
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
