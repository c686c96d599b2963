//! OCIRepository: a layer of an OCI artifact becomes an artifact of ours.
//!
//! A pass: check the store, find the tag and its digest, verify, pull if anything changed, archive.

mod access;
mod client;
mod verify;

use std::sync::Arc;

use fl_api::condition::{reasons, types};
use fl_api::source::OCIRepository;
use fl_api::source::oci_repository::LayerOperation;
use fl_archive::ReadLimits;
use fl_oci::{Reference, Repository, select_tag};
use fl_runtime::{
    Conditions, Edge, End, EventKind, Failure, Names, Outcome, Pass, Reconciled, Reconciler, Source,
};
use fl_store::Store;

pub use client::{NetworkOci, OciClient, OciRegistry};

use crate::conclude::{self, failed};
use crate::secrets;
use crate::storage::{self, blocking, has_revision};
use crate::tree::{ArchiveError, TarTree, UnpackError, write_archive};

const SOURCE_ANNOTATION: &str = "org.opencontainers.image.source";
const REVISION_ANNOTATION: &str = "org.opencontainers.image.revision";
const LATEST: &str = "latest.tar.gz";

/// The controller of OCIRepositories.
pub struct OciRepositories {
    store: Store,
    oci: Arc<dyn OciClient>,
}

impl std::fmt::Debug for OciRepositories {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OciRepositories").finish_non_exhaustive()
    }
}

/// What the pass found upstream.
struct Work {
    revision: String,
    digest: String,
    /// `None`: nothing to pull.
    content: Option<Content>,
}

struct Content {
    annotations: std::collections::BTreeMap<String, String>,
    layer: Layer,
}

enum Layer {
    Tree(TarTree),
    /// Kept as it is, in an unnamed file.
    Bytes(std::fs::File),
}

impl OciRepositories {
    pub fn new(store: Store, oci: Arc<dyn OciClient>) -> Self {
        OciRepositories { store, oci }
    }

    async fn run(&self, pass: &mut Pass<OCIRepository>) -> Result<(), Failure> {
        conclude::begin(pass);
        let had = pass.object.artifact().is_some();
        storage::check(pass, &self.store).await?;
        let at = storage::location(&pass.object)?;
        let status = pass.object.status.get_or_insert_default();
        if had && status.artifact.is_none() {
            status.url = None;
        } else if status.url.is_some() {
            // The address is made anew each time, so that a changed host heals.
            status.url = at.path(LATEST).ok().map(|path| self.store.url(&path));
        }
        let work = self.fetch(pass).await?;
        self.store_artifact(pass, work).await?;
        let message = announcement(&pass.object);
        conclude::announce(pass, &message);
        Ok(())
    }

    async fn fetch(&self, pass: &mut Pass<OCIRepository>) -> Result<Work, Failure> {
        if pass.object.is_false(types::SOURCE_VERIFIED) {
            pass.object.remove_condition(types::SOURCE_VERIFIED);
        }
        let options = match access::options(pass).await {
            Ok(options) => options,
            Err(failure) if failure.reason == reasons::FEATURE_GATE_DISABLED => return Err(failure),
            Err(failure) => return Err(failed(pass, types::FETCH_FAILED, failure)),
        };
        let url = pass.object.spec.url.clone();
        let registry = self.oci.open(options).map_err(|e| {
            let message = format!("failed to generate transport for '{url}': {e}");
            failed(pass, types::FETCH_FAILED, Failure::retry(reasons::source::AUTHENTICATION_FAILED, message))
        })?;
        let timeout = pass.object.spec.timeout.to_std().unwrap_or_default();
        let reference = match tokio::time::timeout(timeout, reference(&pass.object, registry.as_ref())).await
        {
            Ok(Ok(reference)) => reference,
            Ok(Err(failure)) => return Err(failed(pass, types::FETCH_FAILED, failure)),
            Err(_) => {
                return Err(pull_failed(
                    pass,
                    format!("failed to determine the artifact tag for '{url}': context deadline exceeded"),
                ));
            }
        };
        let digest = match tokio::time::timeout(timeout, registry.resolve(&reference)).await {
            Ok(Ok(digest)) => digest,
            Ok(Err(error)) => {
                return Err(pull_failed(pass, format!("failed to determine artifact digest: {error}")));
            }
            Err(_) => {
                return Err(pull_failed(
                    pass,
                    "failed to determine artifact digest: context deadline exceeded".to_owned(),
                ));
            }
        };
        let revision = match &reference {
            Reference::Digest { .. } => digest.clone(),
            Reference::Tag { .. } => format!("{}@{digest}", reference.identifier()),
        };
        let result = self.pull(pass, registry.as_ref(), &reference, &digest, &revision).await;
        // Seen whether the pull succeeded or not.
        if !has_revision(pass.object.artifact(), &revision) {
            let message = format!("new revision '{revision}' for '{reference}'");
            if pass.object.artifact().is_some() {
                pass.object.mark_true(types::ARTIFACT_OUTDATED, reasons::source::NEW_REVISION, &message);
            }
            pass.object.mark_progressing(true, &format!("building artifact: {message}"));
            pass.progress();
        }
        Ok(Work { revision, digest, content: result? })
    }

