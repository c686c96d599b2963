//! Artifacts that are kept in memory.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fl_api::meta::artifact::Artifact;
use fl_http::Owner;
use fl_runtime::{ArtifactError, ArtifactFetcher};
use tokio::time::Instant;

use super::ArtifactFiles;

/// Artifacts that stay in memory for the next Kustomization of the same source.
const CACHE_SIZE: usize = 8;
const CACHE_TTL: Duration = Duration::from_secs(60);
/// Larger artifacts are not kept.
const MAX_CACHED_BYTES: u64 = 64 << 20;

/// The files of recent artifacts by digest: many Kustomizations build from one source.
pub(crate) struct ArtifactCache {
    fetcher: ArtifactFetcher,
    kept: Mutex<Vec<(String, Instant, Entry)>>,
}

/// Locked while the files are read: concurrent readers of the same artifact wait instead of reading it again.
type Entry = Arc<tokio::sync::Mutex<Option<Arc<ArtifactFiles>>>>;

impl ArtifactCache {
    pub(crate) fn new(fetcher: ArtifactFetcher) -> Self {
        ArtifactCache { fetcher, kept: Mutex::default() }
    }

    /// The files of an artifact, checked by its digest.
    pub(crate) async fn open(
        &self,
        artifact: &Artifact,
        owner: &Owner,
    ) -> Result<Arc<ArtifactFiles>, ArtifactError> {
        let digest = artifact.digest.as_ref().ok_or(ArtifactError::NoDigest)?.to_string();
        // A server that does not answer must not delay the same content from another address.
        let entry = self.entry(&format!("{digest} {}", artifact.url));
        let mut kept = entry.lock().await;
        if let Some(tree) = &*kept {
            return Ok(tree.clone());
        }
        let tree = self.read(artifact, owner, &digest).await?;
        if tree.size() <= MAX_CACHED_BYTES {
            *kept = Some(tree.clone());
        }
        Ok(tree)
    }

    fn entry(&self, id: &str) -> Entry {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(known, used, _)| known == id || used.elapsed() < CACHE_TTL);
        if let Some((_, used, entry)) = kept.iter_mut().find(|(known, _, _)| known == id) {
            *used = Instant::now();
            return entry.clone();
        }
        if kept.len() >= CACHE_SIZE {
            kept.remove(0);
        }
        let entry = Entry::default();
        kept.push((id.to_owned(), Instant::now(), entry.clone()));
        entry
    }

    async fn read(
        &self,
        artifact: &Artifact,
        owner: &Owner,
        digest: &str,
    ) -> Result<Arc<ArtifactFiles>, ArtifactError> {
        let file = self.fetcher.open(artifact, owner).await?;
        let name = blake3::hash(format!("{digest} {}", artifact.revision).as_bytes()).to_hex();
        let root = std::env::temp_dir().join(format!("kustomization-{}", &name[..10]));
        let tree = tokio::task::spawn_blocking(move || ArtifactFiles::read(root, file.into_file()))
            .await
            .map_err(io::Error::other)?
            .map_err(|e| ArtifactError::Extract(e.to_string()))?;
        Ok(Arc::new(tree))
    }
}
