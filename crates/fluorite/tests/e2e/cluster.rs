//! An API server, embedded or real, with `fluorite run` on it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use fl_testkit::ControlPlane;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_fluorite");
/// Which server the suite runs on: `embedded` (the default) or `kube-apiserver`, which needs `cargo xtask oracles`.
const SERVER_VARIABLE: &str = "FLUORITE_E2E_SERVER";
/// Generous for a busy machine; every step takes a second or less on an idle one.
const TIMEOUT: Duration = Duration::from_secs(60);

enum Server {
    Embedded(Child),
    KubeApiServer(Box<ControlPlane>),
}

impl Server {
    /// Fails the test when the server has ended.
    fn check(&mut self) {
        match self {
            Server::Embedded(child) => {
                let ended = child.try_wait().expect("a process");
                assert!(ended.is_none(), "the embedded API server has ended: {ended:?}");
            }
            Server::KubeApiServer(plane) => plane.check().expect("etcd and kube-apiserver still run"),
        }
    }
}

/// The server and the engine; both end with this.
pub(crate) struct Cluster {
    // Order matters: the engine ends before its server, both before their folder is removed.
    engine: Child,
    server: Mutex<Server>,
    kubeconfig: PathBuf,
    log: PathBuf,
    _folder: tempfile::TempDir,
}

/// The cluster of the tests that run at this moment. The last one to end stops it.
static SHARED: Mutex<Weak<Cluster>> = Mutex::new(Weak::new());

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.engine.kill();
        let _ = self.engine.wait();
        let server = self.server.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Server::Embedded(child) = server {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn spawn(log: &Path, args: &[&str]) -> Child {
    let log = File::create(log).expect("a log file");
    let mut command = Command::new(PROGRAM);
    command.args(args).stdin(Stdio::null()).stdout(log.try_clone().expect("a log file")).stderr(log);
    command.spawn().expect("the program starts")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

impl Cluster {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let choice = std::env::var(SERVER_VARIABLE).unwrap_or_else(|_| "embedded".to_owned());
        let (server, kubeconfig) = match choice.as_str() {
            "embedded" => {
                let kubeconfig = folder.path().join("kubeconfig");
                let data = folder.path().join("data");
                let args =
                    ["apiserver", "--listen=127.0.0.1:0", "--data-dir", text(&data), "--kubeconfig-out"];
                let args: Vec<&str> = args.into_iter().chain([text(&kubeconfig)]).collect();
                let child = spawn(&folder.path().join("apiserver.log"), &args);
                let begin = Instant::now();
                while !kubeconfig.exists() {
                    assert!(begin.elapsed() < TIMEOUT, "the embedded API server does not start");
                    std::thread::sleep(Duration::from_millis(20));
                }
                (Server::Embedded(child), kubeconfig)
            }
            "kube-apiserver" => {
                let plane = ControlPlane::start().expect("etcd and kube-apiserver of `cargo xtask oracles`");
                let kubeconfig = plane.kubeconfig().to_owned();
                (Server::KubeApiServer(Box::new(plane)), kubeconfig)
            }
            other => panic!("{SERVER_VARIABLE} is `embedded` or `kube-apiserver`, not `{other}`"),
        };
        let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port");
        let (store, log) = (folder.path().join("artifacts"), folder.path().join("engine.log"));
        let address = free.to_string();
        let args = [
            "run",
            "--components=source,kustomize,helm",
            "--kubeconfig",
            text(&kubeconfig),
            "--storage-path",
            text(&store),
            "--storage-addr",
            &address,
            "--storage-adv-addr",
            &address,
            "--metrics-addr=0",
            "--health-addr=0",
        ];
        install_crds(&kubeconfig);
        let engine = spawn(&log, &args);
        Cluster { engine, server: Mutex::new(server), kubeconfig, log, _folder: folder }
    }

    fn shared() -> Arc<Self> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let cluster = Arc::new(Self::start());
            *shared = Arc::downgrade(&cluster);
            cluster
        })
    }
}

/// The custom resource definitions must be served before the engine starts.
fn install_crds(kubeconfig: &Path) {
    let kubeconfig = kubeconfig.to_owned();
    // The caller's runtime, if there is one, must not be blocked on.
    let install = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let client = connect(&kubeconfig).await;
            for crd in fl_install::crds(&fl_install::Component::ALL.into()) {
                let name = crd["metadata"]["name"].as_str().expect("a name").to_owned();
                let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
                apply_at(&client, &path, &crd).await;
            }
        });
    };
    std::thread::spawn(install).join().expect("the definitions are accepted");
}

async fn connect(kubeconfig: &Path) -> kube::Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    kube::Client::try_from(config.expect("a configuration")).expect("a client")
}

async fn send(client: &kube::Client, request: http::request::Builder, body: Vec<u8>) -> kube::Result<Value> {
    client.request(request.body(body).expect("a request")).await
}