    /// Verifies and pulls, when either is due.
    async fn pull(
        &self,
        pass: &mut Pass<OCIRepository>,
        registry: &dyn OciRegistry,
        reference: &Reference,
        digest: &str,
        revision: &str,
    ) -> Result<Option<Content>, Failure> {
        let at = reference
            .repository()
            .digest(digest)
            .map_err(|e| pull_failed(pass, format!("failed to determine artifact digest: {e}")))?;
        verify::check(pass, registry, &at, revision).await?;
        if has_revision(pass.object.artifact(), revision) && !content_changed(&pass.object) {
            pass.object.remove_condition(types::FETCH_FAILED);
            return Ok(None);
        }
        let timeout = pass.object.spec.timeout.to_std().unwrap_or_default();
        let content = match tokio::time::timeout(timeout, self.layer(&pass.object, registry, &at)).await {
            Ok(content) => content,
            Err(_) => Err(Failure::retry(
                reasons::source::OCI_ARTIFACT_PULL_FAILED,
                format!("failed to pull artifact from '{}': context deadline exceeded", pass.object.spec.url),
            )),
        };
        match content {
            Ok(content) => {
                pass.object.remove_condition(types::FETCH_FAILED);
                Ok(Some(content))
            }
            Err(failure) => Err(failed(pass, types::FETCH_FAILED, failure)),
        }
    }

    async fn layer(
        &self,
        object: &OCIRepository,
        registry: &dyn OciRegistry,
        at: &Reference,
    ) -> Result<Content, Failure> {
        let pull = |e: fl_oci::Error| {
            let message = format!("failed to pull artifact from '{}': {e}", object.spec.url);
            Failure::retry(reasons::source::OCI_ARTIFACT_PULL_FAILED, message)
        };
        let wrong =
            |message: String| Failure::retry(reasons::source::OCI_ARTIFACT_LAYER_OPERATION_FAILED, message);
        let manifest = registry.manifest(at).await.map_err(pull)?;
        let selector = object.spec.layer_selector.clone().unwrap_or_default();
        let media_type = selector.media_type.as_deref().filter(|m| !m.is_empty());
        let layer = manifest.layer(media_type).map_err(|e| wrong(e.to_string()))?;
        let blob = registry
            .layer(at.repository(), layer)
            .await
            .map_err(|e| wrong(format!("failed to extract the first layer from artifact: {e}")))?;
        let layer = match selector.operation.unwrap_or(LayerOperation::Extract) {
            LayerOperation::Extract => {
                let unpacked = blocking(move || {
                    let mut blob = blob;
                    let tree = TarTree::unpack(&mut blob, true, &ReadLimits::default())?;
                    // The end of the blob is where its digest is checked.
                    std::io::copy(&mut blob, &mut std::io::sink()).map_err(UnpackError::Spool)?;
                    Ok::<_, UnpackError>(tree)
                })
                .await?;
                Layer::Tree(
                    unpacked
                        .map_err(|e| wrong(format!("failed to extract layer contents from artifact: {e}")))?,
                )
            }
            LayerOperation::Copy => {
                let copied = blocking(move || {
                    let mut blob = blob;
                    let mut file = tempfile::tempfile()?;
                    std::io::copy(&mut blob, &mut file)?;
                    std::io::Seek::rewind(&mut file)?;
                    Ok::<_, std::io::Error>(file)
                })
                .await?;
                Layer::Bytes(copied.map_err(|e| wrong(format!("failed to copy layer from artifact: {e}")))?)
            }
        };
        Ok(Content { annotations: manifest.annotations.clone(), layer })
    }

