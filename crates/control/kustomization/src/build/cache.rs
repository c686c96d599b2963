//! The last build of each Kustomization and the files it read: a commit that changes none of them needs no build. A build with
//! remote bases is repeated each time.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use fl_runtime::{Key, KnownSecrets};
use fl_types::Secret;
use serde_json::Value;

use super::ArtifactFiles;

type ContentHash = Option<[u8; 32]>;

/// The result of a build.
#[derive(Debug)]
pub(crate) struct Built {
    pub(crate) objects: Vec<Value>,
    /// The digest of the YAML of all objects; identifies the build in the history.
    pub(crate) digest: String,
    /// Every path that the build read, relative to the root, and a hash of its content.
    reads: Vec<(PathBuf, ContentHash)>,
    /// Whether remote bases were fetched.
    remote: bool,
    /// What expressions such as `${x:0:5}` made of secret variables.
    derived_secrets: Secret<BTreeSet<String>>,
}

impl Built {
    pub(crate) fn new(
        objects: Vec<Value>,
        digest: String,
        tree: &ArtifactFiles,
        reads: impl IntoIterator<Item = PathBuf>,
        remote: bool,
    ) -> Self {
        let mut relative: Vec<PathBuf> =
            reads.into_iter().filter_map(|p| p.strip_prefix(tree.root()).ok().map(Path::to_owned)).collect();
        relative.sort();
        relative.dedup();
        let reads = relative.into_iter().map(|path| (path.clone(), tree.hash(&path))).collect();
        Built { objects, digest, reads, remote, derived_secrets: Secret::default() }
    }

    pub(crate) fn with_derived_secrets(mut self, derived: Secret<BTreeSet<String>>) -> Self {
        self.derived_secrets = derived;
        self
    }

    /// Masks what expressions made of secret variables, for a reconcile that uses this build again.
    pub(crate) fn mask_derived_secrets(&self, secrets: &KnownSecrets) {
        self.derived_secrets.expose().iter().for_each(|text| secrets.learn_text(text));
    }

    fn holds_for(&self, tree: &ArtifactFiles) -> bool {
        !self.remote && self.reads.iter().all(|(path, hash)| tree.hash(path) == *hash)
    }
}

/// The last build of each Kustomization.
#[derive(Debug, Default)]
pub(crate) struct BuildCache {
    builds: Mutex<HashMap<Key, CachedBuild>>,
}

#[derive(Debug)]
struct CachedBuild {
    /// Spec and variables.
    inputs: [u8; 32],
    artifact: String,
    built: Arc<Built>,
}

impl BuildCache {
    /// The last build, when the artifact and the inputs are those it was made from. No files are needed to know.
    pub(crate) fn same_artifact(&self, key: &Key, inputs: &[u8; 32], artifact: &str) -> Option<Arc<Built>> {
        let builds = self.builds.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = builds.get(key)?;
        let same = kept.inputs == *inputs && kept.artifact == artifact && !artifact.is_empty();
        (same && !kept.built.remote).then(|| kept.built.clone())
    }

    /// The last build, when nothing it read has changed.
    pub(crate) fn same_files(
        &self,
        key: &Key,
        inputs: &[u8; 32],
        artifact: &str,
        tree: &ArtifactFiles,
    ) -> Option<Arc<Built>> {
        let mut builds = self.builds.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = builds.get_mut(key)?;
        if kept.inputs != *inputs || !kept.built.holds_for(tree) {
            return None;
        }
        artifact.clone_into(&mut kept.artifact);
        Some(kept.built.clone())
    }

    pub(crate) fn keep(&self, key: &Key, inputs: [u8; 32], artifact: &str, built: Arc<Built>) {
        let mut builds = self.builds.lock().unwrap_or_else(PoisonError::into_inner);
        builds.insert(key.clone(), CachedBuild { inputs, artifact: artifact.to_owned(), built });
    }

    pub(crate) fn forget(&self, key: &Key) {
        self.builds.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}
