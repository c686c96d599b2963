//! OCIRepository: a layer of an OCI artifact becomes an artifact of the source.

mod auth;
mod client;
mod verify;

use std::collections::BTreeMap;
use std::io::{self, Seek};
use std::sync::Arc;
use std::time::Duration;

use fl_api::condition::{reasons, types};
use fl_api::source::OCIRepository;
use fl_api::source::oci_repository::LayerOperation;
use fl_archive::ReadLimits;
use fl_artifact_store::Store;
use fl_http::{Lease, SpoolFile};
use fl_oci::{Reference, Repository, select_tag};
use fl_runtime::{Conditions, Context, Edge, ReconcileError, Reconciled, Source};

pub use client::{NetworkOci, OciClient, OciRegistry};

use crate::conditions;
use crate::driver::{Change, Fetched, Fetcher, SourceReconciler, SourceResult, Storage};
use crate::secrets;
use crate::storage::{self, DEADLINE_EXCEEDED, blocking, has_revision};
use crate::tree::{ArchiveError, TarTree, UnpackError, write_archive};

const SOURCE_ANNOTATION: &str = "org.opencontainers.image.source";
const REVISION_ANNOTATION: &str = "org.opencontainers.image.revision";

/// The controller of OCIRepositories.
pub type OciRepositories = SourceReconciler<OciFetcher>;

impl OciRepositories {
    pub fn new(store: Store, oci: Arc<dyn OciClient>) -> Self {
        Self::with_fetcher(store, OciFetcher { oci })
    }
}

/// Fetches layers of OCI artifacts.
pub struct OciFetcher {
    oci: Arc<dyn OciClient>,
}

impl std::fmt::Debug for OciFetcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OciFetcher").finish_non_exhaustive()
    }
}

/// A layer that was pulled and verified.
#[derive(Debug)]
pub struct LayerContent {
    revision: String,
    digest: String,
    annotations: BTreeMap<String, String>,
    layer: Layer,
}

#[derive(Debug)]
enum Layer {
    Tree(TarTree),
    /// Kept as it is.
    Bytes(SpoolFile),
}

/// Why a layer could not be written to storage.
#[derive(Debug, thiserror::Error)]
enum PublishError {
    #[error("unable to archive artifact to storage: {0}")]
    Archive(#[source] ArchiveError),
    #[error("unable to copy artifact to storage: {0}")]
    Copy(#[source] ArchiveError),
}

fn result(object: &OCIRepository, revision: &str, change: Change) -> SourceResult {
    SourceResult {
        revision: revision.to_owned(),
        condition: (reasons::SUCCEEDED, format!("stored artifact for digest '{revision}'")),
        event: event_message(object),
        event_reason: None,
        change,
    }
}

impl Fetcher for OciFetcher {
    type Object = OCIRepository;
    type Content = LayerContent;

    const CONTROLLER: &'static str = "ocirepository";
    const LINK: Option<&'static str> = Some(storage::LATEST);

    fn edges(&self, object: &OCIRepository) -> Vec<Edge> {
        let spec = &object.spec;
        let verify = spec.verify.as_ref();
        let secrets = [
            spec.secret_ref.as_ref(),
            spec.cert_secret_ref.as_ref(),
            spec.proxy_secret_ref.as_ref(),
            verify.and_then(|v| v.secret_ref.as_ref()),
            verify.and_then(|v| v.trusted_root_secret_ref.as_ref()),
        ];
        secrets::edges(object.namespace(), secrets)
    }

    fn timeout(&self, object: &OCIRepository) -> Duration {
        object.spec.timeout.to_std().unwrap_or_default()
    }

    fn status_url<'a>(&self, object: &'a mut OCIRepository) -> Option<&'a mut Option<String>> {
        Some(&mut object.status.get_or_insert_default().url)
    }

