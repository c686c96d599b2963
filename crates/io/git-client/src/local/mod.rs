//! A repository on this machine: its references and objects, read from the files Git keeps.
//!
//! Nothing is written and no `git` is run. Work trees, bare repositories, linked work trees and alternates are understood;
//! every object that is read is checked against its id.

mod objects;
mod refs;
mod resolve;

use std::io;
use std::path::{Path, PathBuf};

use fl_git::{HashKind, ObjectId};

pub use objects::{DiskEntry, Objects};
pub use refs::Head;

/// Why a directory cannot be read as a repository.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiskError {
    #[error("{0} is not a Git repository")]
    NotARepository(PathBuf),
    #[error("cannot read {path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error("{path} cannot be understood: {problem}")]
    Malformed { path: PathBuf, problem: String },
    #[error(
        "{0} keeps its references in a reftable, which is not read yet; run `git refs migrate --ref-format=files`"
    )]
    Reftable(PathBuf),
}

pub(crate) fn io_error(path: &Path) -> impl FnOnce(io::Error) -> DiskError {
    let path = path.to_owned();
    move |source| DiskError::Io { path, source }
}

/// A repository and where its parts lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskRepository {
    /// What `HEAD` is read from.
    git_dir: PathBuf,
    /// What everything else is read from; the same unless this is a linked work tree.
    common_dir: PathBuf,
    /// Where files are checked out; none for a bare repository.
    work_tree: Option<PathBuf>,
    hash: HashKind,
}

impl DiskRepository {
    /// The repository a directory belongs to: its own, or that of the nearest directory above, as Git does it.
    pub fn discover(directory: &Path) -> Result<Self, DiskError> {
        let start = directory.canonicalize().map_err(io_error(directory))?;
        for place in start.ancestors() {
            if let Some(found) = Self::at(place)? {
                return Ok(found);
            }
        }
        Err(DiskError::NotARepository(directory.to_owned()))
    }

    /// The repository that a directory is, if it is one.
    fn at(directory: &Path) -> Result<Option<Self>, DiskError> {
        let dot_git = directory.join(".git");
        let (git_dir, work_tree) = if dot_git.is_dir() {
            (dot_git, Some(directory.to_owned()))
        } else if dot_git.is_file() {
            (linked(&dot_git, directory)?, Some(directory.to_owned()))
        } else {
            (directory.to_owned(), None)
        };
        let common_dir = match std::fs::read_to_string(git_dir.join("commondir")) {
            Ok(text) => git_dir.join(text.trim()),
            Err(_) => git_dir.clone(),
        };
        let looks_right = git_dir.join("HEAD").is_file()
            && common_dir.join("objects").is_dir()
            && common_dir.join("refs").is_dir();
        if !looks_right {
            return Ok(None);
        }
        let config_path = common_dir.join("config");
        let config = std::fs::read_to_string(&config_path).unwrap_or_default();
        let extension = |name: &str| refs::setting(&config, "extensions", name);
        if extension("refstorage").is_some_and(|v| v.eq_ignore_ascii_case("reftable")) {
            return Err(DiskError::Reftable(directory.to_owned()));
        }
        let hash = match extension("objectformat").as_deref() {
            Some("sha256") => HashKind::Sha256,
            _ => HashKind::Sha1,
        };
        Ok(Some(Self { git_dir, common_dir, work_tree, hash }))
    }

    /// Where files are checked out; none for a bare repository.
    pub fn work_tree(&self) -> Option<&Path> {
        self.work_tree.as_deref()
    }

    pub fn hash(&self) -> HashKind {
        self.hash
    }

    /// The directories in which a commit, a checkout or a new branch shows.
    pub fn watched(&self) -> Vec<PathBuf> {
        let mut all = vec![self.git_dir.clone()];
        if self.common_dir != self.git_dir {
            all.push(self.common_dir.clone());
        }
        refs::directories(&self.common_dir.join("refs"), &mut all);
        all
    }

    /// Lines of `info/exclude`: what this clone alone ignores.
    pub fn excluded(&self) -> String {
        std::fs::read_to_string(self.common_dir.join("info/exclude")).unwrap_or_default()
    }

    /// The addresses of its remotes.
    pub fn remotes(&self) -> Vec<String> {
        let config = std::fs::read_to_string(self.common_dir.join("config")).unwrap_or_default();
        refs::remote_urls(&config)
    }

    /// Opens the object database.
    pub fn objects(&self) -> Result<Objects, DiskError> {
        Objects::open(&self.common_dir.join("objects"), self.hash)
    }

    /// What is checked out, and the commit it stands at; no commit in a repository without one.
    pub fn head(&self) -> Result<(Head, Option<ObjectId>), DiskError> {
        refs::head(&self.git_dir, &self.common_dir)
    }
}

/// A `.git` file names the real directory.
fn linked(file: &Path, directory: &Path) -> Result<PathBuf, DiskError> {
    let text = std::fs::read_to_string(file).map_err(io_error(file))?;
    let target = text.trim().strip_prefix("gitdir:").map(str::trim).ok_or_else(|| DiskError::Malformed {
        path: file.to_owned(),
        problem: "it does not name a directory with `gitdir:`".to_owned(),
    })?;
    Ok(directory.join(target))
}
