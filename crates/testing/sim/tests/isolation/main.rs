//! Two tenants on one URL: what one tenant's proxy, login or certificate authority does never reaches the other.
//!
//! Each test lets `tenant-a` reconcile first, with a proxy of its own that redirects or throttles, and then `tenant-b`, on the
//! same URL without a proxy. On the real clock, as sockets are involved.

mod server;

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fl_runtime::{ArtifactFetcher, Kind, Options, Resolver, Write};
use fl_sim::{TestCluster, condition};
use fl_source::helm::{HelmCharts, HelmLimits, HelmRepositories};
use serde_json::{Value, json};
use server::{
    Request, Response, Server, certificate, git_backend, not_found, ok, redirect, repository, response,
    too_many_requests,
};
use sha2::{Digest, Sha256};

const A: &str = "tenant-a";
const B: &str = "tenant-b";

async fn test_cluster() -> TestCluster {
    let test_cluster = TestCluster::on_network(1, Options::default(), |test_cluster: &TestCluster| {
        let artifacts = ArtifactFetcher::new(Some(test_cluster.store.clone()), 0, None).expect("a client");
        let (resolver, limits) = (Resolver::new(&test_cluster.runtime), HelmLimits::default());
        test_cluster.runtime.add(HelmRepositories::new(test_cluster.store.clone(), limits), 2);
        test_cluster.runtime.add(HelmCharts::new(test_cluster.store.clone(), resolver, artifacts, limits), 2);
    })
    .await;
    for tenant in [A, B] {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": tenant}});
        let created =
            test_cluster.user.create(&Kind::namespace(), None, &namespace, &Write::by("test")).await;
        created.expect("a namespace");
    }
    test_cluster
}

fn kind(name: &str) -> Kind {
    match name {
        "GitRepository" => Kind::of::<fl_api::source::GitRepository>(),
        "OCIRepository" => Kind::of::<fl_api::source::OCIRepository>(),
        "Bucket" => Kind::of::<fl_api::source::Bucket>(),
        "HelmRepository" => Kind::of::<fl_api::source::HelmRepository>(),
        "HelmChart" => Kind::of::<fl_api::source::HelmChart>(),
        other => panic!("{other}"),
    }
}

