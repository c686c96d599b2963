//! `bootstrap` from end to end: a Git server over HTTP, the embedded API server and the engine, and at the end a cluster that
//! delivers itself from the repository.

#[path = "../../io/git-client/tests/server/mod.rs"]
mod server;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use server::{Repositories, Web, git};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const PROGRAM: &str = env!("CARGO_BIN_EXE_fluorite");
/// `git:secret`
const LOGIN: &str = "Z2l0OnNlY3JldA==";
/// `acme:secret`
const OWNER_LOGIN: &str = "YWNtZTpzZWNyZXQ=";

/// The API server and the engine as processes; they end with this.
struct Cluster {
    children: Vec<Child>,
    kubeconfig: PathBuf,
    _folder: tempfile::TempDir,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Cluster {
    fn start() -> Cluster {
        let folder = tempfile::tempdir().expect("a folder");
        let kubeconfig = folder.path().join("kubeconfig");
        let start = |args: &[&str]| {
            let mut command = Command::new(PROGRAM);
            command.args(args).stderr(Stdio::null()).stdout(Stdio::null());
            command.spawn().expect("the program starts")
        };
        let config = kubeconfig.to_str().expect("text");
        let server = start(&[
            "apiserver",
            "--listen=127.0.0.1:0",
            "--simulate-workloads=20",
            "--kubeconfig-out",
            config,
        ]);
        let begin = Instant::now();
        while !kubeconfig.exists() {
            assert!(begin.elapsed() < Duration::from_secs(60), "the API server does not start");
            std::thread::sleep(Duration::from_millis(50));
        }
        let free =
            std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
        let store = folder.path().join("artifacts");
        let engine = start(&[
            "run",
            "--components=source,kustomize",
            "--kubeconfig",
            config,
            "--storage-path",
            store.to_str().expect("text"),
            "--storage-adv-addr",
            &free.to_string(),
            "--metrics-addr=0",
            "--health-addr=0",
        ]);
        Cluster { children: vec![server, engine], kubeconfig, _folder: folder }
    }

    fn fluorite(&self, args: &[&str], token: (&str, &str)) -> Output {
        let mut command = Command::new(PROGRAM);
        command.args(args).env("KUBECONFIG", &self.kubeconfig).env(token.0, token.1);
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        command.output().expect("the program runs")
    }
}

fn output(run: &Output) -> String {
    String::from_utf8_lossy(&run.stderr).into_owned()
}

fn bare(root: &Path, name: &str) {
    let path = root.join(name);
    std::fs::create_dir_all(&path).expect("a folder");
    git(&path, &["init", "-q", "--bare", "-b", "main", "."]);
    git(&path, &["config", "http.receivepack", "true"]);
}

fn tracked(root: &Path, name: &str) -> Vec<String> {
    git(&root.join(name), &["ls-tree", "-r", "--name-only", "main"]).lines().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn bootstrap_git_installs_and_syncs() {
    let repositories = Repositories::new();
    let root = repositories.root.path();
    bare(root, "fleet.git");
    let web = Web::serve(root, Some(LOGIN), true).await;
    let cluster = Cluster::start();
    let url = format!("--url={}/fleet.git", web.address);
    let words = ["bootstrap", "git", &url, "--allow-insecure-http", "--token-auth", "--timeout=2m"];
    let bootstrap = |path: &str| {
        let mut args = words.to_vec();
        args.push(path);
        cluster.fluorite(&args, ("GIT_PASSWORD", "secret"))
    };
    let first = bootstrap("--path=clusters/test");
    let text = output(&first);
    assert!(first.status.success(), "{text}");
    let steps = [
        "► cloning branch \"main\" from Git repository",
        "✔ cloned repository",
        "► generating component manifests",
        "✔ generated component manifests",
        "✔ committed component manifests to \"main\"",
        "► pushing component manifests to",
        "► installing components in \"flux-system\" namespace",
        "✔ installed components",
        "✔ reconciled components",
        "► determining if source secret \"flux-system/flux-system\" exists",
        "► generating source secret",
        "✔ reconciled source secret",
        "✔ generated sync manifests",
        "✔ committed sync manifests to \"main\"",
        "✔ reconciled sync configuration",
        "◎ waiting for GitRepository \"flux-system/flux-system\" to be reconciled",
        "✔ Kustomization reconciled successfully",
        "✔ all components are healthy",
    ];
    let mut rest = text.as_str();
    for step in steps {
        let at = rest.find(step).unwrap_or_else(|| panic!("{step:?} is missing or too late in:\n{text}"));
        rest = &rest[at + step.len()..];
    }
    assert_eq!(
        tracked(root, "fleet.git"),
        [
            "clusters/test/flux-system/gotk-components.yaml",
            "clusters/test/flux-system/gotk-sync.yaml",
            "clusters/test/flux-system/kustomization.yaml",
        ]
    );
    let again = bootstrap("--path=clusters/test");
    let text = output(&again);
    assert!(again.status.success(), "{text}");
    assert!(text.contains("✔ component manifests are up to date"), "{text}");
    assert!(text.contains("✔ sync manifests are up to date"), "{text}");
    let elsewhere = bootstrap("--path=clusters/other");
    assert!(!elsewhere.status.success());
    assert!(output(&elsewhere).contains("would overwrite path"), "{}", output(&elsewhere));
}

/// A Gitea of which only the API is made up; Git goes through to the real one behind it.
async fn gitea(root: PathBuf, behind: String, seen: Arc<Mutex<Vec<String>>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (root, behind, seen) = (root.clone(), behind.clone(), seen.clone());
            tokio::spawn(async move {
                let _ = answer(stream, &root, &behind, &seen).await;
            });
        }
    });
    address
}

