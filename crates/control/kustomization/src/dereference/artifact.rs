//! The files of an artifact.

use std::sync::Arc;
use std::time::Duration;

use fl_api::meta::artifact::Artifact;
use fl_http::Owner;
use fl_runtime::{ArtifactError, ArtifactFetcher, Resolver};
use fl_types::ObjectReference;
use tokio::time::Instant;

use crate::build::{ArtifactCache, ArtifactFiles};

/// How long after its start the engine waits for artifacts that it does not find: its sources publish them again.
const REPUBLISH_TIMEOUT: Duration = Duration::from_secs(10);

/// How often an artifact is looked for again without a change of its source. An artifact that is published again within
/// the second of the first publication has the same status, so no change is seen.
const REOPEN_INTERVAL: Duration = Duration::from_secs(1);

/// Why the files of an artifact cannot be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    /// The source published another artifact, or at another address, meanwhile.
    #[error("the source has a newer artifact")]
    Superseded,
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
}

/// Opens the artifacts of sources.
pub(crate) struct ArtifactOpener {
    resolver: Resolver,
    cache: ArtifactCache,
    started: Instant,
}

impl ArtifactOpener {
    pub(crate) fn new(resolver: Resolver, artifacts: ArtifactFetcher) -> Self {
        ArtifactOpener { resolver, cache: ArtifactCache::new(artifacts), started: Instant::now() }
    }

    /// The files of an artifact of `source`, seen from the namespace `own`. Ends early when the source has moved on: the
    /// address may be that of a process that no longer exists.
    pub(crate) async fn open(
        &self,
        artifact: &Artifact,
        source: &ObjectReference,
        own: &str,
    ) -> Result<Arc<ArtifactFiles>, OpenError> {
        tokio::select! {
            biased;
            opened = self.open_or_wait(artifact, source, own) => Ok(opened?),
            () = self.resolver.moved(source, own, artifact) => Err(OpenError::Superseded),
        }
    }

    /// Waits for a file that is not there yet instead of failing: a process that has just started may have lost what its
    /// sources published, and a source that packs the same revision anew replaces the file before its status has the
    /// new digest.
    async fn open_or_wait(
        &self,
        artifact: &Artifact,
        source: &ObjectReference,
        own: &str,
    ) -> Result<Arc<ArtifactFiles>, ArtifactError> {
        let mut changes = self.resolver.news(source, own);
        let owner = Owner::namespace(source.namespace_or(own));
        let first = self.cache.open(artifact, &owner).await;
        let until = match &first {
            Err(ArtifactError::NotFound) => self.started + REPUBLISH_TIMEOUT,
            Err(ArtifactError::Digest { .. }) => Instant::now() + fl_runtime::STATUS_FOLLOWS,
            _ => return first,
        };
        if Instant::now() >= until {
            return first;
        }
        fl_runtime::without_permit(async {
            loop {
                let _ = tokio::time::timeout(REOPEN_INTERVAL, changes.heard()).await;
                let opened = self.cache.open(artifact, &owner).await;
                let pending = matches!(opened, Err(ArtifactError::NotFound | ArtifactError::Digest { .. }));
                if !pending || Instant::now() >= until {
                    return opened;
                }
            }
        })
        .await
    }
}
