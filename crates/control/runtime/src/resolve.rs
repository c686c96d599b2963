//! From a reference to an artifact. One library for every consumer, so that all references behave the same.
//!
//! A consumer may name a built-in source, an `ExternalArtifact`, an Open Flux `Artifact`, or any other kind with its
//! `apiVersion`. The last is found through the artifacts it owns: the foreign object itself is never read, so the engine
//! needs no rights on it and no types of it.

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
use crate::hub::{Live, News, Store, WatchSpec};
use crate::lockdown::AccessDenied;
use crate::runtime::Runtime;
use fl_client::Error as ClientError;
use fl_client::{Key, Kind};

/// How much later than its consumer a source may be seen.
const LATE: Duration = Duration::from_millis(50);

/// Why a reference leads nowhere.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// Lock-down forbids it.
    #[error(transparent)]
    AccessDenied(#[from] AccessDenied),
    /// The kind needs a feature gate.
    #[error("kind '{0}' is not supported: the feature gate ExternalArtifact is off")]
    GateClosed(String),
    /// No such object.
    #[error("{0}")]
    NotFound(ClientError),
    /// Nobody could be asked.
    #[error("{0}")]
    Unavailable(ClientError),
    /// A foreign kind that owns no artifact.
    #[error("no artifact resource found for {0}")]
    NoArtifactResource(Key),
    /// A foreign kind that owns several.
    #[error("multiple artifacts found for {0}")]
    Ambiguous(Key),
    /// Neither a kind of ours nor one with an `apiVersion`.
    #[error("kind '{0}' is not supported without an apiVersion")]
    UnknownKind(String),
    /// An artifact that makes no sense.
    #[error("{0}")]
    Malformed(String),
}

/// What a reference led to.
#[derive(Clone, Debug)]
pub struct ResolvedSource {
    /// The object whose artifact it is (for a foreign kind: the artifact's own object).
    pub object: Arc<Live>,
    /// The key the reference named.
    pub key: Key,
    /// `None`: the source is there, but has published nothing yet.
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

/// Resolves references with the watches of a runtime.
#[derive(Clone, Debug)]
pub struct Resolver {
    runtime: Runtime,
    /// Whether consumers of this resolver may use ExternalArtifacts at all (a gate of Flux's).
    external_artifacts: bool,
}

impl Resolver {
    /// Opens the watches that references can lead to.
    pub fn new(runtime: &Runtime) -> Self {
        for kind in built_in() {
            runtime.hub().watch(WatchSpec::full(kind));
        }
        let external_artifacts = runtime.options().gates.enabled("ExternalArtifact");
        Resolver { runtime: runtime.clone(), external_artifacts }
    }

    fn openflux(&self) -> Arc<Store> {
        // Opened with the first reference that needs it: few clusters have this kind.
        self.runtime.hub().watch(WatchSpec::full(Kind::of::<openflux::Artifact>()))
    }

    /// The key a reference names, seen from an object in `own`.
    pub fn key(reference: &ObjectReference, own: &str) -> Key {
        let group = match reference.api_version.as_deref().filter(|v| !v.is_empty()) {
            Some(api_version) => api_group(api_version),
            None => GitRepository::GROUP,
        };
        Key::new(group, &reference.kind, reference.namespace_or(own), &reference.name)
    }

    /// The edge a reference puts into the graph.
    pub fn edge(reference: &ObjectReference, own: &str) -> Edge {
        Edge::artifact(Self::key(reference, own))
    }

    /// Whether lock-down lets an object in `own` use a reference.
    pub fn allowed(&self, reference: &ObjectReference, own: &str) -> Result<(), ResolveError> {
        let lockdown = self.runtime.options().lockdown();
        let namespace = reference.namespace_or(own);
        Ok(lockdown.check_reference(own, &reference.kind, namespace, &reference.name)?)
    }

    /// Ends when the source publishes something else than this artifact. Whoever fetches it stops then: the address may belong
    /// to an engine that is gone.
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

