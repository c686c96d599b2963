//! A HelmRelease controller on an API server in this process, with one chart.
#![allow(dead_code)] // each test file uses its own part

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use fl_api::CrdSet;
use fl_apiserver::{ApiServer, User};
use fl_apply::{Cluster, ObjectRef, Patch, Write};
use fl_helmrelease::{HelmReleaseController, Settings};
use fl_release::History;
use fl_runtime::{ArtifactFetcher, Log, Options, Resolver, Runtime, Stop};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const CHART: &[(&str, &str)] = &[
    (
        "Chart.yaml",
        "apiVersion: v2\nname: app\nversion: 1.0.0\nappVersion: \"7\"\ndependencies: [{name: types, version: 1.0.0, condition: types.enabled}]\n",
    ),
    (
        "values.yaml",
        "color: red\nbad: false\nhook: false\nextra: false\nstay: false\ntypes: {enabled: false}\n",
    ),
    (
        "values.schema.json",
        "{\"type\": \"object\", \"properties\": {\"code\": {\"type\": \"string\", \"pattern\": \"^[0-9]+$\"}}}",
    ),
    (
        "templates/fail.yaml",
        "{{- if .Values.boom }}{{ fail (printf \"no %s here\" .Values.boom) }}{{- end }}\n",
    ),
    (
        "templates/label.yaml",
        "{{- if .Values.label }}\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: label\n  labels: {a: {{ .Values.label | quote }}}\n{{- end }}\n",
    ),
    ("charts/types/Chart.yaml", "apiVersion: v2\nname: types\nversion: 1.0.0\n"),
    (
        "charts/types/crds/mug.yaml",
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: mugs.example.com}\nspec:\n  group: example.com\n  names: {kind: Mug, plural: mugs}\n  scope: Namespaced\n  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]\n",
    ),
    (
        "templates/cm.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-cfg\ndata:\n  color: {{ .Values.color | quote }}\n",
    ),
    (
        "templates/extra.yaml",
        "{{- if .Values.extra }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\n{{- end }}\n",
    ),
    (
        "templates/bad.yaml",
        "{{- if .Values.bad }}\napiVersion: v1\nkind: Service\nmetadata: {name: bad}\nspec: {ports: [{port: 99999}]}\n{{- end }}\n",
    ),
    (
        "templates/stay.yaml",
        "{{- if .Values.stay }}\napiVersion: v1\nkind: Service\nmetadata:\n  name: stay\n  annotations: {\"helm.sh/hook\": pre-delete}\nspec: {ports: [{port: 99999}]}\n{{- end }}\n",
    ),
    (
        "templates/hook.yaml",
        "{{- if .Values.hook }}\napiVersion: v1\nkind: Pod\nmetadata:\n  name: endless\n  annotations: {\"helm.sh/hook\": pre-install}\nspec: {containers: [{name: m, image: i}]}\n{{- end }}\n",
    ),
];

fn archive() -> Vec<u8> {
    let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    for (name, text) in CHART {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        tar.append_data(&mut header, format!("app/{name}"), text.as_bytes()).expect("an entry");
    }
    let mut zip = tar.into_inner().expect("a tar");
    zip.flush().expect("flushed");
    zip.finish().expect("a gzip file")
}

/// Serves one file, whatever is asked for.
async fn serve(bytes: Vec<u8>) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let bytes = Arc::new(bytes);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let bytes = bytes.clone();
            tokio::spawn(async move {
                let mut request = vec![0; 4096];
                let _ = socket.read(&mut request).await;
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    bytes.len()
                );
                let _ = socket.write_all(head.as_bytes()).await;
                let _ = socket.write_all(&bytes).await;
            });
        }
    });
    format!("http://{address}/app-1.0.0.tgz")
}

pub(crate) struct World {
    pub(crate) cluster: Cluster,
    stop: Stop,
    runtime: Runtime,
    _server: ApiServer,
}

pub(crate) const MANAGER: Write<'static> =
    Write { manager: "test", force: true, dry_run: false, subresource: "", field_validation: "" };