    async fn fetch(
        &self,
        cx: &mut Context<OCIRepository>,
        _storage: &Storage<'_>,
        lease: &Lease,
    ) -> Result<Fetched<LayerContent>, ReconcileError> {
        conditions::reset_verification(cx);
        let options = auth::options(cx).await?;
        let url = cx.object.spec.url.clone();
        let registry = self.oci.open(options).map_err(|e| {
            let message = format!("failed to generate transport for '{url}': {e}");
            ReconcileError::backoff(reasons::source::AUTHENTICATION_FAILED, message).on(types::FETCH_FAILED)
        })?;
        let timeout = self.timeout(&cx.object);
        let reference = match tokio::time::timeout(timeout, reference(&cx.object, registry.as_ref())).await {
            Ok(reference) => reference.map_err(|error| error.on(types::FETCH_FAILED))?,
            Err(_) => {
                let message =
                    format!("failed to determine the artifact tag for '{url}': {DEADLINE_EXCEEDED}");
                return Err(pull_failed(message));
            }
        };
        let undetermined = |problem: &dyn std::fmt::Display| {
            pull_failed(format!("failed to determine artifact digest: {problem}"))
        };
        let digest = match tokio::time::timeout(timeout, registry.resolve(&reference)).await {
            Ok(digest) => digest.map_err(|error| undetermined(&error))?,
            Err(_) => return Err(undetermined(&DEADLINE_EXCEEDED)),
        };
        let revision = match &reference {
            Reference::Digest { .. } => digest.clone(),
            Reference::Tag { .. } => format!("{}@{digest}", reference.identifier()),
        };
        let at = reference.repository().digest(&digest).map_err(|error| undetermined(&error))?;
        let pulled = self.pull(cx, registry.as_ref(), &at, &revision, lease).await;
        // Reported whether the pull succeeded or not.
        if !has_revision(cx.object.artifact(), &revision) {
            let message = format!("new revision '{revision}' for '{reference}'");
            conditions::mark_outdated(cx, reasons::source::NEW_REVISION, &message);
        }
        let pulled = pulled?;
        cx.object.remove_condition(types::FETCH_FAILED);
        Ok(match pulled {
            None => Fetched::Current(result(&cx.object, &revision, Change::UpToDate)),
            Some((annotations, layer)) => Fetched::New(LayerContent { revision, digest, annotations, layer }),
        })
    }

    async fn store(
        &self,
        cx: &mut Context<OCIRepository>,
        storage: &Storage<'_>,
        content: LayerContent,
    ) -> Result<SourceResult, ReconcileError> {
        let LayerContent { revision, digest, annotations, layer } = content;
        let (store, at, ignore) =
            (storage.store.clone(), storage.location.clone(), cx.object.spec.ignore.clone());
        let file = format!("{digest}.tar.gz");
        let name = file.clone();
        let published = blocking(move || match layer {
            Layer::Tree(mut tree) => store
                .publish_tree(&at, &name, |tar| write_archive(&mut tree, ignore.as_deref(), tar))
                .map_err(PublishError::Archive),
            Layer::Bytes(mut bytes) => store
                .publish(&at, &name, |out| {
                    io::copy(&mut bytes, out)
                        .map(drop)
                        .map_err(|source| ArchiveError::Read { path: name.clone(), source })
                })
                .map_err(PublishError::Copy),
        })
        .await?;
        let published = published.map_err(|error| storage::archive_failed(error.to_string()))?;
        let mut artifact = storage::artifact(published, &revision);
        artifact.metadata = Some(annotations).filter(|a| !a.is_empty());
        let spec = cx.object.spec.clone();
        let status = cx.object.status.get_or_insert_default();
        status.artifact = Some(artifact);
        status.observed_ignore = spec.ignore;
        status.observed_layer_selector = spec.layer_selector;
        storage.link(self, cx, file).await?;
        Ok(result(&cx.object, &revision, Change::Stored))
    }
}