async fn answer(
    mut stream: TcpStream,
    root: &Path,
    behind: &str,
    seen: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let text = String::from_utf8_lossy(&head).into_owned();
    let mut words = text.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    if !target.starts_with("/api/v1/") {
        let mut inner = TcpStream::connect(behind.trim_start_matches("http://")).await?;
        inner.write_all(&head).await?;
        tokio::io::copy_bidirectional(&mut stream, &mut inner).await?;
        return Ok(());
    }
    assert!(text.to_lowercase().contains("authorization: token secret"), "{text}");
    let length =
        text.lines().find_map(|l| l.to_lowercase().strip_prefix("content-length: ")?.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await?;
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let exists = root.join("acme/fleet.git").exists();
    let (status, answer) = match (method, target) {
        ("GET", "/api/v1/repos/acme/fleet") if exists => ("200 OK", json!({"private": true})),
        ("GET", "/api/v1/repos/acme/fleet") => ("404 Not Found", json!({"message": "not found"})),
        ("POST", "/api/v1/orgs/acme/repos") => {
            bare(root, "acme/fleet.git");
            ("201 Created", body.clone())
        }
        ("GET", "/api/v1/repos/acme/fleet/teams/ops") => ("404 Not Found", json!({})),
        ("PUT", "/api/v1/repos/acme/fleet/teams/ops") => ("204 No Content", Value::Null),
        _ => ("400 Bad Request", json!({"message": format!("{method} {target}?")})),
    };
    seen.lock().expect("no panic").push(format!("{method} {target} {body}"));
    let answer = if answer.is_null() { String::new() } else { answer.to_string() };
    let answer = format!(
        "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{answer}",
        answer.len()
    );
    stream.write_all(answer.as_bytes()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn bootstrap_gitea_creates_the_repository() {
    let repositories = Repositories::new();
    let root = repositories.root.path().to_owned();
    let web = Web::serve(&root, Some(OWNER_LOGIN), true).await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let host = gitea(root.clone(), web.address.clone(), seen.clone()).await;
    let cluster = Cluster::start();
    let hostname = format!("--hostname={host}");
    let words = ["bootstrap", "gitea", "--owner=acme", "--repository=fleet", "--team=ops", &hostname];
    let refused = cluster.fluorite(&words, ("GITEA_TOKEN", ""));
    assert!(output(&refused).contains("set GITEA_TOKEN"), "{}", output(&refused));
    // The cluster logs in as `git`, the bootstrap as the owner; this host takes only the latter, so it stops at the wait.
    let more = ["--token-auth", "--path=clusters/test", "--timeout=20s"];
    let args: Vec<&str> = words.into_iter().chain(more).collect();
    let run = cluster.fluorite(&args, ("GITEA_TOKEN", "secret"));
    let text = output(&run);
    for step in [
        "► connecting to 127.0.0.1",
        "/acme/fleet\" created",
        "► reconciling repository permissions",
        "✔ granted \"maintain\" permissions to \"ops\"",
        "✔ committed component manifests to \"main\"",
        "✔ reconciled source secret",
        "✔ committed sync manifests to \"main\"",
        "✔ reconciled sync configuration",
        "◎ waiting for GitRepository",
    ] {
        assert!(text.contains(step), "{step:?} is missing in:\n{text}");
    }
    assert!(!run.status.success(), "the login of the cluster is refused");
    assert_eq!(tracked(&root, "acme/fleet.git").len(), 3);
    let sync = git(&root.join("acme/fleet.git"), &["show", "main:clusters/test/flux-system/gotk-sync.yaml"]);
    assert!(sync.contains(&format!("url: {host}/acme/fleet.git")), "{sync}");
    let seen = seen.lock().expect("no panic").clone();
    assert!(
        seen.contains(&"POST /api/v1/orgs/acme/repos {\"name\":\"fleet\",\"private\":true}".to_owned()),
        "{seen:?}"
    );
}
