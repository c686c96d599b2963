//! Helm sources under trouble: lines D07, D08, D12 of the threats. On the real clock, as sockets are involved.

use std::collections::HashMap;
use std::io::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fl_runtime::{ArtifactFetcher, Options, Resolver};
use fl_sim::{TestCluster, condition};
use fl_source::helm::{HelmCharts, HelmLimits, HelmRepositories};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// A web server of files that remembers which paths were asked for with a login.
#[derive(Clone, Default)]
struct Web {
    files: Arc<Mutex<HashMap<String, Vec<u8>>>>,
    /// Path, and whether a login came along.
    seen: Arc<Mutex<Vec<(String, bool)>>>,
    address: String,
}

impl Web {
    async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let web = Web { address: format!("http://{}", listener.local_addr().unwrap()), ..Web::default() };
        let served = web.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(served.clone().answer(socket));
            }
        });
        web
    }

    fn put(&self, path: &str, body: impl Into<Vec<u8>>) {
        self.files.lock().unwrap().insert(path.to_owned(), body.into());
    }

    async fn answer(self, mut socket: tokio::net::TcpStream) {
        let mut request = Vec::new();
        let mut part = [0; 4096];
        while !request.windows(4).any(|w| w == b"\r\n\r\n") {
            match socket.read(&mut part).await {
                Ok(n) if n > 0 => request.extend_from_slice(&part[..n]),
                _ => return,
            }
        }
        let text = String::from_utf8_lossy(&request).to_lowercase();
        let path = text.split_whitespace().nth(1).unwrap_or_default().to_owned();
        self.seen.lock().unwrap().push((path.clone(), text.contains("authorization:")));
        let body = self.files.lock().unwrap().get(&path).cloned();
        let head = match &body {
            Some(body) if body.starts_with(b"-> ") => {
                let to = String::from_utf8_lossy(&body[3..]).into_owned();
                format!(
                    "HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                )
            }
            Some(body) => {
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len())
            }
            None => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_owned(),
        };
        let _ = socket.write_all(head.as_bytes()).await;
        if let Some(body) = body.filter(|body| !body.starts_with(b"-> ")) {
            let _ = socket.write_all(&body).await;
        }
    }

    fn seen(&self, path: &str) -> Vec<bool> {
        let seen = self.seen.lock().unwrap();
        seen.iter().filter(|(asked, _)| asked == path).map(|(_, login)| *login).collect()
    }
}

async fn test_cluster(limits: HelmLimits) -> TestCluster {
    TestCluster::with(1, Options::default(), move |test_cluster: &TestCluster| {
        let artifacts = ArtifactFetcher::new(Some(test_cluster.store.clone()), 0, None).unwrap();
        let resolver = Resolver::new(&test_cluster.runtime);
        test_cluster.runtime.add(HelmRepositories::new(test_cluster.store.clone(), limits), 2);
        test_cluster.runtime.add(HelmCharts::new(test_cluster.store.clone(), resolver, artifacts, limits), 2);
    })
    .await
}

fn packed(name: &str) -> Vec<u8> {
    let mut tar = tar_of(&[(
        &format!("{name}/Chart.yaml"),
        &format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n"),
    )]);
    tar.flush().unwrap();
    tar.finish().unwrap()
}

fn tar_of(files: &[(&str, &str)]) -> flate2::write::GzEncoder<Vec<u8>> {
    let zip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut tar = fl_archive::TarWriter::new(zip);
    for (path, text) in files {
        tar.file(path, fl_archive::Mode::File, text.len() as u64, &mut text.as_bytes()).unwrap();
    }
    tar.finish().unwrap()
}

fn entry(name: &str, url: &str) -> Value {
    json!([{"apiVersion": "v2", "name": name, "version": "1.0.0", "urls": [url]}])
}

async fn chart(test_cluster: &TestCluster, name: &str, source: Value) {
    test_cluster
        .source("HelmChart", name, json!({"chart": name, "interval": "1h", "sourceRef": source}))
        .await;
}

