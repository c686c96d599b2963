//! A directory served as a Git source: its commits, or with `--dirty` its files as they are.

mod client;
mod commit;
mod files;
mod git_address;
mod watch;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, bail};
use fl_gitfetch::{DiskError, DiskRepository, Head};
use serde_json::{Value, json};

pub(super) use client::LocalGit;
use files::{Scan, Scanner};
pub(super) use git_address::address_of;
pub(super) use watch::Watcher;

/// What is delivered from a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// The commit that is checked out.
    Commits,
    /// The files as they are saved.
    Files,
}

/// The branch a directory without Git is said to be on.
const BRANCH: &str = "main";

/// A directory that stands in for a repository.
#[derive(Debug)]
pub(super) struct Directory {
    root: PathBuf,
    repository: Option<DiskRepository>,
    content: Content,
    scanner: Mutex<Scanner>,
}

/// What a directory holds right now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Now {
    /// `spec.ref` of a GitRepository that follows it.
    pub(super) reference: Value,
    /// The commit, made up or real.
    pub(super) commit: String,
}

impl Directory {
    /// Opens a directory; sentences for people when it is not what it should be. Also answers which part of it was meant:
    /// a repository is delivered from its root, whatever directory of it was named.
    pub(super) fn open(directory: &Path, content: Content) -> anyhow::Result<(Self, String)> {
        let shown = directory.display();
        let named = match directory.canonicalize() {
            Ok(path) if path.is_dir() => path,
            Ok(_) => bail!("{shown} is a file; name the directory or the repository it is in"),
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

    /// The address under which GitRepositories know it. The host is one that never leaves the machine, and nobody but
    /// this process answers for it.
    pub(super) fn address(&self) -> String {
        address_of(&self.root)
    }

    /// Further addresses that mean this repository.
    pub(super) fn remotes(&self) -> Vec<String> {
        self.repository.as_ref().map(DiskRepository::remotes).unwrap_or_default()
    }

    fn head(&self) -> anyhow::Result<(Head, Option<fl_git::ObjectId>)> {
        match &self.repository {
            Some(repository) => Ok(repository.head()?),
            None => Ok((Head::Branch(BRANCH.to_owned()), None)),
        }
    }

    /// Names of files and directories, for choosing what to deliver.
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

    /// What it holds now, and the directories in which that can change.
    pub(super) fn now(&self) -> anyhow::Result<(Now, Vec<PathBuf>)> {
        let (head, commit) = self.head()?;
        let mut watched = self.repository.as_ref().map(DiskRepository::watched).unwrap_or_default();
        let id = match self.content {
            Content::Commits => commit.context("the repository has no commit any more")?,
            Content::Files => {
                let scan = self.scan()?;
                watched.extend(scan.directories.iter().map(|d| self.root.join(d)));
                self.made_up(&scan)?.0
            }
        };
        let reference = match head {
            Head::Branch(branch) => json!({"branch": branch}),
            Head::Detached(commit) => json!({"commit": commit.to_string()}),
        };
        Ok((Now { reference, commit: id.to_string() }, watched))
    }

    /// The commit that the files are, and its text; the real one where they are just that.
    fn made_up(&self, scan: &Scan) -> anyhow::Result<(fl_git::ObjectId, Option<Vec<u8>>)> {
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

/// Directories by the addresses they answer for.
pub(super) type Served = Vec<(String, Arc<Directory>)>;
