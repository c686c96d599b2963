//! Resolves source references to artifacts, in the same way for every consumer.
//!
//! A consumer may refer to a built-in source, an `ExternalArtifact`, an Open Flux `Artifact`, or any other
//! kind with its `apiVersion`. The latter is resolved through the artifacts it owns: the foreign object
//! itself is never read, so the engine needs neither permissions nor types for it.

use std::sync::Arc;
use std::time::Duration;

use fl_api::Resource as _;
use fl_api::meta::artifact::Artifact;
use fl_api::openflux;
use fl_api::source::{Bucket, ExternalArtifact, GitRepository, HelmChart, HelmRepository, OCIRepository};
use fl_types::{ObjectReference, api_group};
use serde::Deserialize;
use serde_json::Value;

use crate::graph::Edge;
use crate::informer::{CachedObject, ChangeStream, Store, WatchSpec};
use crate::lockdown::AccessDenied;
use crate::runtime::Runtime;
use fl_client::Error as ClientError;
use fl_client::{Key, Kind};

/// How long a missing source is waited for: source and consumer are often created together.
const LATE: Duration = Duration::from_millis(50);

/// Why a reference cannot be resolved.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// Lock-down forbids it.
    #[error(transparent)]
    AccessDenied(#[from] AccessDenied),
    /// The kind needs a feature gate.
    #[error("kind '{0}' is not supported: the feature gate ExternalArtifact is off")]
    GateClosed(String),
    /// The object does not exist.
    #[error("{0}")]
    NotFound(ClientError),
    /// The API server did not answer.
    #[error("{0}")]
    Unavailable(ClientError),
    /// A foreign kind that owns no artifact.
    #[error("no artifact resource found for {0}")]
    NoArtifactResource(Key),
    /// A foreign kind that owns several.
    #[error("multiple artifacts found for {0}")]
    Ambiguous(Key),
    /// Neither a built-in kind nor one with an `apiVersion`.
    #[error("kind '{0}' is not supported without an apiVersion")]
    UnknownKind(String),
    /// An invalid artifact.
    #[error("{0}")]
    Malformed(String),
}

/// A resolved reference.
#[derive(Clone, Debug)]
pub struct ResolvedSource {
    /// The object that publishes the artifact (for a foreign kind: the artifact object).
    pub object: Arc<CachedObject>,
    /// The key of the referenced object.
    pub key: Key,
    /// `None`: the source exists, but has published nothing yet.
    pub artifact: Option<Artifact>,
}

/// The kinds that report their artifact in `status.artifact`.
fn built_in() -> [Kind; 6] {
    [
        Kind::of::<GitRepository>(),
        Kind::of::<OCIRepository>(),
        Kind::of::<Bucket>(),
        Kind::of::<HelmRepository>(),
        Kind::of::<HelmChart>(),
        Kind::of::<ExternalArtifact>(),
    ]
}

/// Resolves references from the caches of a runtime.
#[derive(Clone, Debug)]
pub struct Resolver {
    runtime: Runtime,
    /// Whether consumers of this resolver may use ExternalArtifacts at all (a gate of Flux's).
    external_artifacts: bool,
}

impl Resolver {
    /// Opens the watches of the kinds that references can name.
    pub fn new(runtime: &Runtime) -> Self {
        for kind in built_in() {
            runtime.informers().watch(WatchSpec::full(kind));
        }
        let external_artifacts = runtime.options().gates.enabled("ExternalArtifact");
        Resolver { runtime: runtime.clone(), external_artifacts }
    }

    fn openflux(&self) -> Arc<Store> {
        // Opened with the first reference to it: few clusters have this kind.
        self.runtime.informers().watch(WatchSpec::full(Kind::of::<openflux::Artifact>()))
    }

    /// The key of a reference of an object in namespace `own`.
    pub fn key(reference: &ObjectReference, own: &str) -> Key {
        let group = match reference.api_version.as_deref().filter(|v| !v.is_empty()) {
            Some(api_version) => api_group(api_version),
            None => GitRepository::GROUP,
        };
        Key::new(group, &reference.kind, reference.namespace_or(own), &reference.name)
    }

