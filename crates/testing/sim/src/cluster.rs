//! A test cluster: API server, controllers, fakes and faults.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fl_api::CrdSet;
use fl_apiserver::{ApiServer, User};
use fl_artifact_store::{Retention, Store, StoreOptions};
use fl_client::Settings;
use fl_runtime::log::{Encoding, Level, Log, configure};
use fl_runtime::{Client, ClientError, Kind, Options, Patch, Runtime, Shutdown, Write};
use fl_source::bucket::{BucketClient, Buckets, NetworkBucket};
use fl_source::git::{GitClient, GitRepositories, NetworkGit};
use fl_source::oci::{NetworkOci, OciClient, OciRepositories};
use serde_json::{Value, json};

use crate::{FakeBucket, FakeGit, FakeOci, Faults};

/// The namespace of objects that name none.
pub const NAMESPACE: &str = "default";
/// How long a test waits, on the paused clock.
const WAIT_TIMEOUT: Duration = Duration::from_secs(3600);

/// A cluster with controllers on it.
pub struct TestCluster {
    pub server: ApiServer,
    pub faults: Faults,
    pub git: FakeGit,
    pub oci: FakeOci,
    pub bucket: FakeBucket,
    pub store: Store,
    pub runtime: Runtime,
    /// The user's own connection; no faults on it.
    pub user: Client,
    stop: Shutdown,
    _directory: Option<tempfile::TempDir>,
}

/// How the source controllers reach Git servers, registries and object stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fetchers {
    /// The fakes, in memory.
    Fake,
    /// The real clients, for tests with servers on loopback.
    Network,
}

impl std::fmt::Debug for TestCluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestCluster").finish_non_exhaustive()
    }
}

/// The CRDs. Built once: a run of many seeds starts thousands of clusters.
fn definitions() -> &'static [Value] {
    static MADE: OnceLock<Vec<Value>> = OnceLock::new();
    MADE.get_or_init(|| {
        let sets = [CrdSet::Source, CrdSet::Kustomize, CrdSet::Helm, CrdSet::OpenFlux];
        sets.into_iter().flat_map(fl_api::definitions).map(|definition| definition.to_json()).collect()
    })
}

impl TestCluster {
    /// A new cluster with the source controllers running.
    pub async fn start(seed: u64) -> Self {
        TestCluster::with(seed, Options::default(), |_| {}).await
    }

    /// The same with other options, and with further controllers added by `add`.
    pub async fn with(seed: u64, options: Options, add: impl FnOnce(&TestCluster)) -> Self {
        TestCluster::begin(seed, options, Fetchers::Fake, add).await
    }

    /// The same with the real network clients in place of the fakes. Needs the real clock.
    pub async fn on_network(seed: u64, options: Options, add: impl FnOnce(&TestCluster)) -> Self {
        TestCluster::begin(seed, options, Fetchers::Network, add).await
    }

    async fn begin(seed: u64, options: Options, fetchers: Fetchers, add: impl FnOnce(&TestCluster)) -> Self {
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
        let mut test_cluster =
            TestCluster::beside(server, seed, options, &root, Default::default(), fetchers, add).await;
        test_cluster._directory = Some(directory);
        test_cluster
    }

    /// New controllers on an existing server and store: a restart.
    pub async fn on(
        server: ApiServer,
        seed: u64,
        options: Options,
        root: &Path,
        git: FakeGit,
        oci: FakeOci,
        add: impl FnOnce(&TestCluster),
    ) -> Self {
        let fakes = (git, oci, FakeBucket::default());
        TestCluster::beside(server, seed, options, root, fakes, Fetchers::Fake, add).await
    }