async fn apply_at(client: &kube::Client, path: &str, object: &Value) {
    let uri = format!("{path}?fieldManager=e2e&force=true&fieldValidation=Strict");
    let begin = Instant::now();
    loop {
        let request = http::Request::patch(&uri).header("Content-Type", "application/apply-patch+yaml");
        match send(client, request, object.to_string().into_bytes()).await {
            Ok(_) => return,
            // A kind is served a moment after its definition was accepted.
            Err(kube::Error::Api(error)) if error.code == 404 && begin.elapsed() < TIMEOUT => {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            Err(error) => panic!("cannot apply {path}: {error}"),
        }
    }
}

/// One test's view of the cluster: a namespace of its own.
pub(crate) struct Tenant {
    pub(crate) namespace: String,
    client: kube::Client,
    cluster: Arc<Cluster>,
}

impl Tenant {
    pub(crate) async fn new(namespace: &str) -> Self {
        let cluster = tokio::task::spawn_blocking(Cluster::shared).await.expect("a cluster");
        let client = connect(&cluster.kubeconfig).await;
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        apply_at(&client, &format!("/api/v1/namespaces/{namespace}"), &object).await;
        Tenant { namespace: namespace.to_owned(), client, cluster }
    }

    /// The path of an object in the namespace: `configmaps/a`, `kustomizations/b`, …
    fn path(&self, object: &str) -> String {
        let group = match object.split('/').next().unwrap_or_default() {
            "gitrepositories" | "helmcharts" => "apis/source.toolkit.fluxcd.io/v1",
            "kustomizations" => "apis/kustomize.toolkit.fluxcd.io/v1",
            "helmreleases" => "apis/helm.toolkit.fluxcd.io/v2",
            _ => "api/v1",
        };
        format!("/{group}/namespaces/{}/{object}", self.namespace)
    }

    /// Applies an object whose API version and kind follow from the path.
    pub(crate) async fn apply(&self, path: &str, spec: Value) {
        let (kind, api_version) = match path.split('/').next().unwrap_or_default() {
            "gitrepositories" => ("GitRepository", "source.toolkit.fluxcd.io/v1"),
            "kustomizations" => ("Kustomization", "kustomize.toolkit.fluxcd.io/v1"),
            "helmreleases" => ("HelmRelease", "helm.toolkit.fluxcd.io/v2"),
            other => panic!("no kind for {other}"),
        };
        let name = path.split('/').nth(1).expect("a name");
        let metadata = json!({"name": name, "namespace": self.namespace});
        let object = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec});
        apply_at(&self.client, &self.path(path), &object).await;
    }

    /// A merge patch by another field manager than the engine.
    pub(crate) async fn patch(&self, path: &str, patch: &Value) {
        let uri = format!("{}?fieldManager=another", self.path(path));
        let request = http::Request::patch(uri).header("Content-Type", "application/merge-patch+json");
        let done = send(&self.client, request, patch.to_string().into_bytes()).await;
        done.unwrap_or_else(|error| panic!("cannot patch {path}: {error}"));
    }

    pub(crate) async fn delete(&self, path: &str) {
        let done = send(&self.client, http::Request::delete(self.path(path)), Vec::new()).await;
        done.unwrap_or_else(|error| panic!("cannot delete {path}: {error}"));
    }

    /// The object, or none when it does not exist. Another error fails the test.
    pub(crate) async fn get(&self, path: &str) -> Option<Value> {
        match send(&self.client, http::Request::get(self.path(path)), Vec::new()).await {
            Ok(object) => Some(object),
            Err(kube::Error::Api(error)) if error.code == 404 => None,
            Err(error) => panic!("cannot read {path}: {error}"),
        }
    }

    /// Waits until the object fulfils a condition, and returns it.
    pub(crate) async fn until(&self, path: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let begin = Instant::now();
        loop {
            let object = self.get(path).await;
            match object {
                Some(object) if holds(&object) => return object,
                object if begin.elapsed() > TIMEOUT => {
                    self.cluster.server.lock().unwrap_or_else(PoisonError::into_inner).check();
                    let object = object.map_or_else(|| "absent".to_owned(), |o| format!("{o:#}"));
                    panic!("{path} is not {what}: {object}\n{}", self.engine_log());
                }
                _ => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }

    pub(crate) async fn until_gone(&self, path: &str) {
        let begin = Instant::now();
        while self.get(path).await.is_some() {
            assert!(begin.elapsed() < TIMEOUT, "{path} is not deleted\n{}", self.engine_log());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits until the object has a condition of this type, status and reason for its current generation.
    pub(crate) async fn until_condition(&self, path: &str, kind: &str, status: &str, reason: &str) -> Value {
        let what = format!("{kind}={status} with reason {reason}");
        let holds = |object: &Value| {
            condition(object, kind).is_some_and(|c| {
                c["status"] == status
                    && c["reason"] == reason
                    && c["observedGeneration"] == object["metadata"]["generation"]
            })
        };
        self.until(path, &what, holds).await
    }

    /// Runs a command of the program on the namespace.
    pub(crate) async fn fluorite(&self, args: &[&str]) -> Output {
        let mut command = tokio::process::Command::new(PROGRAM);
        command.args(args).args(["--namespace", &self.namespace]).env("KUBECONFIG", &self.cluster.kubeconfig);
        let run = command.output().await.expect("the program runs");
        assert!(run.status.success(), "fluorite {args:?}: {}", String::from_utf8_lossy(&run.stderr));
        run
    }

    fn engine_log(&self) -> String {
        let log = std::fs::read_to_string(&self.cluster.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().rev().take(20).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}

pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|c| c["type"] == kind)
}