    /// The graph edge of a reference.
    pub fn edge(reference: &ObjectReference, own: &str) -> Edge {
        Edge::artifact(Self::key(reference, own))
    }

    /// Whether lock-down permits a reference of an object in namespace `own`.
    pub fn allowed(&self, reference: &ObjectReference, own: &str) -> Result<(), ResolveError> {
        let lockdown = self.runtime.options().lockdown();
        let namespace = reference.namespace_or(own);
        Ok(lockdown.check_reference(own, &reference.kind, namespace, &reference.name)?)
    }

    /// Returns when the source publishes another artifact than this one. A fetch is aborted then: the URL may
    /// belong to an engine that no longer exists.
    pub async fn moved(&self, reference: &ObjectReference, own: &str, artifact: &Artifact) {
        let mut news = self.news(reference, own);
        loop {
            if let Ok(ResolvedSource { artifact: Some(newest), .. }) = self.resolve(reference, own).await
                && (newest.url != artifact.url
                    || newest.digest != artifact.digest
                    || newest.revision != artifact.revision)
            {
                return;
            }
            news.heard().await;
        }
    }

    /// Subscribes to changes of what a reference resolves to.
    pub fn news(&self, reference: &ObjectReference, own: &str) -> ChangeStream {
        let key = Self::key(reference, own);
        let full = |kind| self.runtime.informers().watch(WatchSpec::full(kind));
        let mut stores = Vec::new();
        if key.group() == GitRepository::GROUP {
            stores.extend(built_in().into_iter().find(|kind| kind.kind() == key.kind()).map(full));
        } else {
            stores.push(self.openflux());
            // A foreign kind may publish either kind of artifact.
            let foreign = key.group() != openflux::Artifact::GROUP || key.kind() != openflux::Artifact::KIND;
            if foreign && self.external_artifacts {
                stores.push(full(Kind::of::<ExternalArtifact>()));
            }
        }
        ChangeStream::of(stores.iter().map(AsRef::as_ref))
    }

    /// Resolves a reference of an object in namespace `own`.
    pub async fn resolve(
        &self,
        reference: &ObjectReference,
        own: &str,
    ) -> Result<ResolvedSource, ResolveError> {
        self.allowed(reference, own)?;
        let key = Self::key(reference, own);
        if key.group() == GitRepository::GROUP {
            let known = built_in().into_iter().find(|k| k.kind() == key.kind());
            let Some(kind) = known else { return Err(ResolveError::UnknownKind(reference.kind.clone())) };
            if kind.kind() == ExternalArtifact::KIND && !self.external_artifacts {
                return Err(ResolveError::GateClosed(reference.kind.clone()));
            }
            let object = self.look(&kind, &key).await?;
            let artifact = status_artifact(&object)?;
            return Ok(ResolvedSource { object, key, artifact });
        }
        if key.group() == openflux::Artifact::GROUP && key.kind() == openflux::Artifact::KIND {
            let object = self.look(&Kind::of::<openflux::Artifact>(), &key).await?;
            let artifact = Some(spec_artifact(&object)?);
            return Ok(ResolvedSource { object, key, artifact });
        }
        self.foreign(key).await
    }

    /// One object: from the cache, or from the API server while the cache has not synced.
    async fn look(&self, kind: &Kind, key: &Key) -> Result<Arc<CachedObject>, ResolveError> {
        let store = self.runtime.informers().watch(WatchSpec::full(kind.clone()));
        // Missing from the cache may only mean that the event is late: a reference is often applied together
        // with its target. Waiting a moment saves each of many consumers a request.
        if let Some(live) = store.soon(key.namespace(), key.name(), LATE).await {
            return Ok(live);
        }
        match self.runtime.cluster().get(kind, Some(key.namespace()), key.name()).await {
            Ok(value) => CachedObject::new(kind, value, true)
                .map(Arc::new)
                .map_err(|e| ResolveError::Malformed(format!("{key}: {e}"))),
            Err(error) if error.is_not_found() => {
                Err(ResolveError::NotFound(ClientError::absent(kind, key.name())))
            }
            Err(error) => Err(ResolveError::Unavailable(error)),
        }
    }

