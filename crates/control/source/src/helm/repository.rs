//! HelmRepository: an index over HTTP becomes an artifact. A registry is only an address and needs no work.

use std::io::{Read, Seek, Write};

use fl_api::condition::{reasons, types};
use fl_api::source::HelmRepository;
use fl_helm::{IndexError, RepositoryIndex};
use fl_runtime::{
    Conditions, Edge, End, EventKind, FINALIZER, Failure, Names, Outcome, Pass, Reconciled, Reconciler,
    Source,
};
use fl_store::{DigestWriter, Store};
use fl_types::Algorithm;

use super::HelmLimits;
use super::access::{self, Access};
use crate::conclude::{self, Verdict, failed};
use crate::secrets;
use crate::storage::{self, blocking, has_revision};

/// The controller of HelmRepositories.
#[derive(Debug)]
pub struct HelmRepositories {
    store: Store,
    limits: HelmLimits,
}

/// An index as it came, in a file without a name.
pub(super) struct FetchedIndex {
    pub(super) file: std::fs::File,
    /// `sha256:…` of its bytes.
    pub(super) revision: String,
}

impl HelmRepositories {
    pub fn new(store: Store, limits: HelmLimits) -> Self {
        Self { store, limits }
    }

    async fn run(&self, pass: &mut Pass<HelmRepository>) -> Result<(), Stop> {
        conclude::begin(pass);
        storage::check(pass, &self.store).await?;
        self.refresh_link(pass);
        let Some(index) = self.fetch(pass).await? else {
            return Ok(());
        };
        self.store_index(pass, index).await?;
        let size = pass.object.artifact().and_then(|a| a.size);
        let size = size.map_or_else(|| "unknown size".to_owned(), |s| format!("size {}", human_size(s)));
        let message = format!("stored fetched index of {size} from '{}'", pass.object.spec.url);
        conclude::announce(pass, &message);
        Ok(())
    }

    /// The address of the newest artifact follows the store's, and goes with the artifact.
    fn refresh_link(&self, pass: &mut Pass<HelmRepository>) {
        let path = pass.object.artifact().map(|a| a.path.clone());
        let status = pass.object.status.get_or_insert_default();
        status.url = match (path, &status.url) {
            (Some(path), Some(_)) => {
                let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
                Some(self.store.url(&format!("{folder}/index.yaml")))
            }
            _ => None,
        };
    }

    /// Downloads and checks the index; `None` when it is the one we have.
    async fn fetch(&self, pass: &mut Pass<HelmRepository>) -> Result<Option<FetchedIndex>, Failure> {
        let url = pass.object.spec.url.clone();
        if url.starts_with("oci://") {
            let message = "invalid Helm repository URL: 'oci' URL scheme cannot be used with 'default' HelmRepository type";
            let failure = Failure::stall(reasons::source::URL_INVALID, message);
            return Err(failed(pass, types::FETCH_FAILED, failure));
        }
        if let Err(error) = url::Url::parse(&url) {
            let failure =
                Failure::stall(reasons::source::URL_INVALID, format!("invalid Helm repository URL: {error}"));
            return Err(failed(pass, types::FETCH_FAILED, failure));
        }
        let access = match access::read(pass.cluster(), &pass.object).await {
            Ok(access) => access,
            Err(problem) => {
                let failure = Failure::retry(reasons::source::AUTHENTICATION_FAILED, problem);
                return Err(failed(pass, types::FETCH_FAILED, failure));
            }
        };
        let index = match download(&access, self.limits.index).await {
            Ok(index) => index,
            Err(problem) => {
                let message = format!("failed to fetch Helm repository index: {problem}");
                return Err(failed(pass, types::FETCH_FAILED, Failure::retry(reasons::FAILED, message)));
            }
        };
        if pass.object.artifact().is_some_and(|a| a.revision == index.revision) {
            pass.object.remove_condition(types::FETCH_FAILED);
            let message = format!("artifact up-to-date with remote revision: '{}'", index.revision);
            pass.log.info(&message);
            pass.event(EventKind::Trace, "ArtifactUpToDate", &message);
            stored(pass, &index.revision);
            let size = pass.object.artifact().and_then(|a| a.size).unwrap_or_default();
            let message = format!("stored fetched index of size {} from '{url}'", human_size(size));
            conclude::announce(pass, &message);
            return Ok(None);
        }
        Ok(Some(index))
    }

