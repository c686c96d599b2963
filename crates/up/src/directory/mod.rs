//! A directory served as a Git source: its commits, or with `--dirty` its files as they are.

mod client;
mod commit;
mod git_address;
mod watch;
mod work_tree;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, bail};
use fl_git_client::{DiskError, DiskRepository, Head};
use serde_json::{Value, json};

pub(super) use client::LocalGit;
pub(super) use git_address::address_of;
pub(super) use watch::Watcher;
use work_tree::{Scan, Scanner};

/// What is delivered from a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// The commit that is checked out.
    Commits,
    /// The files as they are saved.
    Files,
}

/// Branch of a directory without Git.
const BRANCH: &str = "main";

/// A directory that is served as a Git repository.
#[derive(Debug)]
pub(super) struct Directory {
    root: PathBuf,
    repository: Option<DiskRepository>,
    content: Content,
    scanner: Mutex<Scanner>,
}

/// The current revision of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DirectoryState {
    /// `spec.ref` of a GitRepository that follows it.
    pub(super) reference: Value,
    /// The commit: a real one, or the one computed from the files.
    pub(super) commit: String,
}

impl Directory {
    /// Opens a directory. A repository is served from its root; the second value is the path of `directory` below it.
    pub(super) fn open(directory: &Path, content: Content) -> anyhow::Result<(Self, String)> {
        let shown = directory.display();
        let named = match directory.canonicalize() {
            Ok(path) if path.is_dir() => path,
            Ok(_) => bail!("{shown} is a file; name its directory or repository"),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                bail!(
                    "{shown} is neither a directory nor an address; addresses begin with https://, http:// or ssh://"
                )
            }
            Err(e) => return Err(anyhow::Error::new(e).context(format!("cannot read {shown}"))),
        };
        let repository = match DiskRepository::discover(&named) {
            Ok(found) => Some(found),
            Err(DiskError::NotARepository(_)) if content == Content::Files => None,
            Err(DiskError::NotARepository(_)) => bail!(
                "{shown} is not a Git repository; make it one (`git init`, `git add`, `git commit`), or deliver its files as they are with --dirty"
            ),
            Err(error) => return Err(error.into()),
        };
        let root = match repository.as_ref().map(DiskRepository::work_tree) {
            Some(Some(tree)) => tree.to_owned(),
            Some(None) if content == Content::Files => {
                bail!("{shown} is a bare repository and has no files to deliver; leave --dirty out")
            }
            _ => named.clone(),
        };
        let below = named.strip_prefix(&root).ok().and_then(Path::to_str).unwrap_or_default().to_owned();
        let opened = Directory { root, repository, content, scanner: Mutex::default() };
        if content == Content::Commits {
            let (head, commit) = opened.head()?;
            if commit.is_none() {
                let Head::Branch(branch) = head else { bail!("{shown} has no commit yet") };
                bail!(
                    "{shown} is an empty repository: its branch `{branch}` has no commit yet. Commit something, or deliver the files as they are with --dirty"
                );
            }
        }
        Ok((opened, below))
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn content(&self) -> Content {
        self.content
    }

    /// The URL of its GitRepositories. Its host is never resolved outside the machine; only this process serves it.
    pub(super) fn address(&self) -> String {
        address_of(&self.root)
    }

    /// URLs of the remotes, which are served from this directory too.
    pub(super) fn remotes(&self) -> Vec<String> {
        self.repository.as_ref().map(DiskRepository::remotes).unwrap_or_default()
    }

    fn head(&self) -> anyhow::Result<(Head, Option<fl_git::ObjectId>)> {
        match &self.repository {
            Some(repository) => Ok(repository.head()?),
            None => Ok((Head::Branch(BRANCH.to_owned()), None)),
        }
    }

    /// Paths of all files, for path detection.
    pub(super) fn paths(&self) -> anyhow::Result<Vec<String>> {
        match self.content {
            Content::Files => Ok(self.scan()?.files.keys().cloned().collect()),
            Content::Commits => {
                let commit = self.head()?.1.context("there is no commit")?;
                let repository = self.repository.as_ref().context("there is no repository")?;
                Ok(repository.objects()?.files(&commit)?.into_keys().collect())
            }
        }
    }

    fn scan(&self) -> anyhow::Result<Scan> {
        let committed = match (&self.repository, self.head()?.1) {
            (Some(repository), Some(commit)) => repository.objects()?.files(&commit)?,
            _ => BTreeMap::new(),
        };
        let excluded = self.repository.as_ref().map(DiskRepository::excluded).unwrap_or_default();
        let mut scanner = self.scanner.lock().unwrap_or_else(PoisonError::into_inner);
        scanner.scan(&self.root, &excluded, committed)
    }

    /// The current state, and the directories to watch for changes of it.
    pub(super) fn state(&self) -> anyhow::Result<(DirectoryState, Vec<PathBuf>)> {
        let (head, commit) = self.head()?;
        let mut watched = self.repository.as_ref().map(DiskRepository::watched).unwrap_or_default();
        let id = match self.content {
            Content::Commits => commit.context("the repository has no commit any more")?,
            Content::Files => {
                let scan = self.scan()?;
                watched.extend(scan.directories.iter().map(|d| self.root.join(d)));
                self.work_tree_commit(&scan)?.0
            }
        };
        let reference = match head {
            Head::Branch(branch) => json!({"branch": branch}),
            Head::Detached(commit) => json!({"commit": commit.to_string()}),
        };
        Ok((DirectoryState { reference, commit: id.to_string() }, watched))
    }

    /// Id and content of the commit of the files; the checked out commit, without content, if the files equal it.
    fn work_tree_commit(&self, scan: &Scan) -> anyhow::Result<(fl_git::ObjectId, Option<Vec<u8>>)> {
        let parent = self.head()?.1;
        if let (Some(parent), true) = (parent, scan.clean) {
            return Ok((parent, None));
        }
        let seconds = match (&self.repository, parent) {
            (Some(repository), Some(parent)) => {
                let text = repository.objects()?.read_kind(&parent, fl_git::ObjectKind::Commit)?;
                fl_git::parse_commit(&text)?.committer.seconds
            }
            _ => 0,
        };
        let hash = self.repository.as_ref().map_or(fl_git::HashKind::Sha1, DiskRepository::hash);
        let (id, text) = commit::of_files(&scan.files, hash, parent, seconds)?;
        Ok((id, Some(text)))
    }
}

/// Directories by the URLs that they are served under.
pub(super) type DirectoryMap = Vec<(String, Arc<Directory>)>;
