//! HTTP servers and proxies on loopback whose responses a test decides.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A request as a server or proxy received it.
pub(crate) struct Request {
    pub(crate) method: String,
    /// As sent: a proxy gets the whole URL of a plain request.
    pub(crate) target: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    /// The target without scheme and host.
    pub(crate) fn path(&self) -> &str {
        match self.target.strip_prefix("http://") {
            Some(rest) => rest.find('/').map_or("/", |at| &rest[at..]),
            None => &self.target,
        }
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(n, _)| n == name).map_or("", |(_, v)| v)
    }
}

/// A whole response.
pub(crate) type Response = Vec<u8>;

pub(crate) fn response(status: &str, headers: &str, body: &[u8]) -> Response {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

pub(crate) fn ok(body: &[u8]) -> Response {
    response("200 OK", "", body)
}

pub(crate) fn not_found() -> Response {
    response("404 Not Found", "", b"")
}

/// An hour of silence is asked for.
pub(crate) fn too_many_requests() -> Response {
    response("429 Too Many Requests", "Retry-After: 3600\r\n", b"")
}

pub(crate) fn redirect(to: &str) -> Response {
    response("302 Found", &format!("Location: {to}\r\n"), b"")
}

pub(crate) struct Server {
    /// Host and port.
    pub(crate) host: String,
    requests: Arc<AtomicUsize>,
}

impl Server {
    pub(crate) fn start(respond: impl Fn(&Request) -> Response + Send + Sync + 'static) -> Self {
        Self::listen(None, respond)
    }

    /// Over TLS only.
    pub(crate) fn start_tls(
        tls: Arc<rustls::ServerConfig>,
        respond: impl Fn(&Request) -> Response + Send + Sync + 'static,
    ) -> Self {
        Self::listen(Some(tls), respond)
    }

    fn listen(
        tls: Option<Arc<rustls::ServerConfig>>,
        respond: impl Fn(&Request) -> Response + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let host = listener.local_addr().expect("an address").to_string();
        let (requests, respond) = (Arc::new(AtomicUsize::new(0)), Arc::new(respond));
        let counter = requests.clone();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let (tls, respond, counter) = (tls.clone(), respond.clone(), counter.clone());
                std::thread::spawn(move || match tls {
                    None => serve(&mut stream, respond.as_ref(), &counter),
                    Some(config) => {
                        let session = rustls::ServerConnection::new(config).expect("a session");
                        let mut stream = rustls::StreamOwned::new(session, stream);
                        serve(&mut stream, respond.as_ref(), &counter);
                        stream.conn.send_close_notify();
                        let _ = stream.flush();
                    }
                });
            }
        });
        Self { host, requests }
    }

    /// Requests so far.
    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

fn serve(stream: &mut (impl Read + Write), respond: &dyn Fn(&Request) -> Response, counter: &AtomicUsize) {
    let mut reader = BufReader::new(&mut *stream);
    let (mut lines, mut line) = (Vec::new(), String::new());
    while reader.read_line(&mut line).is_ok_and(|n| n > 2) {
        lines.push(std::mem::take(&mut line).trim_end().to_owned());
    }
    let Some(first) = lines.first().cloned() else { return };
    let headers: Vec<(String, String)> = lines
        .iter()
        .filter_map(|l| l.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let length = headers.iter().find(|(n, _)| n == "content-length").and_then(|(_, v)| v.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    let mut words = first.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let request = Request { method: method.to_owned(), target: target.to_owned(), headers, body };
    counter.fetch_add(1, Ordering::SeqCst);
    let mut response = respond(&request);
    if method == "HEAD" {
        let end = response.windows(4).position(|w| w == b"\r\n\r\n").map_or(response.len(), |at| at + 4);
        response.truncate(end);
    }
    let _ = stream.write_all(&response);
    let _ = stream.flush();
}

fn git(directory: &Path, arguments: &[&str]) -> String {
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
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A folder with the bare repository `app.git`, and the commit it has.
pub(crate) fn repository(content: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    git(folder.path(), &["init", "-q", "--bare", "-b", "main", "app.git"]);
    git(folder.path(), &["init", "-q", "-b", "main", "tree"]);
    let tree = folder.path().join("tree");
    std::fs::write(tree.join("app.yaml"), content).expect("a file");
    git(&tree, &["add", "-A"]);
    git(&tree, &["commit", "-q", "-m", "x"]);
    git(&tree, &["push", "-q", "../app.git", "main"]);
    let commit = git(&tree, &["rev-parse", "HEAD"]);
    (folder, commit)
}

/// The response of `git http-backend`.
pub(crate) fn git_backend(root: &Path, request: &Request) -> Response {
    let (path, query) = request.path().split_once('?').unwrap_or((request.path(), ""));
    let mut child = Command::new("git")
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REQUEST_METHOD", &request.method)
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("CONTENT_TYPE", request.header("content-type"))
        .env("CONTENT_LENGTH", request.body.len().to_string())
        .env("GIT_PROTOCOL", request.header("git-protocol"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("git runs");
    let _ = child.stdin.take().expect("piped").write_all(&request.body);
    let output = child.wait_with_output().expect("git ends").stdout;
    let split = output.windows(4).position(|w| w == b"\r\n\r\n").unwrap_or(0);
    let cgi = String::from_utf8_lossy(&output[..split]).into_owned();
    let status = cgi.lines().find_map(|l| l.strip_prefix("Status: ")).unwrap_or("200 OK");
    let kind = cgi.lines().find(|l| l.starts_with("Content-Type: ")).unwrap_or("X-None: x");
    response(status, &format!("{kind}\r\n"), &output[(split + 4).min(output.len())..])
}

/// A certificate for this machine, and the PEM of its authority.
pub(crate) fn certificate() -> (Arc<rustls::ServerConfig>, String) {
    let mut params = rcgen::CertificateParams::new(Vec::new()).expect("parameters");
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().expect("a key");
    let authority = params.self_signed(&key).expect("an authority");
    let issuer = rcgen::Issuer::new(params, key);
    let server_key = rcgen::KeyPair::generate().expect("a key");
    let server = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()])
        .expect("parameters")
        .signed_by(&server_key, &issuer)
        .expect("a certificate");
    let key = rustls::pki_types::PrivateKeyDer::try_from(server_key.serialize_der()).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![server.der().clone()], key)
        .expect("a configuration");
    (Arc::new(config), authority.pem())
}
