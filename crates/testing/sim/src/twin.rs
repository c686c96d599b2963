//! Git servers and registries in memory.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

use fl_archive::{Mode, TarWriter};
use fl_gitfetch::{Commit, FetchOptions, Reference};
use fl_oci::{
    Descriptor, Error as OciError, Manifest, Reference as OciReference, RegistryOptions, Repository,
    Signatures,
};
use fl_source::git::{Fetched, Found, GitClient, GitRemote, GitRequest};
use fl_source::oci::{OciClient, OciRegistry};
use fl_source::tree::MemoryTree;
use futures::FutureExt;
use futures::future::BoxFuture;

type Files = BTreeMap<String, String>;

#[derive(Debug, Default)]
struct GitState {
    /// By URL, then branch.
    branches: BTreeMap<String, BTreeMap<String, (String, Files)>>,
    /// What the next requests are answered with instead.
    failure: Option<String>,
    listings: u64,
    fetches: u64,
}

/// A Git server; branches only.
#[derive(Clone, Debug, Default)]
pub struct TwinGit {
    state: Arc<Mutex<GitState>>,
}

impl TwinGit {
    fn with<R>(&self, act: impl FnOnce(&mut GitState) -> R) -> R {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the content of a branch; answers the commit.
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

    /// From now on every request fails so; `None` heals it.
    pub fn fail(&self, error: Option<&str>) {
        self.with(|s| s.failure = error.map(str::to_owned));
    }

    /// How many listings and fetches there were.
    pub fn counts(&self) -> (u64, u64) {
        self.with(|s| (s.listings, s.fetches))
    }
}

impl GitClient for TwinGit {
    fn open(&self, request: &GitRequest) -> Result<Box<dyn GitRemote>, String> {
        Ok(Box::new(TwinRemote { git: self.clone(), request: request.clone() }))
    }
}

struct TwinRemote {
    git: TwinGit,
    request: GitRequest,
}

impl TwinRemote {
    fn find(&self) -> Result<(String, String, Files), String> {
        let Reference::Branch(branch) = &self.request.reference else {
            return Err("the twin of Git knows branches only".to_owned());
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

impl GitRemote for TwinRemote {
    fn resolve(&mut self, _has_artifact: bool) -> BoxFuture<'_, Result<Option<Found>, String>> {
        async move {
            self.git.with(|s| s.listings += 1);
            let (branch, commit, _) = self.find()?;
            Ok(Some(Found { revision: format!("{branch}@sha1:{commit}"), commit }))
        }
        .boxed()
    }

    fn fetch<'a>(&'a mut self, _options: &'a FetchOptions) -> BoxFuture<'a, Result<Fetched, String>> {
        async move {
            self.git.with(|s| s.fetches += 1);
            let (branch, commit, files) = self.find()?;
            let nobody = || fl_git::Signature {
                name: "twin".to_owned(),
                email: "twin@example.com".to_owned(),
                seconds: 0,
                offset_minutes: 0,
            };
            Ok(Fetched {
                commit: Commit {
                    id: commit.parse().map_err(|_| "a hash of the twin is malformed".to_owned())?,
                    reference: format!("refs/heads/{branch}"),
                    author: nobody(),
                    committer: nobody(),
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

#[derive(Debug, Default)]
struct OciState {
    /// Manifest and layer by `repository:tag` and `repository@digest`.
    images: BTreeMap<String, (String, Manifest)>,
    blobs: BTreeMap<String, Vec<u8>>,
    /// By the digest of what was signed.
    signatures: BTreeMap<String, Signatures>,
    failure: Option<(u16, String)>,
    requests: u64,
}

/// A registry.
#[derive(Clone, Debug, Default)]
pub struct TwinOci {
    state: Arc<Mutex<OciState>>,
}

impl TwinOci {
    fn with<R>(&self, act: impl FnOnce(&mut OciState) -> R) -> R {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Pushes files as one layer under a tag; answers the digest. `repository` as in `oci://<repository>`.
    pub fn push(
        &self,
        repository: &str,
        tag: &str,
        files: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>,
    ) -> String {
        let mut tar = TarWriter::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
        for (path, content) in files {
            let content: String = content.into();
            tar.file(&path.into(), Mode::File, content.len() as u64, &mut content.as_bytes())
                .expect("in memory");
        }
        let layer = tar.finish().expect("in memory").finish().expect("in memory");
        let digest = fl_oci::digest_of(&layer);
        let manifest = Manifest {
            schema_version: 2,
            layers: vec![Descriptor {
                media_type: fl_oci::media_type::FLUX_CONTENT.to_owned(),
                digest: digest.clone(),
                size: layer.len() as u64,
                ..Descriptor::default()
            }],
            ..Manifest::default()
        };
        let whole = fl_oci::digest_of(format!("{tag} {digest}").as_bytes());
        self.with(|s| {
            s.blobs.insert(digest, layer);
            s.images.insert(format!("{repository}:{tag}"), (whole.clone(), manifest.clone()));
            s.images.insert(format!("{repository}@{whole}"), (whole.clone(), manifest));
        });
        whole
    }

    /// Puts signatures beside an image that was pushed, which gets the digest that they are about.
    pub fn sign(&self, repository: &str, tag: &str, signatures: Signatures) {
        self.with(|s| {
            let digest = signatures.digest.clone();
            if let Some((old, manifest)) = s.images.remove(&format!("{repository}:{tag}")) {
                s.images.remove(&format!("{repository}@{old}"));
                s.images.insert(format!("{repository}:{tag}"), (digest.clone(), manifest.clone()));
                s.images.insert(format!("{repository}@{digest}"), (digest.clone(), manifest));
            }
            s.signatures.insert(digest, signatures);
        });
    }

    /// From now on every request is refused so; `None` heals it.
    pub fn fail(&self, refusal: Option<(u16, &str)>) {
        self.with(|s| s.failure = refusal.map(|(code, text)| (code, text.to_owned())));
    }

    pub fn requests(&self) -> u64 {
        self.with(|s| s.requests)
    }

    fn ask(&self, method: &str, what: &str) -> Result<(), OciError> {
        self.with(|s| {
            s.requests += 1;
            match &s.failure {
                Some((status, text)) => Err(OciError::Refused {
                    method: method.to_owned(),
                    url: what.to_owned(),
                    status: *status,
                    text: text.clone(),
                }),
                None => Ok(()),
            }
        })
    }

    fn image(&self, reference: &OciReference) -> Result<(String, Manifest), OciError> {
        self.ask("GET", &reference.to_string())?;
        let missing = || OciError::Refused {
            method: "GET".to_owned(),
            url: reference.to_string(),
            status: 404,
            text: "MANIFEST_UNKNOWN: manifest unknown".to_owned(),
        };
        self.with(|s| s.images.get(&reference.to_string()).cloned()).ok_or_else(missing)
    }
}

impl OciClient for TwinOci {
    fn open(&self, _options: RegistryOptions) -> Result<Box<dyn OciRegistry>, OciError> {
        Ok(Box::new(self.clone()))
    }
}

impl OciRegistry for TwinOci {
    fn tags<'a>(&'a self, repository: &'a Repository) -> BoxFuture<'a, Result<Vec<String>, OciError>> {
        async move {
            self.ask("GET", &repository.to_string())?;
            let prefix = format!("{repository}:");
            Ok(self.with(|s| {
                s.images.keys().filter_map(|k| k.strip_prefix(&prefix)).map(str::to_owned).collect()
            }))
        }
        .boxed()
    }

    fn resolve<'a>(&'a self, reference: &'a OciReference) -> BoxFuture<'a, Result<String, OciError>> {
        async move { Ok(self.image(reference)?.0) }.boxed()
    }

    fn manifest<'a>(&'a self, reference: &'a OciReference) -> BoxFuture<'a, Result<Manifest, OciError>> {
        async move { Ok(self.image(reference)?.1) }.boxed()
    }

    fn signatures<'a>(&'a self, reference: &'a OciReference) -> BoxFuture<'a, Result<Signatures, OciError>> {
        async move {
            self.ask("GET", &reference.to_string())?;
            let digest = reference.identifier();
            let found = self.with(|s| s.signatures.get(digest).cloned());
            Ok(found.unwrap_or(Signatures { digest: digest.to_owned(), ..Signatures::default() }))
        }
        .boxed()
    }

    fn layer<'a>(
        &'a self,
        repository: &'a Repository,
        layer: &'a Descriptor,
    ) -> BoxFuture<'a, Result<Box<dyn Read + Send>, OciError>> {
        async move {
            self.ask("GET", &repository.to_string())?;
            let bytes = self.with(|s| s.blobs.get(&layer.digest).cloned()).unwrap_or_default();
            let checked = fl_oci::VerifiedBlob::new(std::io::Cursor::new(bytes), &layer.digest, layer.size)?;
            Ok(Box::new(checked) as Box<dyn Read + Send>)
        }
        .boxed()
    }
}
