//! Fetches artifacts: from the artifact store of this process if it published them, else over HTTP. The
//! digest is always verified.

use std::fs::File;
use std::io::Seek;
use std::time::Duration;

use fl_api::meta::artifact::Artifact;
use fl_artifact_store::{Check, DigestWriter, Store};
use fl_http::Owner;
use fl_types::Digest;

/// Size limit of an artifact fetched over HTTP.
const LARGEST: u64 = 4 << 30;
const FIRST_WAIT: Duration = Duration::from_millis(500);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(30);

/// How long a source may take to publish the new digest in its status after it replaced a file of the same
/// name. Until then a digest mismatch is not reported.
pub const STATUS_FOLLOWS: Duration = Duration::from_secs(5);

/// Why an artifact cannot be fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArtifactError {
    /// It does not exist (yet): wait for the source instead of failing.
    #[error("artifact not found")]
    NotFound,
    #[error("failed to download archive from {url} (status: {status})")]
    Status { url: String, status: u16 },
    #[error("failed to download archive: {0}")]
    Http(#[from] fl_http::Error),
    #[error(
        "failed to verify archive: computed digest doesn't match provided '{expected}' (check whether file size exceeds max download size)"
    )]
    Digest { expected: String, found: String },
    /// Without a digest the content cannot be verified. Flux's fetcher rejects such an artifact, too.
    #[error("failed to verify archive: the artifact has an empty digest; its source must publish one")]
    NoDigest,
    /// The archive cannot be unpacked.
    #[error("failed to extract archive (check whether file size exceeds max download size): {0}")]
    Extract(String),
    #[error("{0}")]
    Store(#[from] fl_artifact_store::Error),
    #[error("cannot keep the archive: {0}")]
    Io(#[from] std::io::Error),
}

/// An open file with a verified artifact. It may be unlinked, so its content cannot be replaced.
#[derive(Debug)]
pub struct ArtifactFile(File);

impl ArtifactFile {
    /// The file, positioned at its start.
    pub fn into_file(self) -> File {
        self.0
    }
}

/// Fetches artifacts.
#[derive(Clone, Debug)]
pub struct ArtifactFetcher {
    /// The artifact store of this process, if it has one.
    local: Option<Store>,
    /// The timeout of one download.
    timeout: Duration,
    tries: u32,
    /// Replaces the host of URLs (`SOURCE_CONTROLLER_LOCALHOST`).
    host: Option<String>,
}

impl ArtifactFetcher {
    /// `retries` is `--http-retry`.
    pub fn new(local: Option<Store>, retries: u32, host: Option<String>) -> Result<Self, fl_http::Error> {
        let fetcher =
            ArtifactFetcher { local, timeout: Duration::from_secs(15 * 60), tries: retries + 1, host };
        fetcher.client(&Owner::engine())?;
        Ok(fetcher)
    }

    fn client(&self, owner: &Owner) -> Result<fl_http::Client, fl_http::Error> {
        fl_http::Client::new(fl_http::Settings {
            timeout: self.timeout,
            ..fl_http::Settings::new(owner.clone())
        })
    }

    /// The same with another timeout for one download (`--http-timeout`).
    ///
    /// # Errors
    /// The client cannot be set up.
    pub fn with_timeout(mut self, timeout: Duration) -> Result<Self, fl_http::Error> {
        self.timeout = timeout;
        Ok(self)
    }

    /// The verified file of an artifact. `owner` is the namespace of the source that published it.
    pub async fn open(&self, artifact: &Artifact, owner: &Owner) -> Result<ArtifactFile, ArtifactError> {
        let digest = artifact.digest.as_ref().ok_or(ArtifactError::NoDigest)?;
        if let Some(file) = self.own(artifact, digest).await? {
            return Ok(file);
        }
        self.download(artifact, digest, owner).await
    }

    /// The file of the own store, if the URL is ours and the digest matches.
    async fn own(&self, artifact: &Artifact, digest: &Digest) -> Result<Option<ArtifactFile>, ArtifactError> {
        let Some(store) = &self.local else { return Ok(None) };
        if artifact.path.is_empty() || artifact.url != store.url(&artifact.path) {
            return Ok(None);
        }
        let (store, path, expected) = (store.clone(), artifact.path.clone(), digest.clone());
        let checked = tokio::task::spawn_blocking(move || store.open_checked(&path, &expected))
            .await
            .map_err(std::io::Error::other)??;
        match checked {
            (_, Some(file)) => Ok(Some(ArtifactFile(file))),
            (Check::Missing, None) => Err(ArtifactError::NotFound),
            (_, None) => {
                Err(ArtifactError::Digest { expected: digest.to_string(), found: "another one".to_owned() })
            }
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

    async fn download(
        &self,
        artifact: &Artifact,
        digest: &Digest,
        owner: &Owner,
    ) -> Result<ArtifactFile, ArtifactError> {
        let url = self.address(artifact);
        let client = self.client(owner)?;
        let mut wait = FIRST_WAIT;
        let mut attempt = 0;
        loop {
            attempt += 1;
            let problem = match client.send(fl_http::Request::get(&url)?).await {
                Ok(answer) if answer.status().is_success() => {
                    return keep(answer, digest.clone()).await;
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
            wait = (wait * 2).min(MAX_RETRY_DELAY);
        }
    }
}

/// Writes the body to a file while hashing it; a file whose digest does not match is discarded.
async fn keep(answer: fl_http::Response, digest: Digest) -> Result<ArtifactFile, ArtifactError> {
    let mut reader = answer.reader(LARGEST);
    tokio::task::spawn_blocking(move || {
        let mut out = DigestWriter::new(tempfile::tempfile()?, digest.algorithm())?;
        std::io::copy(&mut reader, &mut out)?;
        let (mut file, found, _) = out.finish()?;
        if digest != found {
            return Err(ArtifactError::Digest { expected: digest.to_string(), found: found.to_string() });
        }
        file.rewind()?;
        Ok(ArtifactFile(file))
    })
    .await
    .map_err(std::io::Error::other)?
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use fl_artifact_store::{Location, Retention, StoreOptions};

    use super::*;

    fn text(file: ArtifactFile) -> String {
        let mut text = String::new();
        file.into_file().read_to_string(&mut text).expect("read");
        text
    }

    /// A10: content with a wrong digest is never returned, from the own store or over HTTP.
    #[tokio::test(flavor = "multi_thread")]
    async fn content_with_a_wrong_digest_is_rejected() {
        let root = tempfile::tempdir().expect("a directory");
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let options = StoreOptions {
            root: root.path().to_owned(),
            advertised: listener.local_addr().expect("an address").to_string(),
            algorithm: fl_types::Algorithm::Sha256,
            retention: Retention::default(),
        };
        let store = Store::open(options).expect("a store");
        let served = store.clone();
        tokio::spawn(async move {
            fl_artifact_store::serve(
                &served,
                listener,
                fl_artifact_store::Hosts::Any,
                std::future::pending(),
            )
            .await;
        });
        let at = Location::new("GitRepository", "default", "app").expect("a place");
        let publish = |content: &'static [u8]| {
            let written = store.publish::<fl_artifact_store::Error>(&at, "a.tar.gz", |out| {
                out.write_all(content).expect("written");
                Ok(())
            });
            written.expect("published")
        };
        let published = publish(b"good");
        let artifact = Artifact {
            digest: Some(published.digest),
            last_update_time: published.last_update_time.parse().expect("a time"),
            metadata: None,
            path: published.path,
            revision: "main@sha1:1".to_owned(),
            size: None,
            url: published.url,
            checksum: None,
        };
        for local in [Some(store.clone()), None] {
            let fetcher = ArtifactFetcher::new(local, 0, None).expect("a client");
            let good = fetcher.open(&artifact, &Owner::namespace("default")).await.expect("the right bytes");
            // Replaced between the check and the use.
            publish(b"evil");
            assert_eq!(text(good), "good");
            for _ in 0..3 {
                let refused = fetcher.open(&artifact, &Owner::namespace("default")).await;
                assert!(matches!(refused, Err(ArtifactError::Digest { .. })), "{refused:?}");
            }
            publish(b"good");
            let unverified = Artifact { digest: None, ..artifact.clone() };
            let refused = fetcher.open(&unverified, &Owner::namespace("default")).await;
            assert!(matches!(refused, Err(ArtifactError::NoDigest)), "{refused:?}");
        }
    }
}