/// Applies a source and waits until its Ready condition is decided.
async fn reconciled(test_cluster: &TestCluster, name: &str, tenant: &str, spec: Value) -> Value {
    let kind = kind(name);
    let object = json!({"apiVersion": kind.api_version(), "kind": name,
        "metadata": {"name": "app", "namespace": tenant}, "spec": spec});
    test_cluster.apply(object).await;
    let start = Instant::now();
    loop {
        let object = test_cluster.user.get(&kind, Some(tenant), "app").await.expect("the object");
        if matches!(condition(&object, "Ready")["status"].as_str(), Some("True" | "False")) {
            return object;
        }
        assert!(start.elapsed() < Duration::from_secs(30), "no verdict: {object:#}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn secret(test_cluster: &TestCluster, tenant: &str, name: &str, data: &[(&str, &str)]) {
    let data: Value = data
        .iter()
        .map(|(k, v)| ((*k).to_owned(), STANDARD.encode(v).into()))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": name, "namespace": tenant}, "data": data});
    test_cluster.apply(secret).await;
}

/// The proxy that only tenant A uses.
async fn proxy_of_a(
    test_cluster: &TestCluster,
    respond: impl Fn(&Request) -> Response + Send + Sync + 'static,
) -> Server {
    let proxy = Server::start(respond);
    secret(test_cluster, A, "proxy", &[("address", &format!("http://{}", proxy.host))]).await;
    proxy
}

fn with_proxy(mut spec: Value) -> Value {
    spec["proxySecretRef"] = json!({"name": "proxy"});
    spec
}

#[track_caller]
fn assert_ready(object: &Value) {
    let ready = condition(object, "Ready");
    assert_eq!(ready["status"], "True", "{}", ready["message"]);
}

fn git_spec(host: &str) -> Value {
    json!({"url": format!("http://{host}/app.git"), "interval": "1h", "ref": {"branch": "main"}})
}

#[tokio::test(flavor = "multi_thread")]
async fn git_repository_is_not_redirected_by_another_tenants_proxy() {
    let test_cluster = test_cluster().await;
    let ((good, good_commit), (evil, evil_commit)) = (repository("a: good\n"), repository("a: evil\n"));
    let honest = Server::start(move |request| git_backend(good.path(), request));
    let evil_path = evil.path().to_owned();
    let hostile = Server::start(move |request| git_backend(&evil_path, request));
    let (honest_host, hostile_host) = (honest.host.clone(), hostile.host.clone());
    let proxy = proxy_of_a(&test_cluster, move |request| match request.target.strip_prefix("http://") {
        Some(rest) if rest.starts_with(&honest_host) => {
            redirect(&format!("http://{hostile_host}{}", request.path()))
        }
        _ => git_backend(evil.path(), request),
    })
    .await;
    let a = reconciled(&test_cluster, "GitRepository", A, with_proxy(git_spec(&honest.host))).await;
    assert_ready(&a);
    assert_eq!(a["status"]["artifact"]["revision"], format!("main@sha1:{evil_commit}"));
    assert!(proxy.requests() > 0);
    let b = reconciled(&test_cluster, "GitRepository", B, git_spec(&honest.host)).await;
    assert_ready(&b);
    assert_eq!(b["status"]["artifact"]["revision"], format!("main@sha1:{good_commit}"));
    assert_eq!(hostile.requests(), 0, "tenant B was led to the server of tenant A");
}

#[tokio::test(flavor = "multi_thread")]
async fn git_repository_is_not_throttled_by_another_tenants_proxy() {
    let test_cluster = test_cluster().await;
    let (folder, commit) = repository("a: 1\n");
    let honest = Server::start(move |request| git_backend(folder.path(), request));
    let _proxy = proxy_of_a(&test_cluster, |_| too_many_requests()).await;
    let a = reconciled(&test_cluster, "GitRepository", A, with_proxy(git_spec(&honest.host))).await;
    assert_eq!(condition(&a, "Ready")["status"], "False");
    let b = reconciled(&test_cluster, "GitRepository", B, git_spec(&honest.host)).await;
    assert_ready(&b);
    assert_eq!(b["status"]["artifact"]["revision"], format!("main@sha1:{commit}"));
}

fn digest(bytes: &[u8]) -> String {
    let hex: String = Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect();
    format!("sha256:{hex}")
}

fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let zip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut tar = fl_archive::TarWriter::new(zip);
    for (path, text) in files {
        tar.file(path, fl_archive::Mode::File, text.len() as u64, &mut text.as_bytes()).expect("a file");
    }
    tar.finish().expect("an archive").finish().expect("compressed")
}

/// A registry with one artifact under the tag `v1`.
fn registry() -> impl Fn(&Request) -> Response + Send + Sync + 'static {
    let layer = archive(&[("app.yaml", "a: 1\n")]);
    let descriptor =
        |kind: &str, bytes: &[u8]| json!({"mediaType": kind, "digest": digest(bytes), "size": bytes.len()});
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": descriptor("application/vnd.cncf.flux.config.v1+json", b"{}"),
        "layers": [descriptor("application/vnd.cncf.flux.content.v1.tar+gzip", &layer)],
    })
    .to_string();
    let sum = digest(manifest.as_bytes());
    move |request| match request.path() {
        "/v2/" => ok(b"{}"),
        path if path == "/v2/app/manifests/v1" || path == format!("/v2/app/manifests/{sum}") => {
            let headers = format!(
                "Content-Type: application/vnd.oci.image.manifest.v1+json\r\nDocker-Content-Digest: {sum}\r\n"
            );
            response("200 OK", &headers, manifest.as_bytes())
        }
        path if path.starts_with("/v2/app/blobs/") => ok(&layer),
        _ => not_found(),
    }
}

fn oci_spec(host: &str) -> Value {
    json!({"url": format!("oci://{host}/app"), "interval": "1h", "ref": {"tag": "v1"}})
}

#[tokio::test(flavor = "multi_thread")]
async fn oci_repository_is_not_throttled_by_another_tenants_proxy() {
    let test_cluster = test_cluster().await;
    let honest = Server::start(registry());
    let _proxy = proxy_of_a(&test_cluster, |_| too_many_requests()).await;
    let mut spec = oci_spec(&honest.host);
    spec["insecure"] = true.into();
    let a = reconciled(&test_cluster, "OCIRepository", A, with_proxy(spec.clone())).await;
    assert_eq!(condition(&a, "Ready")["status"], "False");
    assert_ready(&reconciled(&test_cluster, "OCIRepository", B, spec).await);
}

/// Registries of this machine may be without TLS, which is found out by asking. The proxy of tenant A claims that this one is.
#[tokio::test(flavor = "multi_thread")]
async fn oci_repository_is_not_downgraded_to_plain_http_by_another_tenants_proxy() {
    let test_cluster = test_cluster().await;
    let (tls, ca) = certificate();
    let honest = Server::start_tls(tls, registry());
    let served = registry();
    let _proxy = proxy_of_a(&test_cluster, move |request| match request.method.as_str() {
        "CONNECT" => response("403 Forbidden", "", b""),
        _ => served(request),
    })
    .await;
    secret(&test_cluster, B, "ca", &[("ca.crt", &ca)]).await;
    assert_ready(&reconciled(&test_cluster, "OCIRepository", A, with_proxy(oci_spec(&honest.host))).await);
    let mut spec = oci_spec(&honest.host);
    spec["certSecretRef"] = json!({"name": "ca"});
    assert_ready(&reconciled(&test_cluster, "OCIRepository", B, spec).await);
}

