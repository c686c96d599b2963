//! The Git client of `up`: serves directories, and fetches every other repository over the network.

use std::collections::BTreeMap;
use std::io::{self, Cursor, Read};
use std::path::PathBuf;
use std::sync::Arc;

use fl_git::{EntryKind, HashKind, ObjectId, ObjectKind};
use fl_git_client::{
    Commit, DiskRepository, FetchOptions, Head, Objects, Reference, Resolved, SshAlgorithms,
};
use fl_source::git::{FetchedCommit, GitClient, GitError, GitRemote, GitRequest, NetworkGit, ResolvedCommit};
use fl_source::tree::{Node, Tree};
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::git_address::normalized;
use super::work_tree::{WorkTreeFile, blob_id};
use super::{Content, Directory, DirectoryMap};

/// The Git client of `up`.
pub(crate) struct LocalGit {
    served: Vec<(String, Arc<Directory>)>,
    network: NetworkGit,
}

impl LocalGit {
    pub(crate) fn new(served: &DirectoryMap) -> Self {
        let served = served.iter().filter_map(|(a, d)| Some((normalized(a)?, d.clone()))).collect();
        let network = NetworkGit { scratch: std::env::temp_dir(), ssh: SshAlgorithms::default() };
        LocalGit { served, network }
    }

    /// The directory that is served under a URL.
    pub(crate) fn directory(&self, address: &str) -> Option<&Arc<Directory>> {
        let address = normalized(address)?;
        self.served.iter().find(|(a, _)| *a == address).map(|(_, d)| d)
    }
}

impl GitClient for LocalGit {
    fn open(&self, request: &GitRequest) -> Result<Box<dyn GitRemote>, GitError> {
        match self.directory(&request.url) {
            Some(directory) => Ok(Box::new(LocalRemote {
                directory: directory.clone(),
                request: request.clone(),
                resolved_ref: None,
            })),
            None => self.network.open(request),
        }
    }
}

struct LocalRemote {
    directory: Arc<Directory>,
    request: GitRequest,
    resolved_ref: Option<ResolvedRef>,
}

/// What a reference resolved to.
#[derive(Clone)]
enum ResolvedRef {
    Committed(Resolved),
    /// The files as they are.
    WorkTree(Arc<WorkTreeCommit>),
}

struct WorkTreeCommit {
    commit: Commit,
    revision: String,
    files: BTreeMap<String, WorkTreeFile>,
}

impl Directory {
    fn resolve_ref(&self, reference: &Reference, address: &str) -> Result<Option<ResolvedRef>, String> {
        let text = |e: anyhow::Error| format!("unable to read '{}': {e:#}", self.root.display());
        let (head, parent) = self.head().map_err(text)?;
        let checked_out = match (&head, reference) {
            (Head::Branch(branch), Reference::Branch(wanted)) => branch == wanted,
            (Head::Detached(_), Reference::Commit { commit, .. }) => {
                parent.is_some_and(|id| id.to_string() == *commit)
            }
            (_, Reference::Name(name)) => name == "HEAD",
            _ => false,
        };
        if self.content == Content::Commits || !checked_out {
            let missing = || {
                let name = match reference {
                    Reference::Branch(branch) => format!("refs/heads/{branch}"),
                    other => format!("{other:?}"),
                };
                format!("unable to clone '{address}': couldn't find remote ref \"{name}\"")
            };
            let repository = self.repository.as_ref().ok_or_else(missing)?;
            let resolved = repository.resolve(reference, address).map_err(|e| e.to_string())?;
            return Ok(resolved.map(ResolvedRef::Committed));
        }
        let scan = self.scan().map_err(text)?;
        let (id, content_of_new) = self.work_tree_commit(&scan).map_err(text)?;
        let content = match (&content_of_new, &self.repository) {
            (Some(content_of_new), _) => content_of_new.clone(),
            (None, Some(repository)) => repository
                .objects()
                .map_err(|e| e.to_string())?
                .read_kind(&id, ObjectKind::Commit)
                .map_err(|e| e.to_string())?,
            (None, None) => return Ok(None),
        };
        let parsed = fl_git::parse_commit(&content).map_err(|e| e.to_string())?;
        let digest = format!("{}:{id}", id.kind().as_str());
        let (reference, revision) = match head {
            Head::Branch(branch) => (format!("refs/heads/{branch}"), format!("{branch}@{digest}")),
            Head::Detached(_) => ("HEAD".to_owned(), digest),
        };
        let commit = Commit {
            id,
            reference,
            author: parsed.author,
            committer: parsed.committer,
            message: parsed.message,
            signature: parsed.signature,
            signed_payload: parsed.signed_payload,
            tag: None,
        };
        Ok(Some(ResolvedRef::WorkTree(Arc::new(WorkTreeCommit { commit, revision, files: scan.files }))))
    }

