//! HelmRepository: an index over HTTP becomes an artifact. A registry is only an address and has none.

use std::io::{self, Read, Seek, Write};
use std::time::Duration;

use fl_api::condition::{reasons, types};
use fl_api::source::HelmRepository;
use fl_artifact_store::{DigestWriter, Store};
use fl_helm::{IndexError, RepositoryIndex};
use fl_http::{HeldBytes, Lease};
use fl_runtime::{Conditions, Context, Edge, ReconcileError, Reconciled, Source};
use fl_types::Algorithm;

use super::HelmLimits;
use super::auth::{self, Access, AccessError};
use crate::conditions;
use crate::driver::{Change, Fetched, Fetcher, SourceReconciler, SourceResult, Storage};
use crate::secrets;
use crate::storage::{self, DEADLINE_EXCEEDED, blocking};

/// The controller of HelmRepositories.
pub type HelmRepositories = SourceReconciler<IndexFetcher>;

impl HelmRepositories {
    pub fn new(store: Store, limits: HelmLimits) -> Self {
        Self::with_fetcher(store, IndexFetcher { limits })
    }
}

/// Fetches the indexes of Helm repositories.
#[derive(Debug)]
pub struct IndexFetcher {
    limits: HelmLimits,
}

/// An index as it was downloaded.
#[derive(Debug)]
pub struct DownloadedIndex {
    pub(super) file: std::fs::File,
    /// `sha256:…` of its bytes.
    pub(super) revision: String,
    /// Counts the file, and its copies while it is read.
    pub(super) held: HeldBytes,
}

/// Files that are made of an index while it is read: itself, its sorted form and its JSON.
const INDEX_COPIES: u64 = 2;

fn result(object: &HelmRepository, revision: &str, change: Change) -> SourceResult {
    let size = object.artifact().and_then(|a| a.size);
    let size = size.map_or_else(|| "unknown size".to_owned(), |s| format!("size {}", human_size(s)));
    SourceResult {
        revision: revision.to_owned(),
        condition: (reasons::SUCCEEDED, format!("stored artifact: revision '{revision}'")),
        event: format!("stored fetched index of {size} from '{}'", object.spec.url),
        event_reason: None,
        change,
    }
}

impl Fetcher for IndexFetcher {
    type Object = HelmRepository;
    type Content = DownloadedIndex;

    const CONTROLLER: &'static str = "helmrepository";
    const LINK: Option<&'static str> = Some("index.yaml");

    fn edges(&self, object: &HelmRepository) -> Vec<Edge> {
        let secrets = [object.spec.secret_ref.as_ref(), object.spec.cert_secret_ref.as_ref()];
        secrets::edges(object.namespace(), secrets)
    }

    fn timeout(&self, object: &HelmRepository) -> Duration {
        auth::timeout(object)
    }

    fn status_url<'a>(&self, object: &'a mut HelmRepository) -> Option<&'a mut Option<String>> {
        Some(&mut object.status.get_or_insert_default().url)
    }

    fn is_static(&self, object: &HelmRepository) -> bool {
        auth::is_oci(object)
    }

    fn clear_status(&self, object: &mut HelmRepository) {
        object.status = None;
    }

    async fn fetch(
        &self,
        cx: &mut Context<HelmRepository>,
        _storage: &Storage<'_>,
        lease: &Lease,
    ) -> Result<Fetched<DownloadedIndex>, ReconcileError> {
        check_url(&cx.object.spec.url).map_err(|problem| {
            let message = format!("invalid Helm repository URL: {problem}");
            ReconcileError::stalled(reasons::source::URL_INVALID, message).on(types::FETCH_FAILED)
        })?;
        let access = auth::read(cx.cluster(), &cx.object).await.map_err(|error| {
            ReconcileError::backoff(reasons::source::AUTHENTICATION_FAILED, error.to_string())
                .on(types::FETCH_FAILED)
        })?;
        let index = download(&access, self.limits.index, lease).await.map_err(|error| {
            let message = format!("failed to fetch Helm repository index: {error}");
            ReconcileError::backoff(reasons::FAILED, message).on(types::FETCH_FAILED)
        })?;
        if cx.object.artifact().is_some_and(|a| a.revision == index.revision) {
            cx.object.remove_condition(types::FETCH_FAILED);
            return Ok(Fetched::Current(result(&cx.object, &index.revision, Change::UpToDate)));
        }
        Ok(Fetched::New(index))
    }

    /// Reads the index, which validates it, and publishes it as JSON.
    async fn store(
        &self,
        cx: &mut Context<HelmRepository>,
        storage: &Storage<'_>,
        content: DownloadedIndex,
    ) -> Result<SourceResult, ReconcileError> {
        let DownloadedIndex { file, revision, held: _held } = content;
        let loaded = blocking(move || {
            let spool = tempfile::tempfile()?;
            RepositoryIndex::read(file, spool)
        })
        .await?;
        let mut index = match loaded {
            Ok(index) => index,
            // As in Flux, the status stays at "building artifact"; the log has the reason.
            Err(error @ IndexError::NullVersion(_)) => {
                let message = format!("failed to load Helm repository index: {error}");
                let error = ReconcileError::backoff(reasons::source::INDEXATION_FAILED, message);
                return Err(error.without_event().conditions_set());
            }
            Err(error) => {
                let message =
                    format!("failed to load Helm repository from index YAML: failed to load index: {error}");
                let error = ReconcileError::backoff(reasons::source::INDEXATION_FAILED, message);
                return Err(error.on(types::FETCH_FAILED));
            }
        };
        cx.object.remove_condition(types::FETCH_FAILED);
        let message = format!("new index revision '{revision}'");
        conditions::mark_outdated(cx, reasons::source::NEW_REVISION, &message);
        let hex = revision.split_once(':').map_or(revision.as_str(), |(_, hex)| hex);
        let name = format!("index-{hex}.yaml");
        let (store, at, file) = (storage.store.clone(), storage.location.clone(), name.clone());
        let published = blocking(move || {
            store.publish(&at, &file, |out| {
                let mut out = io::BufWriter::with_capacity(64 << 10, out);
                index.write_json(&mut out)?;
                Ok::<_, WriteError>(out.flush()?)
            })
        })
        .await?;
        let published = published.map_err(|error| {
            storage::archive_failed(format!("unable to save artifact to storage: {error}"))
        })?;
        cx.object.set_artifact(Some(storage::artifact(published, &revision)));
        storage.link(self, cx, name).await?;
        Ok(result(&cx.object, &revision, Change::Stored))
    }
}