impl OciFetcher {
    /// Verifies and pulls, when either is due.
    async fn pull(
        &self,
        cx: &mut Context<OCIRepository>,
        registry: &dyn OciRegistry,
        at: &Reference,
        revision: &str,
        lease: &Lease,
    ) -> Result<Option<(BTreeMap<String, String>, Layer)>, ReconcileError> {
        verify::check(cx, registry, at, revision, self.timeout(&cx.object)).await?;
        if has_revision(cx.object.artifact(), revision) && !content_changed(&cx.object) {
            return Ok(None);
        }
        let _waits = lease.cancel_on_drop();
        let pulled =
            tokio::time::timeout(self.timeout(&cx.object), layer(&cx.object, registry, at, lease)).await;
        let url = &cx.object.spec.url;
        match pulled {
            Ok(content) => content.map(Some).map_err(|error| error.on(types::FETCH_FAILED)),
            Err(_) => {
                let why = lease.timed_out().map_or_else(|| DEADLINE_EXCEEDED.to_owned(), |e| e.to_string());
                Err(pull_failed(format!("failed to pull artifact from '{url}': {why}")))
            }
        }
    }
}

/// Pulls the layer that the spec selects. Its digest is checked at the end of the blob.
async fn layer(
    object: &OCIRepository,
    registry: &dyn OciRegistry,
    at: &Reference,
    lease: &Lease,
) -> Result<(BTreeMap<String, String>, Layer), ReconcileError> {
    let layer_failed = |message: String| {
        ReconcileError::backoff(reasons::source::OCI_ARTIFACT_LAYER_OPERATION_FAILED, message)
    };
    let manifest = registry
        .manifest(at)
        .await
        .map_err(|e| pull_failed(format!("failed to pull artifact from '{}': {e}", object.spec.url)))?;
    let selector = object.spec.layer_selector.clone().unwrap_or_default();
    let media_type = selector.media_type.as_deref().filter(|m| !m.is_empty());
    let layer = manifest.layer(media_type).map_err(|e| layer_failed(e.to_string()))?;
    let mut blob = registry
        .layer(at.repository(), layer)
        .await
        .map_err(|e| layer_failed(format!("failed to extract the first layer from artifact: {e}")))?;
    let lease = lease.clone();
    let layer = match selector.operation.unwrap_or(LayerOperation::Extract) {
        LayerOperation::Extract => {
            let unpacked = blocking(move || {
                let tree = TarTree::unpack(&mut blob, true, &ReadLimits::default(), &lease)?;
                io::copy(&mut blob, &mut io::sink()).map_err(UnpackError::Spool)?;
                Ok::<_, UnpackError>(tree)
            })
            .await?;
            let failed = |e| layer_failed(format!("failed to extract layer contents from artifact: {e}"));
            Layer::Tree(unpacked.map_err(failed)?)
        }
        LayerOperation::Copy => {
            let copied = blocking(move || {
                let mut file = lease.spool()?;
                io::copy(&mut blob, &mut file)?;
                file.rewind()?;
                Ok::<_, io::Error>(file)
            })
            .await?;
            let failed = |e| layer_failed(format!("failed to copy layer from artifact: {e}"));
            Layer::Bytes(copied.map_err(failed)?)
        }
    };
    Ok((manifest.annotations.clone(), layer))
}

fn pull_failed(message: String) -> ReconcileError {
    ReconcileError::backoff(reasons::source::OCI_ARTIFACT_PULL_FAILED, message).on(types::FETCH_FAILED)
}

/// The message of the event, with the origin of the content where annotations of the image name it.
fn event_message(object: &OCIRepository) -> String {
    let Some(artifact) = object.artifact() else { return String::new() };
    let message = format!("stored artifact with revision '{}' from '{}'", artifact.revision, object.spec.url);
    let annotation = |key| artifact.metadata.as_ref().and_then(|m| m.get(key)).filter(|v| !v.is_empty());
    match (annotation(SOURCE_ANNOTATION), annotation(REVISION_ANNOTATION)) {
        (Some(source), Some(revision)) => {
            format!("{message}, origin source '{source}', origin revision '{revision}'")
        }
        _ => message,
    }
}

