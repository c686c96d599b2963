//! The artifact of the source that a Kustomization refers to.

use fl_api::Resource as _;
use fl_api::kustomize::Kustomization;
use fl_api::meta::artifact::Artifact;
use fl_api::source::ExternalArtifact;
use fl_runtime::{Reconciled as _, ResolveError, Resolver};

use crate::validate::source_reference;

/// Why there is no artifact to build.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SourceError {
    /// The source does not exist.
    #[error("{kind}.{group} \"{name}\" not found")]
    NotFound { kind: String, group: String, name: String },
    /// The source may not be used.
    #[error("{0}")]
    Denied(String),
    /// The source has published no artifact yet.
    #[error("Source artifact not found")]
    NoArtifact,
    /// The source could not be read.
    #[error(transparent)]
    Unavailable(ResolveError),
}

/// Resolves `spec.sourceRef` to the artifact that the source published last.
pub(crate) async fn source(object: &Kustomization, resolver: &Resolver) -> Result<Artifact, SourceError> {
    let reference = source_reference(object);
    let own = object.namespace();
    match resolver.resolve(&reference, own).await {
        Ok(source) => source.artifact.ok_or(SourceError::NoArtifact),
        Err(ResolveError::NotFound(_)) => {
            let key = Resolver::key(&reference, own);
            let (kind, group, name) = (key.kind().to_owned(), key.group().to_owned(), key.name().to_owned());
            Err(SourceError::NotFound { kind, group, name })
        }
        Err(error @ ResolveError::AccessDenied(_)) => Err(SourceError::Denied(error.to_string())),
        Err(ResolveError::GateClosed(_)) => {
            let (kind, namespace) = (ExternalArtifact::KIND, reference.namespace_or(own));
            let text = format!(
                "can't access '{kind}/{namespace}/{}', {kind} feature gate is disabled",
                reference.name
            );
            Err(SourceError::Denied(text))
        }
        Err(error) => Err(SourceError::Unavailable(error)),
    }
}
