//! Remote bases: files and repositories of a server on loopback, line C03 of the threats, and L01 where they fail.

mod fixture;

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fixture::{kustomization, map, run, test_cluster_with};
use fl_http::AddressPolicy;
use fl_kustomization::Options;
use fl_runtime::Kind;
use fl_sim::{TestCluster, condition};
use serde_json::{Value, json};

/// A web server with files, redirects and repositories. It has threads of its own: the clock of a world does not move it.
#[derive(Clone)]
struct Elsewhere {
    address: String,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// By path: content, or where else to look.
    files: HashMap<String, Result<String, String>>,
    repositories: Option<tempfile::TempDir>,
    away: bool,
    /// Paths that begin with this are answered with 429.
    throttled: Option<String>,
    requests: Vec<String>,
}

impl Elsewhere {
    fn start(ip: &str) -> Self {
        let listener = TcpListener::bind((ip, 0)).expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let server = Elsewhere { address, state: Arc::default() };
        let state = server.state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = state.clone();
                std::thread::spawn(move || answer(stream, &state));
            }
        });
        server
    }

    fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn put(&self, path: &str, content: &str) -> String {
        self.with(|s| s.files.insert(path.to_owned(), Ok(content.to_owned())));
        format!("{}{path}", self.address)
    }

    fn redirect(&self, path: &str, to: &str) -> String {
        self.with(|s| s.files.insert(path.to_owned(), Err(to.to_owned())));
        format!("{}{path}", self.address)
    }

    /// Replaces the content of `base.git`.
    fn commit(&self, files: &[(&str, String)]) -> String {
        self.with(|s| {
            let folder = s.repositories.get_or_insert_with(|| tempfile::tempdir().expect("a folder"));
            let (root, tree) = (folder.path(), folder.path().join("tree"));
            if !tree.exists() {
                git(root, &["init", "-q", "--bare", "-b", "main", "base.git"]);
                git(root, &["init", "-q", "-b", "main", "tree"]);
            }
            for (path, text) in files {
                let path = tree.join(path);
                std::fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
                std::fs::write(path, text).expect("a file");
            }
            git(&tree, &["add", "-A"]);
            git(&tree, &["commit", "-q", "--allow-empty", "-m", "x"]);
            git(&tree, &["push", "-q", "-f", "../base.git", "main"]);
        });
        format!("{}/base.git", self.address)
    }

    fn requests(&self) -> Vec<String> {
        self.with(|s| std::mem::take(&mut s.requests))
    }
}