/// D08: a login goes to the repository's own host, not to where its index or a redirect points.
#[tokio::test]
async fn a_login_is_not_carried_away() {
    let (home, away) = (Web::start().await, Web::start().await);
    let index = json!({"apiVersion": "v1", "entries": {
        "near": entry("near", "near.tgz"),
        "far": entry("far", &format!("{}/far.tgz", away.address)),
        "sent": entry("sent", "sent.tgz"),
    }});
    home.put("/index.yaml", index.to_string());
    home.put("/near.tgz", packed("near"));
    home.put("/sent.tgz", format!("-> {}/sent.tgz", away.address));
    away.put("/far.tgz", packed("far"));
    away.put("/sent.tgz", packed("sent"));
    let test_cluster = test_cluster(HelmLimits::default()).await;
    test_cluster
        .apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"},
            "stringData": {"username": "u", "password": "canary"}}))
        .await;
    let spec = json!({"url": home.address, "interval": "1h", "secretRef": {"name": "login"}});
    test_cluster.source("HelmRepository", "charts", spec).await;
    test_cluster.ready("HelmRepository", "charts").await;
    for name in ["near", "far", "sent"] {
        chart(&test_cluster, name, json!({"kind": "HelmRepository", "name": "charts"})).await;
        test_cluster.ready("HelmChart", name).await;
    }
    assert!(home.seen("/index.yaml").into_iter().all(|login| login), "the index is asked for with the login");
    assert_eq!(home.seen("/near.tgz"), [true]);
    assert_eq!(away.seen("/far.tgz"), [false]);
    assert_eq!(away.seen("/sent.tgz"), [false]);
    assert!(!test_cluster.events().await.iter().any(|event| event.contains("canary")));
}

/// D07: entries that make no sense are passed over, the others serve; an index above the limit is refused.
#[tokio::test]
async fn bad_entries_are_passed_over_and_large_indexes_refused() {
    let web = Web::start().await;
    let index = format!(
        "apiVersion: v1\nentries:\n  none: null\n  odd:\n  - null\n  - name: odd\n    version: not a version\n  \
         good:\n  - apiVersion: v2\n    name: good\n    version: 1.0.0\n    description: \"a\\u0007b\"\n    \
         urls: [{}/good.tgz]\n",
        web.address
    );
    web.put("/index.yaml", index);
    web.put("/good.tgz", packed("good"));
    let limits = HelmLimits { index: 4096, ..HelmLimits::default() };
    let test_cluster = test_cluster(limits).await;
    test_cluster.source("HelmRepository", "charts", json!({"url": web.address, "interval": "1h"})).await;
    test_cluster.ready("HelmRepository", "charts").await;
    chart(&test_cluster, "good", json!({"kind": "HelmRepository", "name": "charts"})).await;
    test_cluster.ready("HelmChart", "good").await;
    chart(&test_cluster, "odd", json!({"kind": "HelmRepository", "name": "charts"})).await;
    let odd = test_cluster.failed("HelmChart", "odd").await;
    assert_eq!(condition(&odd, "Ready")["reason"], "InvalidChartReference");

    web.put("/large/index.yaml", format!("apiVersion: v1\nentries: {{}}\n# {}", "x".repeat(5000)));
    let large = json!({"url": format!("{}/large", web.address), "interval": "1h"});
    test_cluster.source("HelmRepository", "large", large).await;
    let large = test_cluster.failed("HelmRepository", "large").await;
    assert_eq!(condition(&large, "FetchFailed")["status"], "True", "{}", large["status"]);
    assert!(large["status"]["artifact"].is_null());
}

/// D12: a dependency by path never leaves the source.
#[tokio::test]
async fn dependencies_stay_inside_the_source() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("Chart.yaml"), "apiVersion: v2\nname: dep\nversion: 1.0.0\n").unwrap();
    let there = outside.path().display().to_string();
    let up = "../".repeat(20);
    let places = [format!("file://{there}"), format!("file://{up}{there}"), format!("file://..{there}")];
    let test_cluster = test_cluster(HelmLimits::default()).await;
    for (at, place) in places.iter().enumerate() {
        let url = format!("https://git.example/app-{at}");
        let meta = format!(
            "apiVersion: v2\nname: app\nversion: 1.0.0\ndependencies:\n- name: dep\n  version: 1.0.0\n  repository: {place}\n"
        );
        test_cluster.git.push(
            &url,
            "main",
            [("app/Chart.yaml", meta.as_str()), ("app/values.yaml", "a: 1\n")],
        );
        let name = format!("app-{at}");
        test_cluster
            .source("GitRepository", &name, json!({"url": url, "interval": "1h", "ref": {"branch": "main"}}))
            .await;
        test_cluster.ready("GitRepository", &name).await;
        let spec =
            json!({"chart": "app", "interval": "1h", "sourceRef": {"kind": "GitRepository", "name": name}});
        test_cluster.source("HelmChart", &name, spec).await;
        let failed = test_cluster.failed("HelmChart", &name).await;
        let ready = condition(&failed, "Ready");
        assert_eq!(ready["reason"], "DependencyBuildError", "{ready}");
        assert!(ready["message"].as_str().unwrap().contains("no chart found at"), "{ready}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