    async fn beside(
        server: ApiServer,
        seed: u64,
        options: Options,
        root: &Path,
        (git, oci, bucket): (FakeGit, FakeOci, FakeBucket),
        fetchers: Fetchers,
        add: impl FnOnce(&TestCluster),
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
        let stop = Shutdown::default();
        let options = Options { seed: Some(seed), ..options };
        let runtime =
            Runtime::new(client(&server, Some(&faults)), None, options, stop.clone(), Log::default());
        let user = client(&server, None);
        let test_cluster =
            TestCluster { server, faults, git, oci, bucket, store, runtime, user, stop, _directory: None };
        let (git, oci, bucket): (Arc<dyn GitClient>, Arc<dyn OciClient>, Arc<dyn BucketClient>) =
            match fetchers {
                Fetchers::Fake => (
                    Arc::new(test_cluster.git.clone()),
                    Arc::new(test_cluster.oci.clone()),
                    Arc::new(test_cluster.bucket.clone()),
                ),
                Fetchers::Network => {
                    let git =
                        NetworkGit { scratch: root.to_owned(), ssh: fl_git_client::SshAlgorithms::default() };
                    (Arc::new(git), Arc::new(NetworkOci), Arc::new(NetworkBucket))
                }
            };
        test_cluster.runtime.add(GitRepositories::new(test_cluster.store.clone(), git), 4);
        test_cluster.runtime.add(OciRepositories::new(test_cluster.store.clone(), oci), 4);
        test_cluster.runtime.add(Buckets::new(test_cluster.store.clone(), bucket), 4);
        add(&test_cluster);
        test_cluster.runtime.watch_configs();
        let runtime = test_cluster.runtime.clone();
        tokio::spawn(async move { runtime.run().await });
        test_cluster
    }

    /// Ends the process and starts a new one on the same server, sources and artifacts.
    pub async fn restart(mut self, seed: u64, add: impl FnOnce(&TestCluster)) -> Self {
        let directory = self._directory.take();
        let root = self.store.root().to_owned();
        self.stop();
        let server = self.server.clone();
        let outside = (self.git.clone(), self.oci.clone(), self.bucket.clone());
        drop(self);
        let mut test_cluster =
            TestCluster::beside(server, seed, Options::default(), &root, outside, Fetchers::Fake, add).await;
        test_cluster._directory = directory;
        test_cluster
    }

    /// Stops the controllers; the server goes on.
    pub fn stop(&self) {
        self.stop.now();
    }

    /// Applies an object as the user.
    pub async fn apply(&self, object: Value) -> Value {
        // A kind is served a moment after its CRD was created; on a paused clock only attempts take time.
        for _ in 0..5_000 {
            match self.try_apply(object.clone()).await {
                Err(error) if error.is_not_found() => tokio::time::sleep(Duration::from_millis(20)).await,
                taken => return taken.expect("the object is taken"),
            }
        }
        self.try_apply(object).await.expect("the object is taken")
    }

    /// The same, if a rejection is expected.
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

    /// Requests a reconcile.
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

    /// Waits until an object satisfies a condition.
    pub async fn until(&self, kind: &str, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let start = tokio::time::Instant::now();
        let mut last = Value::Null;
        while start.elapsed() < WAIT_TIMEOUT {
            if let Some(object) = self.get(kind, name).await {
                if wanted(&object) {
                    return object;
                }
                last = object;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{kind} {name} did not reach the expected state: {last:#}");
    }

    /// Waits until an object is ready in its current generation.
    pub async fn ready(&self, kind: &str, name: &str) -> Value {
        self.until(kind, name, |o| {
            condition(o, "Ready")["status"] == "True"
                && o["status"]["observedGeneration"] == o["metadata"]["generation"]
        })
        .await
    }

    /// Waits until an object is not ready.
    pub async fn failed(&self, kind: &str, name: &str) -> Value {
        self.until(kind, name, |o| condition(o, "Ready")["status"] == "False").await
    }

    /// Waits until an object is gone.
    pub async fn gone(&self, kind: &str, name: &str) {
        let start = tokio::time::Instant::now();
        while self.get(kind, name).await.is_some() {
            assert!(start.elapsed() < WAIT_TIMEOUT, "{kind} {name} stayed");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// `reason: message` of all events.
    pub async fn events(&self) -> Vec<String> {
        // Events are written in the background.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let events = self.user.list(&Kind::event(), Some(NAMESPACE), "").await.expect("a list");
        let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
        events.iter().map(|e| format!("{}: {}", text(&e["reason"]), text(&e["message"]))).collect()
    }
}

impl Drop for TestCluster {
    fn drop(&mut self) {
        self.stop.now();
    }
}

/// A condition of an object, or null.
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
        other => panic!("the simulation does not know the kind {other}"),
    }
}
