//! Reading an artifact: from the store of this process where it is ours, over HTTP otherwise; always checked by digest.

use std::path::PathBuf;
use std::time::Duration;

use fl_api::meta::artifact::Artifact;
use fl_store::{Check, DigestWriter, Store};
use fl_types::Digest;

/// The largest artifact that is fetched from elsewhere.
const LARGEST: u64 = 4 << 30;
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Why an artifact cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArtifactError {
    /// Not there (yet): wait for the source, do not fail.
    #[error("artifact not found")]
    NotFound,
    #[error("failed to download archive from {url} (status: {status})")]
    Status { url: String, status: u16 },
    #[error("failed to download archive: {0}")]
    Http(#[from] fl_http::Error),
    #[error("failed to verify archive: the digest of the file is '{found}', expected '{expected}'")]
    Digest { expected: String, found: String },
    #[error("{0}")]
    Store(#[from] fl_store::Error),
    #[error("cannot keep the archive: {0}")]
    Io(#[from] std::io::Error),
}

fn client(timeout: Duration) -> Result<fl_http::Client, fl_http::Error> {
    fl_http::Client::new(fl_http::Settings { timeout, ..Default::default() })
}

/// A file that holds an artifact, checked. A fetched one is removed when this is dropped.
#[derive(Debug)]
pub struct ArtifactFile {
    path: PathBuf,
    _temporary: Option<tempfile::TempPath>,
}

impl ArtifactFile {
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }
}

/// Fetches artifacts.
#[derive(Clone, Debug)]
pub struct ArtifactFetcher {
    /// The store of this process, when it has one.
    local: Option<Store>,
    client: fl_http::Client,
    tries: u32,
    /// Replaces the host of URLs (`SOURCE_CONTROLLER_LOCALHOST`).
    host: Option<String>,
}

impl ArtifactFetcher {
    /// `retries` is `--http-retry`.
    pub fn new(local: Option<Store>, retries: u32, host: Option<String>) -> Result<Self, fl_http::Error> {
        let client = client(Duration::from_secs(15 * 60))?;
        Ok(ArtifactFetcher { local, client, tries: retries + 1, host })
    }

    /// The same with another limit for the time of one download (`--http-timeout`).
    ///
    /// # Errors
    /// The client cannot be set up.
    pub fn with_timeout(mut self, timeout: Duration) -> Result<Self, fl_http::Error> {
        self.client = client(timeout)?;
        Ok(self)
    }

    /// The checked file of an artifact.
    pub async fn open(&self, artifact: &Artifact) -> Result<ArtifactFile, ArtifactError> {
        if let Some(file) = self.own(artifact).await? {
            return Ok(file);
        }
        self.download(artifact).await
    }

    /// The file in our own store, when the address is ours and the bytes are right.
    async fn own(&self, artifact: &Artifact) -> Result<Option<ArtifactFile>, ArtifactError> {
        let (Some(store), Some(digest)) = (&self.local, &artifact.digest) else { return Ok(None) };
        if artifact.path.is_empty() || artifact.url != store.url(&artifact.path) {
            return Ok(None);
        }
        let (store, path, digest) = (store.clone(), artifact.path.clone(), digest.clone());
        let checked = tokio::task::spawn_blocking(move || {
            let check = store.check(&path, &digest)?;
            Ok::<_, fl_store::Error>((check, store.file(&path)?))
        })
        .await
        .map_err(std::io::Error::other)??;
        match checked {
            (Check::Intact, path) => Ok(Some(ArtifactFile { path, _temporary: None })),
            (Check::Missing, _) => Err(ArtifactError::NotFound),
            (Check::Damaged, _) => Err(ArtifactError::Digest {
                expected: artifact.digest.as_ref().map(ToString::to_string).unwrap_or_default(),
                found: "another one".to_owned(),
            }),
        }
    }

    fn address(&self, artifact: &Artifact) -> String {
        match (&self.host, artifact.url.parse::<url::Url>()) {
            (Some(host), Ok(mut url)) => {
                let _ = url.set_port(None);
                match host.rsplit_once(':') {
                    Some((name, port)) => {
                        let _ = url.set_host(Some(name));
                        let _ = url.set_port(port.parse().ok());
                    }
                    None => {
                        let _ = url.set_host(Some(host));
                    }
                }
                url.into()
            }
            _ => artifact.url.clone(),
        }
    }

    async fn download(&self, artifact: &Artifact) -> Result<ArtifactFile, ArtifactError> {
        let url = self.address(artifact);
        let mut wait = FIRST_WAIT;
        let mut attempt = 0;
        loop {
            attempt += 1;
            let problem = match self.client.send(fl_http::Request::get(&url)?).await {
                Ok(answer) if answer.status().is_success() => {
                    return keep(answer, artifact.digest.clone()).await;
                }
                Ok(answer) if answer.status() == fl_http::StatusCode::NOT_FOUND => {
                    return Err(ArtifactError::NotFound);
                }
                Ok(answer) => {
                    let status = answer.status().as_u16();
                    let error = ArtifactError::Status { url: url.clone(), status };
                    if status < 500 && status != 429 {
                        return Err(error);
                    }
                    error
                }
                Err(error) => error.into(),
            };
            if attempt >= self.tries {
                return Err(problem);
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }
}

/// Writes the body to a file while hashing it; nothing is kept that does not match.
async fn keep(answer: fl_http::Response, digest: Option<Digest>) -> Result<ArtifactFile, ArtifactError> {
    let mut reader = answer.reader(LARGEST);
    tokio::task::spawn_blocking(move || {
        let file = tempfile::NamedTempFile::new()?;
        let algorithm = digest.as_ref().map_or(fl_types::Algorithm::Sha256, |d| d.algorithm().clone());
        let mut out = DigestWriter::new(file, &algorithm)?;
        std::io::copy(&mut reader, &mut out)?;
        let (file, found, _) = out.finish()?;
        if let Some(expected) = digest.filter(|d| *d != found) {
            return Err(ArtifactError::Digest { expected: expected.to_string(), found: found.to_string() });
        }
        let temporary = file.into_temp_path();
        Ok(ArtifactFile { path: temporary.to_path_buf(), _temporary: Some(temporary) })
    })
    .await
    .map_err(std::io::Error::other)?
}