/// A kind whose CRD has just come is served a moment later.
async fn apply_when_served(cluster: &Cluster, object: &Value) {
    let mut applied = cluster.apply(object, &MANAGER).await;
    for _ in 0..100 {
        if applied.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        applied = cluster.apply(object, &MANAGER).await;
    }
    applied.expect("the object is taken");
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(Options::default()).await
    }

    pub(crate) async fn with(options: Options) -> Self {
        let server = ApiServer::in_memory().await.expect("the server starts");
        let client = fl_runtime::Client::over(
            server.service(User::superuser("test")),
            &fl_client::Settings::default(),
        );
        let cluster = Cluster::new(client.clone());
        for set in [CrdSet::Source, CrdSet::Helm] {
            for definition in fl_api::definitions(set) {
                cluster.apply(&definition.to_json(), &MANAGER).await.expect("a CRD");
            }
        }
        let archive = archive();
        let digest: String = Sha256::digest(&archive).iter().map(|byte| format!("{byte:02x}")).collect();
        let url = serve(archive).await;
        let chart = json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "HelmChart",
            "metadata": {"name": "app", "namespace": "default"},
            "spec": {"chart": "app", "interval": "10m", "sourceRef": {"kind": "HelmRepository", "name": "x"}},
        });
        apply_when_served(&cluster, &chart).await;
        let status = json!({"status": {"observedGeneration": 1, "artifact": {
            "url": url, "path": "app-1.0.0.tgz", "revision": "1.0.0", "digest": format!("sha256:{digest}"),
            "lastUpdateTime": "2026-01-01T00:00:00Z"}}});
        let reference = ObjectRef::new("source.toolkit.fluxcd.io/v1", "HelmChart", "default", "app");
        let write = Write { subresource: "status", force: false, ..MANAGER };
        cluster.patch(&reference, Patch::Merge, &status, &write).await.expect("a status");
        let (stop, log) = (Stop::default(), Log::default());
        let options = Options { requeue_dependency: Duration::from_millis(200), ..options };
        let runtime = Runtime::new(client, None, options, stop.clone(), log);
        let fetcher = ArtifactFetcher::new(None, 1, None).expect("a fetcher");
        let controller =
            HelmReleaseController::new(&runtime, Resolver::new(&runtime), fetcher, Settings::default());
        runtime.add(controller, 2);
        let running = runtime.clone();
        tokio::spawn(async move { running.run().await });
        World { cluster, stop, runtime, _server: server }
    }

    pub(crate) async fn apply(&self, spec: Value, token: &str) {
        let mut all = json!({
            "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
            "metadata": {"name": "app", "namespace": "default", "annotations": {"reconcile.fluxcd.io/requestedAt": token}},
            "spec": {"interval": "10m", "chartRef": {"kind": "HelmChart", "name": "app"}},
        });
        for (key, value) in spec.as_object().into_iter().flatten() {
            all["spec"][key] = value.clone();
        }
        apply_when_served(&self.cluster, &all).await;
    }

    pub(crate) async fn get(&self, api_version: &str, kind: &str, name: &str) -> Option<Value> {
        self.cluster.get(&ObjectRef::new(api_version, kind, "default", name)).await.expect("an answer")
    }

    /// Waits until the request was handled and the release is settled.
    pub(crate) async fn settled(&self, token: &str) -> Value {
        for _ in 0..600 {
            if let Some(object) = self.get("helm.toolkit.fluxcd.io/v2", "HelmRelease", "app").await
                && object["status"]["lastHandledReconcileAt"] == token
                && condition(&object, "Reconciling").is_none()
            {
                return object;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let last = self.get("helm.toolkit.fluxcd.io/v2", "HelmRelease", "app").await;
        panic!("not settled: {}", last.map(|object| object["status"].to_string()).unwrap_or_default());
    }

    /// Waits until the release looks like this.
    pub(crate) async fn until(&self, done: impl Fn(&Value) -> bool) -> Value {
        let mut last = None;
        for _ in 0..600 {
            last = self.get("helm.toolkit.fluxcd.io/v2", "HelmRelease", "app").await;
            match &last {
                Some(object) if done(object) => return object.clone(),
                _ => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
        panic!("never: {}", last.map(|object| object["status"].to_string()).unwrap_or_default());
    }

    pub(crate) async fn history(&self) -> History {
        let list = self.cluster.list("v1", "Secret", "default", &[]).await.expect("a list");
        let items: Vec<Value> = list["items"].as_array().cloned().unwrap_or_default();
        History::read("app", &items)
    }

    pub(crate) fn metrics(&self) -> String {
        self.runtime.metrics().render()
    }

    pub(crate) fn end(&self) {
        self.stop.now();
        let _ = &self.runtime;
    }
}

pub(crate) fn condition<'o>(object: &'o Value, kind: &str) -> Option<&'o Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}

pub(crate) fn ready(object: &Value) -> (&str, &str) {
    let ready = condition(object, "Ready");
    let text = |key: &str| ready.and_then(|ready| ready[key].as_str()).unwrap_or_default();
    (text("status"), text("reason"))
}
