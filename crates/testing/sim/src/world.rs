//! Everything together.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fl_api::CrdSet;
use fl_apiserver::{ApiServer, User};
use fl_client::Settings;
use fl_runtime::log::{Encoding, Level, Log, configure};
use fl_runtime::{Client, ClientError, Kind, Options, Patch, Runtime, Stop, Write};
use fl_source::bucket::{BucketClient, Buckets, NetworkBucket};
use fl_source::git::{GitClient, GitRepositories, NetworkGit};
use fl_source::oci::{NetworkOci, OciClient, OciRepositories};
use fl_store::{Retention, Store, StoreOptions};
use serde_json::{Value, json};

use crate::{Faults, TwinBucket, TwinGit, TwinOci};

/// The namespace of a world's objects, where nothing else is said.
pub const NAMESPACE: &str = "default";
/// How long a test waits, on the paused clock.
const PATIENCE: Duration = Duration::from_secs(3600);

/// A cluster with controllers on it.
pub struct World {
    pub server: ApiServer,
    pub faults: Faults,
    pub git: TwinGit,
    pub oci: TwinOci,
    pub bucket: TwinBucket,
    pub store: Store,
    pub runtime: Runtime,
    /// The user's own connection; no faults on it.
    pub user: Client,
    stop: Stop,
    _directory: Option<tempfile::TempDir>,
}

/// How the source controllers of a world reach Git servers, registries and object stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fetchers {
    /// The fakes of the world, in memory.
    Fake,
    /// The real clients, for tests with servers on loopback.
    Network,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").finish_non_exhaustive()
    }
}

/// What is served beside the built-in kinds. Made once: a run of many seeds begins thousands of worlds.
fn definitions() -> &'static [Value] {
    static MADE: OnceLock<Vec<Value>> = OnceLock::new();
    MADE.get_or_init(|| {
        let sets = [CrdSet::Source, CrdSet::Kustomize, CrdSet::Helm, CrdSet::OpenFlux];
        sets.into_iter().flat_map(fl_api::definitions).map(|definition| definition.to_json()).collect()
    })
}

impl World {
    /// A fresh world with the source controllers running.
    pub async fn start(seed: u64) -> Self {
        World::with(seed, Options::default(), |_| {}).await
    }

    /// The same with other options, and with further controllers added by `add`.
    pub async fn with(seed: u64, options: Options, add: impl FnOnce(&World)) -> Self {
        World::begin(seed, options, Fetchers::Fake, add).await
    }

    /// The same with the real network clients in place of the fakes. Needs the real clock.
    pub async fn on_network(seed: u64, options: Options, add: impl FnOnce(&World)) -> Self {
        World::begin(seed, options, Fetchers::Network, add).await
    }

    async fn begin(seed: u64, options: Options, fetchers: Fetchers, add: impl FnOnce(&World)) -> Self {
        let server = ApiServer::in_memory().await.expect("the server starts");
        let user = client(&server, None);
        for crd in definitions() {
            let kind = Kind::new(
                "apiextensions.k8s.io",
                "v1",
                "CustomResourceDefinition",
                "customresourcedefinitions",
                false,
            );
            user.create(&kind, None, crd, &Write::by("test")).await.expect("a CRD is taken");
        }
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path().to_owned();
        let mut world = World::beside(server, seed, options, &root, Default::default(), fetchers, add).await;
        world._directory = Some(directory);
        world
    }

    /// Controllers anew on a server and a store that are there already: a restart.
    pub async fn on(
        server: ApiServer,
        seed: u64,
        options: Options,
        root: &Path,
        git: TwinGit,
        oci: TwinOci,
        add: impl FnOnce(&World),
    ) -> Self {
        let fakes = (git, oci, TwinBucket::default());
        World::beside(server, seed, options, root, fakes, Fetchers::Fake, add).await
    }

    async fn beside(
        server: ApiServer,
        seed: u64,
        options: Options,
        root: &Path,
        (git, oci, bucket): (TwinGit, TwinOci, TwinBucket),
        fetchers: Fetchers,
        add: impl FnOnce(&World),
    ) -> Self {
        configure(Level::Error, Encoding::Console);
        let faults = Faults::new(seed);
        let store = Store::open(StoreOptions {
            root: root.to_owned(),
            advertised: "store.example".to_owned(),
            algorithm: fl_types::Algorithm::Sha256,
            retention: Retention::default(),
        })
        .expect("a store");
        let stop = Stop::default();
        let options = Options { seed: Some(seed), ..options };
        let runtime =
            Runtime::new(client(&server, Some(&faults)), None, options, stop.clone(), Log::default());
        let user = client(&server, None);
        let world = World { server, faults, git, oci, bucket, store, runtime, user, stop, _directory: None };
        let (git, oci, bucket): (Arc<dyn GitClient>, Arc<dyn OciClient>, Arc<dyn BucketClient>) =
            match fetchers {
                Fetchers::Fake => {
                    (Arc::new(world.git.clone()), Arc::new(world.oci.clone()), Arc::new(world.bucket.clone()))
                }
                Fetchers::Network => {
                    let git =
                        NetworkGit { scratch: root.to_owned(), ssh: fl_gitfetch::SshAlgorithms::default() };
                    (Arc::new(git), Arc::new(NetworkOci), Arc::new(NetworkBucket))
                }
            };
        world.runtime.add(GitRepositories::new(world.store.clone(), git), 4);
        world.runtime.add(OciRepositories::new(world.store.clone(), oci), 4);
        world.runtime.add(Buckets::new(world.store.clone(), bucket), 4);
        add(&world);
        world.runtime.watch_configs();
        let runtime = world.runtime.clone();
        tokio::spawn(async move { runtime.run().await });
        world
    }