    /// Hears when what a reference leads to may have changed.
    pub fn news(&self, reference: &ObjectReference, own: &str) -> News {
        let key = Self::key(reference, own);
        let full = |kind| self.runtime.hub().watch(WatchSpec::full(kind));
        let mut stores = Vec::new();
        if key.group() == GitRepository::GROUP {
            stores.extend(built_in().into_iter().find(|kind| kind.kind() == key.kind()).map(full));
        } else {
            stores.push(self.openflux());
            // A foreign kind may publish in either form.
            let foreign = key.group() != openflux::Artifact::GROUP || key.kind() != openflux::Artifact::KIND;
            if foreign && self.external_artifacts {
                stores.push(full(Kind::of::<ExternalArtifact>()));
            }
        }
        News::of(stores.iter().map(AsRef::as_ref))
    }

    /// Follows a reference from an object in namespace `own`.
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

    /// One object: from the watch, or from the server while the watch has not seen everything yet.
    async fn look(&self, kind: &Kind, key: &Key) -> Result<Arc<Live>, ResolveError> {
        let store = self.runtime.hub().watch(WatchSpec::full(kind.clone()));
        // Absent from a watch may only mean that it is late: a reference is often applied together with what it names. A moment
        // spent here saves each of many consumers a request.
        if let Some(live) = store.soon(key.namespace(), key.name(), LATE).await {
            return Ok(live);
        }
        match self.runtime.cluster().get(kind, Some(key.namespace()), key.name()).await {
            Ok(value) => Live::new(kind, value, true)
                .map(Arc::new)
                .map_err(|e| ResolveError::Malformed(format!("{key}: {e}"))),
            Err(error) if error.is_not_found() => {
                Err(ResolveError::NotFound(ClientError::absent(kind, key.name())))
            }
            Err(error) => Err(ResolveError::Unavailable(error)),
        }
    }

    /// A kind we know nothing about: what it owns tells.
    async fn foreign(&self, key: Key) -> Result<ResolvedSource, ResolveError> {
        let store = self.openflux();
        store.wait_synced().await;
        let mut found: Vec<(Arc<Live>, bool, Artifact)> = Vec::new();
        for live in store.list(Some(key.namespace())) {
            if let Some(controller) = owned_by(&live, &key) {
                let artifact = spec_artifact(&live)?;
                found.push((live, controller, artifact));
            }
        }
        if self.external_artifacts {
            let external = self.runtime.hub().watch(WatchSpec::full(Kind::of::<ExternalArtifact>()));
            for live in external.list(Some(key.namespace())) {
                let controller = owned_by(&live, &key).or_else(|| names_source(&live, &key).then_some(false));
                if let Some(controller) = controller
                    && let Some(artifact) = status_artifact(&live)?
                {
                    found.push((live, controller, artifact));
                }
            }
        }
        // During a rename there may be two; the one whose owner manages it is meant.
        if found.len() > 1 && found.iter().filter(|f| f.1).count() == 1 {
            found.retain(|f| f.1);
        }
        // The same content published in both forms is no contradiction.
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

/// Whether an object has this owner, and whether the owner manages it.
fn owned_by(live: &Live, key: &Key) -> Option<bool> {
    let owners = live.meta().owner_references.iter().flatten();
    owners
        .filter(|o| api_group(&o.api_version) == key.group() && o.kind == key.kind() && o.name == key.name())
        .map(|o| o.controller.unwrap_or_default())
        .reduce(|a, b| a || b)
}

fn names_source(live: &Live, key: &Key) -> bool {
    let value = live.value();
    let source = &value["spec"]["sourceRef"];
    let text = |field: &str| source[field].as_str().unwrap_or_default();
    let namespace = source["namespace"].as_str().unwrap_or(live.namespace());
    (api_group(text("apiVersion")), text("kind"), namespace, text("name"))
        == (key.group(), key.kind(), key.namespace(), key.name())
}

/// The part of a source that its consumers read.
#[derive(Deserialize)]
struct Published {
    status: PublishedStatus,
}

#[derive(Deserialize)]
struct PublishedStatus {
    artifact: Artifact,
}

fn status_artifact(live: &Live) -> Result<Option<Artifact>, ResolveError> {
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

/// The data of an Open Flux artifact is in its spec; there is no path.
fn spec_artifact(live: &Live) -> Result<Artifact, ResolveError> {
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