/// Why an index could not be written.
#[derive(Debug, thiserror::Error)]
enum WriteError {
    #[error("{}", storage::chain(.0))]
    Store(#[from] fl_artifact_store::Error),
    #[error("{0}")]
    Index(#[from] IndexError),
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Why the URL of a repository is invalid.
#[derive(Debug, thiserror::Error)]
enum UrlError {
    #[error("'oci' URL scheme cannot be used with 'default' HelmRepository type")]
    Oci,
    #[error("{0}")]
    Malformed(#[from] url::ParseError),
}

fn check_url(url: &str) -> Result<(), UrlError> {
    if url.starts_with("oci://") {
        return Err(UrlError::Oci);
    }
    url::Url::parse(url)?;
    Ok(())
}

/// Why an index could not be downloaded.
#[derive(Debug, thiserror::Error)]
pub(super) enum DownloadError {
    #[error("failed to cache index to temporary file: {0}")]
    Access(#[from] AccessError),
    #[error("failed to cache index to temporary file: {0}")]
    Io(#[from] io::Error),
    #[error("failed to cache index to temporary file: {0}")]
    Store(#[from] fl_artifact_store::Error),
    #[error("failed to cache index to temporary file: {0}")]
    Budget(#[from] fl_http::BudgetError),
    #[error(
        "failed to cache index to temporary file: index exceeds the maximum index file size of {0} bytes"
    )]
    TooLarge(u64),
    #[error("failed to cache index to temporary file: {0}")]
    Interrupted(#[from] tokio::task::JoinError),
    #[error("failed to cache index to temporary file: {DEADLINE_EXCEEDED}")]
    Deadline,
}

/// Fetches an index into a temporary file and computes its digest.
pub(super) async fn download(
    access: &Access,
    limit: u64,
    lease: &Lease,
) -> Result<DownloadedIndex, DownloadError> {
    let _waits = lease.cancel_on_drop();
    let downloaded = tokio::time::timeout(access.timeout, download_file(access, limit, lease)).await;
    downloaded.unwrap_or_else(|_| Err(lease.timed_out().map_or(DownloadError::Deadline, Into::into)))
}

async fn download_file(access: &Access, limit: u64, lease: &Lease) -> Result<DownloadedIndex, DownloadError> {
    let url = auth::resolve(&access.url, "index.yaml")?;
    let response = access.get(&url).await?;
    let (mut body, spool) = (response.reader(limit + 1), lease.spool()?);
    let mut copies = lease.hold();
    let downloaded = tokio::task::spawn_blocking(move || {
        let mut out = DigestWriter::new(spool, &Algorithm::Sha256)?;
        let copied = io::copy(&mut (&mut body).take(limit + 1), &mut out)?;
        if copied > limit {
            return Err(DownloadError::TooLarge(limit));
        }
        let (mut spool, digest, _) = out.finish()?;
        spool.rewind()?;
        copies.add_blocking(copied * INDEX_COPIES)?;
        let (file, mut held) = spool.into_parts();
        held.append(copies);
        Ok(DownloadedIndex { file, revision: digest.to_string(), held })
    });
    downloaded.await?
}

/// A size with four digits and a decimal unit: `1.234kB`.
fn human_size(bytes: i64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    #[expect(clippy::cast_precision_loss, reason = "four digits are shown")]
    let mut size = bytes as f64;
    let mut unit = 0;
    while size >= 1000.0 && unit + 1 < units.len() {
        size /= 1000.0;
        unit += 1;
    }
    let whole = if size >= 100.0 {
        3
    } else if size >= 10.0 {
        2
    } else {
        1
    };
    let text = format!("{size:.*}", 4 - whole);
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::human_size;

    #[test]
    fn sizes_have_four_digits_and_a_unit() {
        for (bytes, want) in [
            (0, "0B"),
            (412, "412B"),
            (999, "999B"),
            (1000, "1kB"),
            (1234, "1.234kB"),
            (65_536, "65.54kB"),
            (50 << 20, "52.43MB"),
        ] {
            assert_eq!(human_size(bytes), want);
        }
    }
}