    async fn store_artifact(&self, pass: &mut Pass<OCIRepository>, work: Work) -> Result<(), Failure> {
        let Work { revision, digest, content } = work;
        let Some(Content { annotations, layer }) = content else {
            let message = format!("artifact up-to-date with remote revision: '{revision}'");
            pass.log.info(&message);
            pass.event(EventKind::Trace, "ArtifactUpToDate", &message);
            stored(pass, &revision);
            return Ok(());
        };
        let at = storage::location(&pass.object)?;
        let (disk, ignore) = (self.store.clone(), pass.object.spec.ignore.clone());
        let file = format!("{digest}.tar.gz");
        let (place, name) = (at.clone(), file.clone());
        let published = blocking(move || match layer {
            Layer::Tree(mut tree) => disk
                .publish_tree(&place, &name, |tar| write_archive(&mut tree, ignore.as_deref(), tar))
                .map_err(|e| format!("unable to archive artifact to storage: {e}")),
            Layer::Bytes(mut bytes) => disk
                .publish(&place, &name, |out| {
                    std::io::copy(&mut bytes, out)
                        .map(drop)
                        .map_err(|source| ArchiveError::Read { path: name.clone(), source })
                })
                .map_err(|e| format!("unable to copy artifact to storage: {e}")),
        })
        .await?;
        let published = published.map_err(|message| {
            let failure = Failure::retry(reasons::source::ARCHIVE_OPERATION_FAILED, message);
            failed(pass, types::STORAGE_OPERATION_FAILED, failure)
        })?;
        let mut artifact = storage::artifact(published, &revision);
        artifact.metadata = Some(annotations).filter(|a| !a.is_empty());
        let spec = pass.object.spec.clone();
        let status = pass.object.status.get_or_insert_default();
        status.artifact = Some(artifact);
        status.observed_ignore = spec.ignore;
        status.observed_layer_selector = spec.layer_selector;
        let disk = self.store.clone();
        match blocking(move || disk.link(&at, &file, LATEST)).await? {
            Ok(url) => pass.object.status.get_or_insert_default().url = Some(url),
            Err(error) => {
                let message = format!("failed to update status URL symlink: {}", storage::chain(&error));
                pass.event(EventKind::Trace, reasons::source::SYMLINK_UPDATE_FAILED, &message);
            }
        }
        pass.object.remove_condition(types::STORAGE_OPERATION_FAILED);
        stored(pass, &revision);
        Ok(())
    }
}

fn stored(pass: &mut Pass<OCIRepository>, revision: &str) {
    pass.object.remove_condition(types::ARTIFACT_OUTDATED);
    let message = format!("stored artifact for digest '{revision}'");
    pass.object.mark_true(types::ARTIFACT_IN_STORAGE, reasons::SUCCEEDED, &message);
}

fn pull_failed(pass: &mut Pass<OCIRepository>, message: String) -> Failure {
    failed(pass, types::FETCH_FAILED, Failure::retry(reasons::source::OCI_ARTIFACT_PULL_FAILED, message))
}

/// The message of a new artifact, with where it came from when the image says so.
fn announcement(object: &OCIRepository) -> String {
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

/// Which tag or digest the spec means right now.
async fn reference(object: &OCIRepository, registry: &dyn OciRegistry) -> Result<Reference, Failure> {
    let url = &object.spec.url;
    let invalid = |problem: String| {
        let message = format!("URL validation failed for '{url}': {problem}");
        Failure::stall(reasons::source::URL_INVALID, message)
    };
    let undetermined = |problem: String| {
        let message = format!("failed to determine the artifact tag for '{url}': {problem}");
        Failure::retry(reasons::source::READ_OPERATION_FAILED, message)
    };
    let unresolved = |problem: String| {
        let message = format!("failed to determine artifact digest: {problem}");
        Failure::retry(reasons::source::OCI_ARTIFACT_PULL_FAILED, message)
    };
    let Some(name) = url.strip_prefix("oci://") else {
        return Err(invalid("URL must be in format 'oci://<domain>/<org>/<repo>'".to_owned()));
    };
    // Registries take a slash at the end away.
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

/// What is wrong with a digest, in the words of the registry client that Flux uses.
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

impl Reconciler for OciRepositories {
    type Object = OCIRepository;

    fn names(&self) -> Names {
        Names {
            controller: "ocirepository",
            component: "source-controller",
            field_manager: "source-controller",
        }
    }

    fn owned_conditions(&self) -> &'static [&'static str] {
        conclude::CONDITIONS
    }

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

    async fn reconcile(&self, pass: &mut Pass<OCIRepository>) -> Outcome {
        let result = self.run(pass).await;
        conclude::conclude(pass, &result.into())
    }

    async fn delete(&self, pass: &mut Pass<OCIRepository>) -> Result<(), Outcome> {
        storage::remove(pass, &self.store).await
    }

    fn finish(&self, pass: &mut Pass<OCIRepository>, end: End, _outcome: &mut Outcome) {
        conclude::finish(pass, end);
    }
}