fn git(directory: &Path, arguments: &[&str]) {
    let identity = ["AUTHOR", "COMMITTER"]
        .iter()
        .flat_map(|who| [(format!("GIT_{who}_NAME"), "a"), (format!("GIT_{who}_EMAIL"), "a@example.com")]);
    let output = Command::new("git")
        .args(arguments)
        .current_dir(directory)
        .envs(identity)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .expect("git runs");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn answer(mut stream: TcpStream, state: &Mutex<State>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a stream"));
    let (mut head, mut line) = (Vec::new(), String::new());
    while reader.read_line(&mut line).is_ok_and(|n| n > 2) {
        head.push(std::mem::take(&mut line).trim_end().to_owned());
    }
    let field = |name: &str| {
        let found =
            head.iter().filter_map(|l| l.split_once(": ")).find(|(n, _)| n.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.to_owned()).unwrap_or_default()
    };
    let mut body = vec![0; field("content-length").parse().unwrap_or(0)];
    let _ = reader.read_exact(&mut body);
    let mut words = head.first().map(String::as_str).unwrap_or_default().split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let (file, root, away, throttled) = {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.requests.push(format!("{method} {target}"));
        let root = state.repositories.as_ref().map(|r| r.path().to_owned());
        let throttled = state.throttled.as_ref().is_some_and(|prefix| path.starts_with(prefix));
        (state.files.get(path).cloned(), root, state.away, throttled)
    };
    let say = |status: &str, more: &str, content: &[u8]| {
        let length = content.len();
        let head =
            format!("HTTP/1.1 {status}\r\n{more}Connection: close\r\nContent-Length: {length}\r\n\r\n");
        [head.as_bytes(), content].concat()
    };
    let text = match (file, root) {
        _ if away => say("503 Away", "", b""),
        _ if throttled => say("429 Too Many Requests", "Retry-After: 3600\r\n", b""),
        (Some(Ok(content)), _) => say("200 OK", "", content.as_bytes()),
        (Some(Err(to)), _) => say("302 Found", &format!("Location: {to}\r\n"), b""),
        (None, Some(root)) => {
            let mut child = Command::new("git")
                .arg("http-backend")
                .env("GIT_PROJECT_ROOT", root)
                .env("GIT_HTTP_EXPORT_ALL", "1")
                .env("REQUEST_METHOD", method)
                .env("PATH_INFO", path)
                .env("QUERY_STRING", query)
                .env("CONTENT_TYPE", field("content-type"))
                .env("CONTENT_LENGTH", body.len().to_string())
                .env("GIT_PROTOCOL", field("git-protocol"))
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .expect("git runs");
            let _ = child.stdin.take().expect("piped").write_all(&body);
            let output = child.wait_with_output().expect("git ends").stdout;
            let split = output.windows(4).position(|w| w == b"\r\n\r\n").unwrap_or(0);
            let cgi = String::from_utf8_lossy(&output[..split]).into_owned();
            let status = cgi.lines().find_map(|l| l.strip_prefix("Status: ")).unwrap_or("200 OK");
            let kind = cgi.lines().find(|l| l.starts_with("Content-Type: ")).unwrap_or("X-None: x");
            say(status, &format!("{kind}\r\n"), &output[(split + 4).min(output.len())..])
        }
        (None, None) => say("404 Not Found", "", b""),
    };
    let _ = stream.write_all(&text);
}

fn options(allowed: &str) -> Options {
    let allowed = allowed.parse().expect("a network");
    Options { remote_addresses: AddressPolicy::cluster().allow([allowed]), ..Options::default() }
}

async fn cluster(seed: u64, resources: &[&str], options: Options) -> TestCluster {
    let list: String = resources.iter().map(|r| format!("- {r}\n")).collect();
    let files = [("kustomization.yaml", format!("resources:\n{list}")), ("own.yaml", map("own", "1"))];
    let cluster = test_cluster_with(seed, &files, options, fl_runtime::Options::default()).await;
    cluster.ready("GitRepository", "app").await;
    kustomization(&cluster, "app", "").await;
    cluster
}

fn message(object: &Value) -> String {
    assert_eq!(condition(object, "Ready")["reason"], "BuildFailed", "{object:#}");
    condition(object, "Ready")["message"].as_str().unwrap_or_default().to_owned()
}

async fn value(cluster: &TestCluster, name: &str) -> Value {
    cluster.get("ConfigMap", name).await.map(|o| o["data"]["key"].clone()).unwrap_or_default()
}

/// A repository and a file are built with the artifact's own files, and what they become shows on the next interval, though the
/// artifact is the same.
#[test]
fn changed_remote_bases_are_applied() {
    run(async {
        let elsewhere = Elsewhere::start("127.0.0.1");
        let file = elsewhere.put("/file.yaml", &map("file", "1"));
        let base = [
            ("dir/kustomization.yaml", "resources: [m.yaml]\n".to_owned()),
            ("dir/m.yaml", map("base", "1")),
        ];
        let repository = format!("{}//dir?ref=main", elsewhere.commit(&base));
        let cluster = cluster(81, &["own.yaml", &file, &repository], options("127.0.0.1")).await;
        let ready = cluster.ready("Kustomization", "app").await;
        assert_eq!(ready["status"]["inventory"]["entries"].as_array().map(Vec::len), Some(3));
        for name in ["own", "file", "base"] {
            assert_eq!(value(&cluster, name).await, "1", "{name}");
        }
        elsewhere.requests();
        elsewhere.put("/file.yaml", &map("file", "2"));
        elsewhere.commit(&[("dir/m.yaml", map("base", "2"))]);
        tokio::time::sleep(Duration::from_secs(12 * 60)).await;
        for (name, wanted) in [("own", "1"), ("file", "2"), ("base", "2")] {
            assert_eq!(value(&cluster, name).await, wanted, "{name}");
        }
        let first = elsewhere.requests().len();
        tokio::time::sleep(Duration::from_secs(11 * 60)).await;
        let second = elsewhere.requests().len();
        assert!(first > 0 && second > 0, "{first} and {second} requests");
    });
}

/// C03: switched off, nothing is asked for.
#[test]
fn remote_bases_can_be_switched_off() {
    run(async {
        let elsewhere = Elsewhere::start("127.0.0.1");
        let file = elsewhere.put("/file.yaml", &map("file", "1"));
        let off = Options { no_remote_bases: true, ..options("127.0.0.1") };
        let cluster = cluster(82, &["own.yaml", &file], off).await;
        let failed = message(&cluster.failed("Kustomization", "app").await);
        assert!(
            failed.starts_with("kustomize build failed: ") && failed.contains("--no-remote-bases"),
            "{failed}"
        );
        assert!(
            failed.contains("fs-security-constraint") && failed.contains("is not in or below"),
            "{failed}"
        );
        assert!(elsewhere.requests().is_empty());
        assert!(cluster.get("ConfigMap", "own").await.is_none());
    });
}

/// C03: addresses of this machine get no request, neither when a kustomization names them nor when a server that may be asked
/// redirects to them.
#[test]
fn forbidden_addresses_get_no_request() {
    run(async {
        let forbidden = Elsewhere::start("127.0.0.1");
        let secret = forbidden.put("/secret.yaml", &map("secret", "1"));
        let repository = forbidden.commit(&[("kustomization.yaml", "resources: []\n".to_owned())]);
        let allowed = Elsewhere::start("127.0.0.2");
        let port = forbidden.address.rsplit(':').next().unwrap_or_default().to_owned();
        let resources = [
            secret.clone(),
            repository.clone(),
            format!("http://localhost:{port}/secret.yaml"),
            allowed.redirect("/moved.yaml", &secret),
            allowed.redirect("/o/r.git", &repository),
        ];
        // Git follows a redirect of its first question.
        allowed.redirect("/o/r.git/info/refs", &format!("{repository}/info/refs?service=git-upload-pack"));
        for (i, resource) in resources.iter().enumerate() {
            let seed = 830 + u64::try_from(i).expect("few");
            let cluster = cluster(seed, &["own.yaml", resource], options("127.0.0.2")).await;
            let failed = message(&cluster.failed("Kustomization", "app").await);
            assert!(failed.contains("are refused: it is a loopback address"), "{resource}: {failed}");
            assert!(cluster.get("ConfigMap", "secret").await.is_none());
            cluster.stop();
        }
        assert!(forbidden.requests().is_empty());
        assert!(allowed.requests().len() >= 3);
    });
}

/// L01: a base that cannot be fetched is not an empty one: what was applied stays, and is followed again when it is back.
#[test]
fn unavailable_remote_base_prunes_no_object() {
    run(async {
        let elsewhere = Elsewhere::start("127.0.0.1");
        let file = elsewhere.put("/file.yaml", &map("file", "1"));
        let base = [("kustomization.yaml", "resources: [m.yaml]\n".to_owned()), ("m.yaml", map("base", "1"))];
        let repository = elsewhere.commit(&base);
        let cluster = cluster(84, &["own.yaml", &file, &repository], options("127.0.0.1")).await;
        cluster.ready("Kustomization", "app").await;
        elsewhere.with(|s| s.away = true);
        let failed = message(&cluster.failed("Kustomization", "app").await);
        assert!(failed.contains("503"), "{failed}");
        tokio::time::sleep(Duration::from_secs(3600)).await;
        for name in ["own", "file", "base"] {
            assert_eq!(value(&cluster, name).await, "1", "{name}");
        }
        elsewhere.with(|s| s.away = false);
        elsewhere.put("/file.yaml", &map("file", "2"));
        cluster.until("ConfigMap", "file", |o| o["data"]["key"] == "2").await;
        cluster.ready("Kustomization", "app").await;
    });
}

/// Two tenants on one host: the paths of tenant A are throttled, those of tenant B are not.
#[test]
fn remote_bases_are_not_throttled_by_another_tenants_bases() {
    run(async {
        let elsewhere = Elsewhere::start("127.0.0.1");
        let served = |name: &str| {
            let namespace = format!("  namespace: tenant-{name}\n");
            let content = map("file", "1").replace("  namespace: default\n", &namespace);
            elsewhere.put(&format!("/{name}/file.yaml"), &content)
        };
        let urls = [served("a"), served("b")];
        elsewhere.with(|s| s.throttled = Some("/a/".to_owned()));
        let cluster = cluster(86, &["own.yaml"], options("127.0.0.1")).await;
        for (name, url) in ["a", "b"].iter().zip(urls) {
            let repository = format!("https://git.example/{name}");
            let kustomization = format!("resources: [\"{url}\"]\n");
            cluster.git.push(&repository, "main", [("kustomization.yaml", kustomization.as_str())]);
            let namespace = format!("tenant-{name}");
            cluster
                .apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}))
                .await;
            let object = |kind: &str, spec: Value| {
                let group = if kind == "GitRepository" { "source" } else { "kustomize" };
                json!({"apiVersion": format!("{group}.toolkit.fluxcd.io/v1"), "kind": kind,
                    "metadata": {"name": "app", "namespace": namespace}, "spec": spec})
            };
            let source = json!({"url": repository, "interval": "1h", "ref": {"branch": "main"}});
            cluster.apply(object("GitRepository", source)).await;
            let source = json!({"kind": "GitRepository", "name": "app"});
            let spec = json!({"interval": "10m", "prune": true, "path": "./", "sourceRef": source});
            cluster.apply(object("Kustomization", spec)).await;
            let ready = loop {
                let kind = Kind::of::<fl_api::kustomize::Kustomization>();
                let found = cluster.user.get(&kind, Some(&namespace), "app").await.expect("the object");
                let ready = condition(&found, "Ready");
                if ready["status"] == "True" || ready["reason"] == "BuildFailed" {
                    break ready;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            };
            let expected = if *name == "a" { "False" } else { "True" };
            assert_eq!(ready["status"], expected, "{name}: {}", ready["message"]);
        }
    });
}