    /// Reads the index, which checks it, and publishes it as JSON.
    async fn store_index(&self, pass: &mut Pass<HelmRepository>, fetched: FetchedIndex) -> Result<(), Stop> {
        let FetchedIndex { file, revision } = fetched;
        let loaded = blocking(move || {
            let spool = tempfile::tempfile()?;
            RepositoryIndex::read(file, spool)
        })
        .await?;
        let mut index = match loaded {
            Ok(index) => index,
            Err(error @ IndexError::NullVersion(_)) => return Err(Stop::Unsaid(error.to_string())),
            Err(error) => {
                let message =
                    format!("failed to load Helm repository from index YAML: failed to load index: {error}");
                let failure = Failure::retry(reasons::source::INDEXATION_FAILED, message);
                return Err(failed(pass, types::FETCH_FAILED, failure).into());
            }
        };
        pass.object.remove_condition(types::FETCH_FAILED);
        let message = format!("new index revision '{revision}'");
        if pass.object.artifact().is_some() {
            pass.object.mark_true(types::ARTIFACT_OUTDATED, reasons::source::NEW_REVISION, &message);
        }
        pass.object.mark_progressing(true, &format!("building artifact: {message}"));
        pass.progress();
        let at = storage::location(&pass.object)?;
        let hex = revision.split_once(':').map_or(revision.as_str(), |(_, hex)| hex);
        let name = format!("index-{hex}.yaml");
        let disk = self.store.clone();
        let published = blocking(move || -> Result<_, String> {
            let published = disk
                .publish(&at, &name, |out| {
                    let mut out = std::io::BufWriter::with_capacity(64 << 10, out);
                    index.write_json(&mut out).map_err(|e| WriteError::Index(e.to_string()))?;
                    out.flush().map_err(|e| WriteError::Index(e.to_string()))
                })
                .map_err(|e: WriteError| e.to_string())?;
            let link = disk.link(&at, &name, "index.yaml").map_err(|e| storage::chain(&e));
            Ok((published, link))
        })
        .await?;
        let (published, link) = match published {
            Ok(done) => done,
            Err(error) => {
                let message = format!("unable to save artifact to storage: {error}");
                let failure = Failure::retry(reasons::source::ARCHIVE_OPERATION_FAILED, message);
                return Err(failed(pass, types::STORAGE_OPERATION_FAILED, failure).into());
            }
        };
        pass.object.set_artifact(Some(storage::artifact(published, &revision)));
        match link {
            Ok(url) => pass.object.status.get_or_insert_default().url = Some(url),
            Err(error) => {
                let message = format!("failed to update status URL symlink: {error}");
                pass.event(EventKind::Trace, reasons::source::SYMLINK_UPDATE_FAILED, &message);
            }
        }
        pass.object.remove_condition(types::STORAGE_OPERATION_FAILED);
        stored(pass, &revision);
        Ok(())
    }

    /// An object that became a mere address: what was kept for it goes, and nothing is said about it any more.
    async fn retire(&self, pass: &mut Pass<HelmRepository>) -> Outcome {
        if (pass.object.has_finalizer(FINALIZER) || pass.object.artifact().is_some())
            && let Err(outcome) = storage::remove(pass, &self.store).await
        {
            return outcome;
        }
        if let Some(finalizers) = &mut pass.object.meta_mut().finalizers {
            finalizers.retain(|f| f != FINALIZER);
        }
        pass.object.status = None;
        Outcome::never()
    }
}