    /// A foreign kind: resolved by the artifacts it owns.
    async fn foreign(&self, key: Key) -> Result<ResolvedSource, ResolveError> {
        let store = self.openflux();
        store.wait_synced().await;
        let mut found: Vec<(Arc<CachedObject>, bool, Artifact)> = Vec::new();
        for live in store.list(Some(key.namespace())) {
            if let Some(controller) = owned_by(&live, &key) {
                let artifact = spec_artifact(&live)?;
                found.push((live, controller, artifact));
            }
        }
        if self.external_artifacts {
            let external = self.runtime.informers().watch(WatchSpec::full(Kind::of::<ExternalArtifact>()));
            for live in external.list(Some(key.namespace())) {
                let controller = owned_by(&live, &key).or_else(|| names_source(&live, &key).then_some(false));
                if let Some(controller) = controller
                    && let Some(artifact) = status_artifact(&live)?
                {
                    found.push((live, controller, artifact));
                }
            }
        }
        // During a rename there may be two; the one with a controller reference wins.
        if found.len() > 1 && found.iter().filter(|f| f.1).count() == 1 {
            found.retain(|f| f.1);
        }
        // The same content published as both kinds is not a conflict.
        if found.len() > 1
            && found.windows(2).all(|w| w[0].2.digest == w[1].2.digest && w[0].2.digest.is_some())
        {
            found.truncate(1);
        }
        match found.len() {
            0 => Err(ResolveError::NoArtifactResource(key)),
            1 => {
                let (object, _, artifact) = found.remove(0);
                Ok(ResolvedSource { object, key, artifact: Some(artifact) })
            }
            _ => Err(ResolveError::Ambiguous(key)),
        }
    }
}

/// Whether an object has this owner, and whether it is its controller.
fn owned_by(live: &CachedObject, key: &Key) -> Option<bool> {
    let owners = live.meta().owner_references.iter().flatten();
    owners
        .filter(|o| api_group(&o.api_version) == key.group() && o.kind == key.kind() && o.name == key.name())
        .map(|o| o.controller.unwrap_or_default())
        .reduce(|a, b| a || b)
}

fn names_source(live: &CachedObject, key: &Key) -> bool {
    let value = live.value();
    let source = &value["spec"]["sourceRef"];
    let text = |field: &str| source[field].as_str().unwrap_or_default();
    let namespace = source["namespace"].as_str().unwrap_or(live.namespace());
    (api_group(text("apiVersion")), text("kind"), namespace, text("name"))
        == (key.group(), key.kind(), key.namespace(), key.name())
}

/// The fields of a source that its consumers read.
#[derive(Deserialize)]
struct Published {
    status: PublishedStatus,
}

#[derive(Deserialize)]
struct PublishedStatus {
    artifact: Artifact,
}

fn status_artifact(live: &CachedObject) -> Result<Option<Artifact>, ResolveError> {
    if let Some(Published { status }) = live.parse_part() {
        return Ok(Some(status.artifact));
    }
    match live.value()["status"].get("artifact") {
        None | Some(Value::Null) => Ok(None),
        Some(artifact) => serde_json::from_value(artifact.clone()).map(Some).map_err(|e| {
            ResolveError::Malformed(format!("the artifact of {} cannot be read: {e}", live.key()))
        }),
    }
}

/// An Open Flux artifact has its data in the spec, and no path.
fn spec_artifact(live: &CachedObject) -> Result<Artifact, ResolveError> {
    let object: openflux::Artifact =
        live.parse().map_err(|e| ResolveError::Malformed(format!("{} cannot be read: {e}", live.key())))?;
    let spec = object.spec;
    Ok(Artifact {
        digest: spec.digest,
        last_update_time: spec.last_update_time,
        metadata: spec.metadata,
        path: String::new(),
        revision: spec.revision,
        size: spec.size,
        url: spec.url,
        checksum: None,
    })
}