    fn fetched(&self, resolved_ref: &ResolvedRef, options: &FetchOptions) -> Result<FetchedCommit, String> {
        let wanted: Vec<&str> = options.sparse.iter().map(|p| p.strip_prefix("./").unwrap_or(p)).collect();
        let wanted = |path: &str| wanted.is_empty() || wanted.iter().any(|prefix| path.starts_with(prefix));
        match resolved_ref {
            ResolvedRef::Committed(resolved) => {
                let repository = self.repository.as_ref().ok_or("there is no repository any more")?;
                let commit = repository.describe(resolved).map_err(|e| e.to_string())?;
                let tree = CommitTree::open(repository, &resolved.commit, wanted)?;
                if options.recurse_submodules && tree.submodules {
                    return Err(
                        "submodules of a directory are not delivered; set `spec.recurseSubmodules: false`"
                            .to_owned(),
                    );
                }
                Ok(FetchedCommit { commit, tree: Box::new(tree) })
            }
            ResolvedRef::WorkTree(saved) => {
                let files = saved.files.iter().filter(|(path, _)| wanted(path));
                let hash = saved.commit.id.kind();
                let files = files.map(|(path, file)| (path.clone(), *file)).collect();
                Ok(FetchedCommit {
                    commit: saved.commit.clone(),
                    tree: Box::new(WorkTree { root: self.root.clone(), files, hash }),
                })
            }
        }
    }
}

/// Runs file access on the blocking pool.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|e| Err(format!("reading was interrupted: {e}")))
}

impl GitRemote for LocalRemote {
    fn resolve(&mut self, _has_artifact: bool) -> BoxFuture<'_, Result<Option<ResolvedCommit>, GitError>> {
        async move {
            let (directory, request) = (self.directory.clone(), self.request.clone());
            let resolved_ref =
                blocking(move || directory.resolve_ref(&request.reference, &request.url)).await?;
            let found = resolved_ref.as_ref().map(|resolved_ref| match resolved_ref {
                ResolvedRef::Committed(r) => {
                    ResolvedCommit { revision: r.revision(), commit: r.commit.to_string() }
                }
                ResolvedRef::WorkTree(s) => {
                    ResolvedCommit { revision: s.revision.clone(), commit: s.commit.id.to_string() }
                }
            });
            self.resolved_ref = resolved_ref;
            Ok(found)
        }
        .boxed()
    }

    fn fetch<'a>(&'a mut self, options: &'a FetchOptions) -> BoxFuture<'a, Result<FetchedCommit, GitError>> {
        async move {
            let resolved_ref = self.resolved_ref.clone().ok_or(GitError::NotResolved)?;
            let (directory, options) = (self.directory.clone(), options.clone());
            Ok(blocking(move || directory.fetched(&resolved_ref, &options)).await?)
        }
        .boxed()
    }
}

/// The files and their parent directories.
fn nodes<'a>(files: impl Iterator<Item = (&'a String, bool)>) -> Vec<(String, Node)> {
    let mut all: BTreeMap<String, Node> = BTreeMap::new();
    for (path, executable) in files {
        for (at, _) in path.match_indices('/') {
            all.entry(path[..at].to_owned()).or_insert(Node::Directory);
        }
        all.insert(path.clone(), Node::File { executable });
    }
    all.into_iter().collect()
}

/// The files of a commit, read from the repository's objects.
struct CommitTree {
    objects: Objects,
    files: BTreeMap<String, WorkTreeFile>,
    /// Whether the commit has submodules.
    submodules: bool,
}