fn bucket(request: &Request) -> Response {
    let path = request.path();
    if path.contains("list-type=2") {
        return ok(b"<ListBucketResult><Contents><Key>app.yaml</Key><ETag>&quot;1&quot;</ETag></Contents><IsTruncated>false</IsTruncated></ListBucketResult>");
    }
    if path.contains("location") {
        return ok(b"<LocationConstraint>one</LocationConstraint>");
    }
    match path.split('?').next().unwrap_or_default() {
        "/apps/" | "/apps" => ok(b""),
        "/apps/app.yaml" => response("200 OK", "ETag: \"1\"\r\n", b"a: 1\n"),
        _ => not_found(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bucket_is_not_throttled_by_another_tenants_proxy() {
    let test_cluster = test_cluster().await;
    let honest = Server::start(bucket);
    let _proxy = proxy_of_a(&test_cluster, |_| too_many_requests()).await;
    let spec = json!({"endpoint": honest.host, "bucketName": "apps", "insecure": true, "region": "one", "interval": "1h"});
    let a = reconciled(&test_cluster, "Bucket", A, with_proxy(spec.clone())).await;
    assert_eq!(condition(&a, "Ready")["status"], "False");
    assert_ready(&reconciled(&test_cluster, "Bucket", B, spec).await);
}

/// A chart repository that throttles whoever logs in.
fn charts(request: &Request) -> Response {
    if !request.header("authorization").is_empty() {
        return too_many_requests();
    }
    match request.path() {
        "/index.yaml" => ok(b"apiVersion: v1\nentries:\n  web:\n  - apiVersion: v2\n    name: web\n    version: 1.0.0\n    urls: [web-1.0.0.tgz]\n"),
        "/web-1.0.0.tgz" => ok(&archive(&[("web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n")])),
        _ => not_found(),
    }
}

fn helm_spec(host: &str) -> Value {
    json!({"url": format!("http://{host}"), "interval": "1h"})
}

/// Tenant A logs in, and is told to wait.
async fn throttle_login_of_a(test_cluster: &TestCluster, host: &str) {
    secret(test_cluster, A, "login", &[("username", "a"), ("password", "p")]).await;
    let mut spec = helm_spec(host);
    spec["secretRef"] = json!({"name": "login"});
    let a = reconciled(test_cluster, "HelmRepository", A, spec).await;
    let message = condition(&a, "Ready")["message"].to_string();
    assert!(message.contains("429"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn helm_repository_is_not_throttled_by_another_tenants_login() {
    let test_cluster = test_cluster().await;
    let honest = Server::start(charts);
    throttle_login_of_a(&test_cluster, &honest.host).await;
    assert_ready(&reconciled(&test_cluster, "HelmRepository", B, helm_spec(&honest.host)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn helm_chart_is_not_throttled_by_another_tenants_login() {
    let test_cluster = test_cluster().await;
    let honest = Server::start(charts);
    assert_ready(&reconciled(&test_cluster, "HelmRepository", B, helm_spec(&honest.host)).await);
    throttle_login_of_a(&test_cluster, &honest.host).await;
    let spec = json!({"chart": "web", "version": "1.0.0", "interval": "1h", "sourceRef": {"kind": "HelmRepository", "name": "app"}});
    assert_ready(&reconciled(&test_cluster, "HelmChart", B, spec).await);
}

/// A connection that one tenant's authority vouches for is not lent to a tenant who does not trust that authority.
#[tokio::test(flavor = "multi_thread")]
async fn helm_repository_does_not_use_the_authority_of_another_tenant() {
    let test_cluster = test_cluster().await;
    let (tls, ca) = certificate();
    let honest = Server::start_tls(tls, charts);
    secret(&test_cluster, A, "ca", &[("ca.crt", &ca)]).await;
    let spec = json!({"url": format!("https://{}", honest.host), "interval": "1h"});
    let mut trusting = spec.clone();
    trusting["certSecretRef"] = json!({"name": "ca"});
    assert_ready(&reconciled(&test_cluster, "HelmRepository", A, trusting).await);
    let b = reconciled(&test_cluster, "HelmRepository", B, spec).await;
    let message = condition(&b, "Ready")["message"].to_string();
    assert!(message.contains("x509: certificate signed by unknown authority"), "{message}");
}
