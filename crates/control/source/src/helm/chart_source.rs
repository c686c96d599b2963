//! The source of a HelmChart: a repository, or the artifact of another source.

use fl_api::condition::types;
use fl_api::meta::artifact::Artifact;
use fl_api::source::{Bucket, GitRepository, HelmChart, HelmRepository};
use fl_artifact_store::Store;
use fl_runtime::{
    ClientError, Conditions, Context, EventKind, Kind, ReconcileError, Reconciled, Resolver, Source,
    WatchSpec,
};
use fl_types::ObjectReference;

use super::auth::is_oci;
use crate::storage::blocking;

/// Where a chart comes from.
pub(super) enum ChartSource {
    Repository(Box<HelmRepository>),
    /// A tree of files.
    Tree(Artifact),
}

/// Finds the source and records its revision.
pub(super) async fn find(
    cx: &mut Context<HelmChart>,
    store: &Store,
    resolver: &Resolver,
) -> Result<ChartSource, ReconcileError> {
    let reference = cx.object.spec.source_ref.clone();
    let namespace = cx.object.namespace().to_owned();
    let own = reference
        .api_version
        .as_deref()
        .is_none_or(|v| v.is_empty() || v.starts_with("source.toolkit.fluxcd.io/"));
    let found = match reference.kind.as_str() {
        "HelmRepository" if own => {
            let found = source_object::<HelmRepository>(cx, &namespace, &reference.name).await;
            found.map(|repository| {
                let artifact = repository.artifact().cloned();
                (artifact, Some(repository))
            })
        }
        "GitRepository" if own => {
            let found = source_object::<GitRepository>(cx, &namespace, &reference.name).await;
            found.map(|source| (source.artifact().cloned(), None))
        }
        "Bucket" if own => {
            let found = source_object::<Bucket>(cx, &namespace, &reference.name).await;
            found.map(|source| (source.artifact().cloned(), None))
        }
        _ => return foreign_source(cx, resolver).await,
    };
    let (artifact, repository) = match found {
        Ok(found) => found,
        Err(error) => {
            return Err(unavailable(&error));
        }
    };
    let in_store = match &artifact {
        Some(artifact) => is_stored(store, artifact).await,
        None => false,
    };
    let needs_none = repository.as_ref().is_some_and(is_oci);
    if !in_store && !needs_none {
        return Err(no_artifact(&cx.object));
    }
    if let Some(artifact) = &artifact {
        let status = cx.object.status.get_or_insert_default();
        status.observed_source_artifact_revision = Some(artifact.revision.clone());
    }
    Ok(match (repository, artifact) {
        (Some(repository), _) => ChartSource::Repository(Box::new(repository)),
        (None, Some(artifact)) => ChartSource::Tree(artifact),
        (None, None) => return Err(no_artifact(&cx.object)),
    })
}

/// A source of another API group, or an ExternalArtifact.
async fn foreign_source(
    cx: &mut Context<HelmChart>,
    resolver: &Resolver,
) -> Result<ChartSource, ReconcileError> {
    let reference = cx.object.spec.source_ref.clone();
    let unsupported =
        reference.api_version.as_deref().is_none_or(str::is_empty) && reference.kind != "ExternalArtifact";
    if unsupported {
        let message = format!(
            "failed to get source: unsupported source kind '{}', must be one of: [HelmRepository GitRepository Bucket]",
            reference.kind
        );
        cx.object.mark_true(types::FETCH_FAILED, "SourceUnavailable", &message);
        return Err(ReconcileError::stalled("UnsupportedSourceKind", message));
    }
    let object = ObjectReference {
        api_version: reference.api_version.clone(),
        kind: reference.kind.clone(),
        name: reference.name.clone(),
        namespace: None,
    };
    let namespace = cx.object.namespace().to_owned();
    match resolver.resolve(&object, &namespace).await {
        Ok(found) => match found.artifact {
            Some(artifact) => {
                let status = cx.object.status.get_or_insert_default();
                status.observed_source_artifact_revision = Some(artifact.revision.clone());
                Ok(ChartSource::Tree(artifact))
            }
            None => Err(no_artifact(&cx.object)),
        },
        Err(error) => Err(unavailable(&error)),
    }
}

/// Whether the file of an artifact is in storage.
async fn is_stored(store: &Store, artifact: &Artifact) -> bool {
    let (store, path) = (store.clone(), artifact.path.clone());
    let exists = move || store.file(&path).is_ok_and(|file| file.exists());
    blocking(exists).await.unwrap_or(false)
}

fn unavailable(error: &dyn std::fmt::Display) -> ReconcileError {
    ReconcileError::backoff("SourceUnavailable", format!("failed to get source: {error}"))
        .on(types::FETCH_FAILED)
}

fn no_artifact(object: &HelmChart) -> ReconcileError {
    let reference = &object.spec.source_ref;
    let message = format!("no artifact available for {} source '{}'", reference.kind, reference.name);
    ReconcileError::backoff("NoSourceArtifact", message).with_event(EventKind::Trace).on(types::FETCH_FAILED)
}

/// A source from the cache, or from the API server where the cache does not have it (yet).
async fn source_object<T: fl_api::Resource + serde::de::DeserializeOwned>(
    cx: &Context<HelmChart>,
    namespace: &str,
    name: &str,
) -> Result<T, ClientError> {
    let kind = Kind::of::<T>();
    let known = cx.runtime.informers().watch(WatchSpec::full(kind.clone())).get(namespace, name);
    if let Some(object) = known.and_then(|live| live.parse::<T>().ok()) {
        return Ok(object);
    }
    let found = cx.cluster().get_as::<T>(&kind, Some(namespace), name).await;
    found.map_err(|error| if error.is_not_found() { ClientError::absent(&kind, name) } else { error })
}