impl CommitTree {
    fn open(
        repository: &DiskRepository,
        commit: &ObjectId,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Self, String> {
        let mut objects = repository.objects().map_err(|e| e.to_string())?;
        let (mut files, mut submodules) = (BTreeMap::new(), false);
        for (path, entry) in objects.files(commit).map_err(|e| e.to_string())? {
            match entry.kind {
                EntryKind::File | EntryKind::Executable if wanted(&path) => {
                    let executable = entry.kind == EntryKind::Executable;
                    files.insert(path, WorkTreeFile { executable, id: entry.id });
                }
                EntryKind::Submodule => submodules = true,
                _ => {}
            }
        }
        Ok(CommitTree { objects, files, submodules })
    }
}

impl Tree for CommitTree {
    fn paths(&self) -> Vec<(String, Node)> {
        nodes(self.files.iter().map(|(path, saved)| (path, saved.executable)))
    }

    fn open(&mut self, path: &str) -> io::Result<(u64, Box<dyn Read + '_>)> {
        let saved = self.files.get(path).ok_or(io::ErrorKind::NotFound)?;
        let content = self.objects.read_kind(&saved.id, ObjectKind::Blob).map_err(io::Error::other)?;
        Ok((content.len() as u64, Box::new(Cursor::new(content))))
    }
}

/// The files of a work tree at the time of the scan; a file that has changed since is an error.
struct WorkTree {
    root: PathBuf,
    files: BTreeMap<String, WorkTreeFile>,
    hash: HashKind,
}

impl Tree for WorkTree {
    fn paths(&self) -> Vec<(String, Node)> {
        nodes(self.files.iter().map(|(path, saved)| (path, saved.executable)))
    }

    fn open(&mut self, path: &str) -> io::Result<(u64, Box<dyn Read + '_>)> {
        let saved = self.files.get(path).ok_or(io::ErrorKind::NotFound)?;
        let content = std::fs::read(self.root.join(path))?;
        if blob_id(&content, self.hash).map_err(io::Error::other)? != saved.id {
            return Err(io::Error::other("it was modified while it was read"));
        }
        Ok((content.len() as u64, Box::new(Cursor::new(content))))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::directory::address_of;

    fn request(url: &str) -> GitRequest {
        GitRequest {
            owner: fl_http::Owner::engine(),
            url: url.to_owned(),
            auth: fl_git_client::Auth::none(),
            proxy: None,
            timeout: Duration::from_secs(1),
            reference: Reference::Branch("main".to_owned()),
            lease: fl_http::ByteBudget::shared().lease(fl_http::Owner::engine(), Duration::from_secs(1)),
        }
    }

    async fn read(client: &LocalGit, url: &str, path: &str) -> (String, String) {
        let mut remote = client.open(&request(url)).unwrap();
        let found = remote.resolve(false).await.unwrap().unwrap();
        let mut fetched = remote.fetch(&FetchOptions::default()).await.unwrap();
        let mut text = String::new();
        fetched.tree.open(path).unwrap().1.read_to_string(&mut text).unwrap();
        (found.revision, text)
    }

    #[tokio::test]
    async fn saved_files_are_a_revision() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("app.yaml"), "one").unwrap();
        let (directory, below) = Directory::open(dir.path(), Content::Files).unwrap();
        assert_eq!(below, "");
        let url = address_of(directory.root());
        let directory = Arc::new(directory);
        let served =
            vec![(url.clone(), directory.clone()), ("git@git.example:a/b.git".to_owned(), directory)];
        let client = LocalGit::new(&served);
        let first = read(&client, &url, "app.yaml").await;
        assert_eq!(first.1, "one");
        assert!(first.0.starts_with("main@sha1:"), "{}", first.0);
        assert_eq!(read(&client, "https://git.example/a/b", "app.yaml").await, first);
        std::fs::write(dir.path().join("app.yaml"), "two").unwrap();
        let second = read(&client, &url, "app.yaml").await;
        assert_eq!(second.1, "two");
        assert_ne!(second.0, first.0);
        assert!(client.directory("https://git.example/a/c").is_none());
    }

    #[test]
    fn invalid_directories_are_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let message =
            |path: &std::path::Path, content| format!("{:#}", Directory::open(path, content).unwrap_err());
        assert!(message(dir.path(), Content::Commits).contains("is not a Git repository; make it one"));
        assert!(
            message(&dir.path().join("none"), Content::Files).contains("neither a directory nor an address")
        );
    }
}