    /// The process is gone, and a new one starts on the same server, sources and artifacts.
    pub async fn restart(mut self, seed: u64, add: impl FnOnce(&World)) -> Self {
        let directory = self._directory.take();
        let root = self.store.root().to_owned();
        self.stop();
        let server = self.server.clone();
        let outside = (self.git.clone(), self.oci.clone(), self.bucket.clone());
        drop(self);
        let mut world =
            World::beside(server, seed, Options::default(), &root, outside, Fetchers::Fake, add).await;
        world._directory = directory;
        world
    }

    /// Tells the controllers to stop; the server stays.
    pub fn stop(&self) {
        self.stop.now();
    }

    /// Applies an object in the user's name.
    pub async fn apply(&self, object: Value) -> Value {
        // A kind whose CRD has just come is served a moment later; on a paused clock only tries take time.
        for _ in 0..5_000 {
            match self.try_apply(object.clone()).await {
                Err(error) if error.is_not_found() => tokio::time::sleep(Duration::from_millis(20)).await,
                taken => return taken.expect("the object is taken"),
            }
        }
        self.try_apply(object).await.expect("the object is taken")
    }

    /// The same where a refusal is expected.
    pub async fn try_apply(&self, object: Value) -> Result<Value, ClientError> {
        let kind = kind(object["kind"].as_str().expect("a kind"));
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or(NAMESPACE).to_owned();
        let name = object["metadata"]["name"].as_str().expect("a name").to_owned();
        let write = Write { manager: "user", force: true, ..Write::default() };
        self.user.patch(&kind, Some(&namespace), &name, Patch::Apply, &object, &write).await
    }

    /// Applies a source with this spec.
    pub async fn source(&self, kind: &str, name: &str, spec: Value) -> Value {
        let api_version = self::kind(kind).api_version();
        self.apply(json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}))
            .await
    }

    /// Asks for a pass.
    pub async fn request(&self, kind: &str, name: &str, token: &str) {
        let patch = json!({"metadata": {"annotations": {fl_runtime::REQUESTED_AT: token}}});
        let write = Write::by("user");
        let asked =
            self.user.patch(&self::kind(kind), Some(NAMESPACE), name, Patch::Merge, &patch, &write).await;
        asked.expect("the annotation is taken");
    }

    pub async fn get(&self, kind: &str, name: &str) -> Option<Value> {
        match self.user.get(&self::kind(kind), Some(NAMESPACE), name).await {
            Ok(object) => Some(object),
            Err(error) if error.is_not_found() => None,
            Err(error) => panic!("{kind} {name}: {error}"),
        }
    }

    /// Waits until an object is as wanted.
    pub async fn until(&self, kind: &str, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let start = tokio::time::Instant::now();
        let mut last = Value::Null;
        while start.elapsed() < PATIENCE {
            if let Some(object) = self.get(kind, name).await {
                if wanted(&object) {
                    return object;
                }
                last = object;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{kind} {name} did not become what was wanted: {last:#}");
    }

    /// Waits until an object is ready in its current generation.
    pub async fn ready(&self, kind: &str, name: &str) -> Value {
        self.until(kind, name, |o| {
            condition(o, "Ready")["status"] == "True"
                && o["status"]["observedGeneration"] == o["metadata"]["generation"]
        })
        .await
    }

    /// Waits until an object says that it is not ready.
    pub async fn failed(&self, kind: &str, name: &str) -> Value {
        self.until(kind, name, |o| condition(o, "Ready")["status"] == "False").await
    }

    /// Waits until an object is gone.
    pub async fn gone(&self, kind: &str, name: &str) {
        let start = tokio::time::Instant::now();
        while self.get(kind, name).await.is_some() {
            assert!(start.elapsed() < PATIENCE, "{kind} {name} stayed");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// `reason: message` of all events.
    pub async fn events(&self) -> Vec<String> {
        // They are written beside the passes.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let events = self.user.list(&Kind::event(), Some(NAMESPACE), "").await.expect("a list");
        let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
        events.iter().map(|e| format!("{}: {}", text(&e["reason"]), text(&e["message"]))).collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.now();
    }
}

/// A condition of an object; null when it is not there.
pub fn condition(object: &Value, kind: &str) -> Value {
    let list = object["status"]["conditions"].as_array();
    list.into_iter().flatten().find(|c| c["type"] == kind).cloned().unwrap_or_default()
}

fn client(server: &ApiServer, faults: Option<&Faults>) -> Client {
    let service = server.service(User::superuser("engine"));
    match faults {
        Some(faults) => Client::over(faults.layer(service), &Settings::default()),
        None => Client::over(service, &Settings::default()),
    }
}

fn kind(name: &str) -> Kind {
    match name {
        "GitRepository" => Kind::of::<fl_api::source::GitRepository>(),
        "OCIRepository" => Kind::of::<fl_api::source::OCIRepository>(),
        "ExternalArtifact" => Kind::of::<fl_api::source::ExternalArtifact>(),
        "Kustomization" => Kind::of::<fl_api::kustomize::Kustomization>(),
        "HelmRelease" => Kind::of::<fl_api::helm::HelmRelease>(),
        "Bucket" => Kind::of::<fl_api::source::Bucket>(),
        "HelmRepository" => Kind::of::<fl_api::source::HelmRepository>(),
        "HelmChart" => Kind::of::<fl_api::source::HelmChart>(),
        "Artifact" => Kind::of::<fl_api::openflux::Artifact>(),
        "Secret" => Kind::secret(),
        "ConfigMap" => Kind::config_map(),
        "ServiceAccount" => Kind::service_account(),
        "Namespace" => Kind::namespace(),
        "Deployment" => Kind::new("apps", "v1", "Deployment", "deployments", true),
        other => panic!("the world does not know the kind {other}"),
    }
}
