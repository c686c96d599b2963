//! Repositories made with the real git, and servers for them on loopback.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test file uses its part of this; a failed step fails the test"
)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A folder with bare repositories.
pub(crate) struct Repositories {
    pub(crate) root: tempfile::TempDir,
}

pub(crate) fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@example.com")])
        .envs([("GIT_COMMITTER_NAME", "a"), ("GIT_COMMITTER_EMAIL", "a@example.com")])
        .env("GIT_ALLOW_PROTOCOL", "file")
        .output()
        .expect("git runs");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

impl Repositories {
    pub(crate) fn new() -> Self {
        Self { root: tempfile::tempdir().expect("a folder") }
    }

    /// A work tree whose pushes go to `<name>.git`.
    pub(crate) fn make(&self, name: &str) -> PathBuf {
        let (bare, tree) =
            (self.root.path().join(format!("{name}.git")), self.root.path().join(format!("{name}.tree")));
        git(self.root.path(), &["init", "-q", "--bare", "-b", "main", &bare.display().to_string()]);
        git(self.root.path(), &["init", "-q", "-b", "main", &tree.display().to_string()]);
        git(&tree, &["remote", "add", "origin", &bare.display().to_string()]);
        tree
    }
}

/// Writes files, commits and pushes; answers the commit.
pub(crate) fn commit(tree: &Path, files: &[(&str, &str)], message: &str) -> String {
    for (path, text) in files {
        let path = tree.join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        std::fs::write(path, text).expect("a file");
    }
    git(tree, &["add", "-A"]);
    git(tree, &["commit", "-q", "--allow-empty", "-m", message]);
    let branch = git(tree, &["rev-parse", "--abbrev-ref", "HEAD"]);
    git(tree, &["push", "-q", "-f", "origin", &branch]);
    git(tree, &["rev-parse", "HEAD"])
}

/// `git http-backend` behind the smallest web server.
pub(crate) struct Web {
    pub(crate) address: String,
    pub(crate) requests: Arc<AtomicUsize>,
}

impl Web {
    /// `login` is `user:password` in base64; `protocol2`: whether the client's request for version 2 is passed on.
    pub(crate) async fn serve(root: &Path, login: Option<&'static str>, protocol2: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let requests = Arc::new(AtomicUsize::new(0));
        let (root, counted) = (root.to_owned(), requests.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (root, counted) = (root.clone(), counted.clone());
                tokio::spawn(async move {
                    let _ = answer(stream, &root, login, protocol2, &counted).await;
                });
            }
        });
        Self { address, requests }
    }

    pub(crate) fn count(&self) -> usize {
        self.requests.swap(0, Ordering::SeqCst)
    }
}

async fn answer(
    mut stream: TcpStream,
    root: &Path,
    login: Option<&str>,
    protocol2: bool,
    counted: &AtomicUsize,
) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    counted.fetch_add(1, Ordering::SeqCst);
    let head = String::from_utf8_lossy(&head).into_owned();
    let header = |name: &str| {
        head.lines().find_map(|l| {
            l.split_once(": ").filter(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.trim().to_owned())
        })
    };
    let mut body = vec![0; header("content-length").and_then(|l| l.parse().ok()).unwrap_or(0)];
    stream.read_exact(&mut body).await?;
    if login.is_some_and(|l| header("authorization").as_deref() != Some(&format!("Basic {l}"))) {
        return stream
            .write_all(b"HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Length: 5\r\n\r\nno go")
            .await;
    }
    let mut words = head.split(' ');
    let (method, target) =
        (words.next().unwrap_or_default().to_owned(), words.next().unwrap_or_default().to_owned());
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let mut child = tokio::process::Command::new("git")
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REQUEST_METHOD", method)
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("CONTENT_TYPE", header("content-type").unwrap_or_default())
        .env("CONTENT_LENGTH", body.len().to_string())
        .env("GIT_PROTOCOL", header("git-protocol").filter(|_| protocol2).unwrap_or_default())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()?;
    let mut input = child.stdin.take().expect("piped");
    input.write_all(&body).await?;
    drop(input);
    let output = child.wait_with_output().await?.stdout;
    let split = output.windows(4).position(|w| w == b"\r\n\r\n").unwrap_or(0);
    let (cgi, content) =
        (String::from_utf8_lossy(&output[..split]).into_owned(), &output[(split + 4).min(output.len())..]);
    let status = cgi.lines().find_map(|l| l.strip_prefix("Status: ")).unwrap_or("200 OK");
    let kind = cgi.lines().find_map(|l| l.strip_prefix("Content-Type: ")).unwrap_or("text/plain");
    let answer = format!(
        "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
        content.len()
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.write_all(content).await
}