/// Why a pass ended early.
enum Stop {
    Failed(Failure),
    /// Tried again without a word in the status, which stays at "building artifact", as Flux does; the log has the reason.
    Unsaid(String),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Stop::Failed(failure)
    }
}

#[derive(Debug, thiserror::Error)]
enum WriteError {
    #[error("{}", storage::chain(.0))]
    Store(#[from] fl_store::Error),
    #[error("{0}")]
    Index(String),
}

fn stored(pass: &mut Pass<HelmRepository>, revision: &str) {
    if !has_revision(pass.object.artifact(), revision) {
        return;
    }
    pass.object.remove_condition(types::ARTIFACT_OUTDATED);
    let message = format!("stored artifact: revision '{revision}'");
    pass.object.mark_true(types::ARTIFACT_IN_STORAGE, reasons::SUCCEEDED, &message);
}

/// Fetches an index into a file of its own, hashing it on the way.
pub(super) async fn download(access: &Access, limit: u64) -> Result<FetchedIndex, String> {
    let cached = |problem: String| format!("failed to cache index to temporary file: {problem}");
    let url = access::resolve(&access.url, "index.yaml").map_err(cached)?;
    let response = access.get(&url).await.map_err(cached)?;
    let mut body = response.reader(limit + 1);
    let done = tokio::task::spawn_blocking(move || -> Result<FetchedIndex, String> {
        let file = tempfile::tempfile().map_err(|e| e.to_string())?;
        let mut out = DigestWriter::new(file, &Algorithm::Sha256).map_err(|e| e.to_string())?;
        let copied = std::io::copy(&mut (&mut body).take(limit + 1), &mut out).map_err(|e| e.to_string())?;
        if copied > limit {
            return Err(format!("index exceeds the maximum index file size of {limit} bytes"));
        }
        let (mut file, digest, _) = out.finish().map_err(|e| e.to_string())?;
        file.rewind().map_err(|e| e.to_string())?;
        Ok(FetchedIndex { file, revision: digest.to_string() })
    });
    done.await.map_err(|e| cached(e.to_string()))?.map_err(cached)
}

/// `1.234kB`: four digits and a decimal unit.
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

impl Reconciler for HelmRepositories {
    type Object = HelmRepository;

    fn names(&self) -> Names {
        Names {
            controller: "helmrepository",
            component: "source-controller",
            field_manager: "source-controller",
        }
    }

    fn owned_conditions(&self) -> &'static [&'static str] {
        conclude::CONDITIONS
    }

    fn edges(&self, object: &HelmRepository) -> Vec<Edge> {
        let secrets = [object.spec.secret_ref.as_ref(), object.spec.cert_secret_ref.as_ref()];
        secrets::edges(object.namespace(), secrets)
    }

    fn finalizer(&self, object: &HelmRepository) -> Option<&'static str> {
        (!access::is_oci(object) || object.deleting()).then_some(FINALIZER)
    }

    async fn reconcile(&self, pass: &mut Pass<HelmRepository>) -> Outcome {
        if access::is_oci(&pass.object) {
            return self.retire(pass).await;
        }
        let verdict = match self.run(pass).await {
            Ok(()) => Verdict::Success,
            Err(Stop::Failed(failure)) => Verdict::Failed(failure),
            Err(Stop::Unsaid(problem)) => {
                conclude::conclude(pass, &Verdict::Nothing);
                return Outcome::backoff(format!("failed to load Helm repository index: {problem}"));
            }
        };
        conclude::conclude(pass, &verdict)
    }

    async fn delete(&self, pass: &mut Pass<HelmRepository>) -> Result<(), Outcome> {
        storage::remove(pass, &self.store).await
    }

    fn finish(&self, pass: &mut Pass<HelmRepository>, end: End, _outcome: &mut Outcome) {
        if !access::is_oci(&pass.object) {
            conclude::finish(pass, end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::human_size;

    #[test]
    fn sizes_for_people() {
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
