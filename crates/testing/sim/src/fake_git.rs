//! A fake Git server in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use fl_git_client::{Commit, FetchOptions, Reference};
use fl_source::git::{FetchedCommit, GitClient, GitError, GitRemote, GitRequest, ResolvedCommit};
use fl_source::tree::MemoryTree;
use futures::FutureExt;
use futures::future::BoxFuture;

type Files = BTreeMap<String, String>;

#[derive(Debug, Default)]
struct GitState {
    /// By URL, then branch.
    branches: BTreeMap<String, BTreeMap<String, (String, Files)>>,
    /// The error of every request.
    failure: Option<String>,
    listings: u64,
    fetches: u64,
}

/// A fake Git server with branches only.
#[derive(Clone, Debug, Default)]
pub struct FakeGit {
    state: Arc<Mutex<GitState>>,
}

impl FakeGit {
    fn with<R>(&self, act: impl FnOnce(&mut GitState) -> R) -> R {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the content of a branch; returns the commit.
    pub fn push(
        &self,
        url: &str,
        branch: &str,
        files: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>,
    ) -> String {
        use sha1::Digest as _;
        let files: Files = files.into_iter().map(|(p, c)| (p.into(), c.into())).collect();
        let sum = sha1::Sha1::digest(format!("{url} {branch} {files:?}"));
        let commit: String = sum.iter().map(|b| format!("{b:02x}")).collect();
        self.with(|s| {
            let branches = s.branches.entry(url.to_owned()).or_default();
            branches.insert(branch.to_owned(), (commit.clone(), files));
        });
        commit
    }

    /// From now on every request fails with this error; `None` ends that.
    pub fn fail(&self, error: Option<&str>) {
        self.with(|s| s.failure = error.map(str::to_owned));
    }

    /// How many listings and fetches there were.
    pub fn counts(&self) -> (u64, u64) {
        self.with(|s| (s.listings, s.fetches))
    }
}

impl GitClient for FakeGit {
    fn open(&self, request: &GitRequest) -> Result<Box<dyn GitRemote>, GitError> {
        Ok(Box::new(FakeRemote { git: self.clone(), request: request.clone() }))
    }
}

struct FakeRemote {
    git: FakeGit,
    request: GitRequest,
}

impl FakeRemote {
    fn find(&self) -> Result<(String, String, Files), String> {
        let Reference::Branch(branch) = &self.request.reference else {
            return Err("the fake Git server has branches only".to_owned());
        };
        self.git.with(|s| {
            if let Some(error) = &s.failure {
                return Err(format!("unable to clone '{}': {error}", self.request.url));
            }
            let found = s.branches.get(&self.request.url).and_then(|b| b.get(branch));
            let (commit, files) = found.ok_or_else(|| {
                format!(
                    "unable to clone '{}': couldn't find remote ref \"refs/heads/{branch}\"",
                    self.request.url
                )
            })?;
            Ok((branch.clone(), commit.clone(), files.clone()))
        })
    }
}

impl GitRemote for FakeRemote {
    fn resolve(&mut self, _has_artifact: bool) -> BoxFuture<'_, Result<Option<ResolvedCommit>, GitError>> {
        async move {
            self.git.with(|s| s.listings += 1);
            let (branch, commit, _) = self.find()?;
            Ok(Some(ResolvedCommit { revision: format!("{branch}@sha1:{commit}"), commit }))
        }
        .boxed()
    }

    fn fetch<'a>(&'a mut self, _options: &'a FetchOptions) -> BoxFuture<'a, Result<FetchedCommit, GitError>> {
        async move {
            self.git.with(|s| s.fetches += 1);
            let (branch, commit, files) = self.find()?;
            let signature = || fl_git::Signature {
                name: "fake".to_owned(),
                email: "fake@example.com".to_owned(),
                seconds: 0,
                offset_minutes: 0,
            };
            Ok(FetchedCommit {
                commit: Commit {
                    id: commit.parse().map_err(|_| "a hash of the fake is malformed".to_owned())?,
                    reference: format!("refs/heads/{branch}"),
                    author: signature(),
                    committer: signature(),
                    message: "a change\n".to_owned(),
                    signature: None,
                    signed_payload: Vec::new(),
                    tag: None,
                },
                tree: Box::new(MemoryTree::new(files)),
            })
        }
        .boxed()
    }
}