fn content_changed(object: &OCIRepository) -> bool {
    let status = object.status.clone().unwrap_or_default();
    object.spec.ignore != status.observed_ignore
        || object.spec.layer_selector != status.observed_layer_selector
}

/// The tag or digest that the spec selects now.
async fn reference(object: &OCIRepository, registry: &dyn OciRegistry) -> Result<Reference, ReconcileError> {
    let url = &object.spec.url;
    let invalid = |problem: String| {
        let message = format!("URL validation failed for '{url}': {problem}");
        ReconcileError::stalled(reasons::source::URL_INVALID, message)
    };
    let undetermined = |problem: String| {
        let message = format!("failed to determine the artifact tag for '{url}': {problem}");
        ReconcileError::backoff(reasons::source::READ_OPERATION_FAILED, message)
    };
    let unresolved = |problem: String| {
        let message = format!("failed to determine artifact digest: {problem}");
        ReconcileError::backoff(reasons::source::OCI_ARTIFACT_PULL_FAILED, message)
    };
    let Some(name) = url.strip_prefix("oci://") else {
        return Err(invalid("URL must be in format 'oci://<domain>/<org>/<repo>'".to_owned()));
    };
    // Registries ignore a slash at the end.
    let name = name.strip_suffix('/').filter(|short| short.contains('/')).unwrap_or(name);
    let repository = Repository::parse(name).map_err(|e| invalid(e.to_string()))?;
    let path = name.strip_prefix(repository.registry()).unwrap_or(name);
    if let Some((_, tag)) = path.split_once(':') {
        let tag = tag.split(':').next().unwrap_or_default();
        return Err(invalid(format!("URL must not contain a tag; remove ':{tag}'")));
    }
    let wanted = object.spec.r#ref.clone().unwrap_or_default();
    if let Some(digest) = wanted.digest.filter(|d| !d.is_empty()) {
        if let Some(problem) = digest_problem(&digest) {
            return Err(unresolved(problem));
        }
        return repository.digest(&digest).map_err(|e| unresolved(e.to_string()));
    }
    if let Some(range) = wanted.semver.filter(|s| !s.is_empty()) {
        let tags = registry.tags(&repository).await.map_err(|e| undetermined(e.to_string()))?;
        let filter = wanted.semver_filter.as_deref().filter(|f| !f.is_empty());
        let media_type = object.spec.layer_selector.as_ref().and_then(|s| s.media_type.as_deref());
        let tag = select_tag(&tags, &range, filter, media_type).map_err(|e| undetermined(e.to_string()))?;
        return repository.tag(&tag).map_err(|e| undetermined(e.to_string()));
    }
    let tag = wanted.tag.filter(|t| !t.is_empty()).unwrap_or_else(|| "latest".to_owned());
    repository.tag(&tag).map_err(|e| unresolved(e.to_string()))
}

/// The error message of Flux's registry client for a malformed digest.
fn digest_problem(digest: &str) -> Option<String> {
    let (algorithm, sum) = match digest.split_once(':') {
        Some((algorithm, sum)) if !algorithm.is_empty() && !sum.is_empty() => (algorithm, sum),
        _ => return Some(format!("cannot parse hash: {digest:?}")),
    };
    if let Some(odd) = sum.chars().find(|c| !matches!(c, '0'..='9' | 'a'..='f')) {
        return Some(format!("found non-hex character in hash: {odd}"));
    }
    match algorithm {
        "sha256" if sum.len() == 64 => None,
        "sha256" => Some(format!("wrong number of hex digits for {algorithm}: {sum}")),
        _ => Some(format!("unsupported hash: {algorithm:?}")),
    }
}
