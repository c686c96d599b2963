//! Artifacts that other controllers publish: what is refused, and that tenants on one host do not affect each other.

mod fixture;

use std::io::{BufRead, BufReader, Write as _};
use std::net::TcpListener;
use std::time::Duration;

use fixture::run;
use fl_runtime::{ArtifactFetcher, Kind, Patch, Write};
use fl_sim::{TestCluster, condition};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// A server of one archive; paths that begin with `/a/` are throttled.
fn server(archive: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let host = listener.local_addr().expect("an address").to_string();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream.try_clone().expect("a stream"));
            let (mut first, mut line) = (String::new(), String::new());
            let _ = reader.read_line(&mut first);
            while reader.read_line(&mut line).is_ok_and(|n| n > 2) {
                line.clear();
            }
            let (head, body): (&str, &[u8]) = if first.starts_with("GET /a/") {
                ("429 Too Many Requests\r\nRetry-After: 3600", b"")
            } else {
                ("200 OK", &archive)
            };
            let head =
                format!("HTTP/1.1 {head}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
            let _ = stream.write_all(&[head.as_bytes(), body].concat());
        }
    });
    host
}

fn archive() -> Vec<u8> {
    let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m\n";
    let mut header = tar::Header::new_gnu();
    header.set_size(text.len() as u64);
    header.set_mode(0o644);
    tar.append_data(&mut header, "m.yaml", text.as_bytes()).expect("a file");
    tar.into_inner().expect("an archive").finish().expect("compressed")
}

fn digest(bytes: &[u8]) -> String {
    let hex: String = Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect();
    format!("sha256:{hex}")
}

async fn cluster() -> TestCluster {
    let options =
        fl_runtime::Options { gates: "ExternalArtifact=true".parse().expect("a gate"), ..Default::default() };
    TestCluster::with(91, options, |cluster: &TestCluster| {
        let artifacts = ArtifactFetcher::new(Some(cluster.store.clone()), 0, None).expect("a client");
        fl_kustomization::add(&cluster.runtime, artifacts, fl_kustomization::Options::default());
    })
    .await
}

async fn namespace(cluster: &TestCluster, name: &str) {
    cluster.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).await;
}

/// Publishes an artifact in a namespace as this kind of object.
async fn publish(cluster: &TestCluster, kind: &str, namespace: &str, url: &str, digest: Option<&str>) {
    let mut data = json!({"url": url, "revision": "r1@sha256:1", "lastUpdateTime": "2026-01-01T00:00:00Z"});
    if let Some(digest) = digest {
        data["digest"] = digest.into();
    }
    let meta = json!({"name": "app", "namespace": namespace});
    if kind == "Artifact" {
        let api = "openfluxcd.ocm.software/v1alpha1";
        cluster.apply(json!({"apiVersion": api, "kind": kind, "metadata": meta, "spec": data})).await;
        return;
    }
    let api = "source.toolkit.fluxcd.io/v1";
    let source = json!({"sourceRef": {"apiVersion": "sources.example.com/v1", "kind": "Feed", "name": "f"}});
    cluster.apply(json!({"apiVersion": api, "kind": kind, "metadata": meta, "spec": source})).await;
    data["path"] = "app".into();
    let (kind, status) =
        (Kind::of::<fl_api::source::ExternalArtifact>(), json!({"status": {"artifact": data}}));
    let write = Write::by("producer").to("status");
    cluster.user.patch(&kind, Some(namespace), "app", Patch::Merge, &status, &write).await.expect("a status");
}

/// Applies a Kustomization of the artifact and waits for its verdict.
async fn ready(cluster: &TestCluster, kind: &str, namespace: &str) -> Value {
    let mut source = json!({"kind": kind, "name": "app"});
    if kind == "Artifact" {
        source["apiVersion"] = "openfluxcd.ocm.software/v1alpha1".into();
    }
    cluster
        .apply(json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"name": "app", "namespace": namespace},
            "spec": {"interval": "10m", "prune": true, "targetNamespace": namespace, "sourceRef": source}}))
        .await;
    loop {
        let kind = Kind::of::<fl_api::kustomize::Kustomization>();
        let found = cluster.user.get(&kind, Some(namespace), "app").await.expect("the object");
        let ready = condition(&found, "Ready");
        if matches!(ready["status"].as_str(), Some("True" | "False")) {
            return ready;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[test]
fn artifacts_are_not_throttled_by_another_tenants_artifact_on_the_same_host() {
    run(async {
        let (cluster, archive) = (cluster().await, archive());
        let sum = digest(&archive);
        for kind in ["ExternalArtifact", "Artifact"] {
            let host = server(archive.clone());
            for (path, expected) in [("a", "False"), ("b", "True")] {
                let tenant = format!("{}-{path}", kind.to_lowercase());
                namespace(&cluster, &tenant).await;
                publish(&cluster, kind, &tenant, &format!("http://{host}/{path}/app.tar.gz"), Some(&sum))
                    .await;
                let ready = ready(&cluster, kind, &tenant).await;
                assert_eq!(ready["status"], expected, "{kind} {path}: {}", ready["message"]);
            }
        }
    });
}

/// Nothing proves that the bytes are those that were published. The CRD of ExternalArtifact requires a digest; that of Open Flux does
/// not.
#[test]
fn artifacts_without_a_digest_are_rejected() {
    run(async {
        let (cluster, archive) = (cluster().await, archive());
        let host = server(archive);
        let tenant = "tenant-a";
        namespace(&cluster, tenant).await;
        publish(&cluster, "Artifact", tenant, &format!("http://{host}/app.tar.gz"), None).await;
        let ready = ready(&cluster, "Artifact", tenant).await;
        assert_eq!(
            (&ready["status"], &ready["reason"]),
            (&json!("False"), &json!("ArtifactFailed")),
            "{ready}"
        );
        let message = ready["message"].as_str().unwrap_or_default();
        assert!(message.contains("the artifact has an empty digest"), "{message}");
        let applied = cluster.user.get(&Kind::config_map(), Some(tenant), "m").await;
        assert!(applied.is_err_and(|e| e.is_not_found()));
    });
}
