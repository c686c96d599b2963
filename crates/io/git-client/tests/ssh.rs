//! Over SSH, with a server in this process that runs the real `git upload-pack`. Keys are made with `ssh-keygen`.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod server;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fl_git_client::{Address, Auth, FetchOptions, Reference, Remote, RemoteOptions};
use russh::server::{self as ssh, Handle, Msg, Session};
use russh::{Channel, ChannelId};
use server::{Repositories, commit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn make_key(folder: &Path, name: &str, arguments: &[&str]) -> (String, String) {
    let file = folder.join(name);
    let made = Command::new("ssh-keygen").args(["-q", "-C", "t", "-f"]).arg(&file).args(arguments).status();
    assert!(made.expect("ssh-keygen runs").success());
    let read = |path: PathBuf| std::fs::read_to_string(path).expect("a key");
    (read(file.clone()), read(file.with_extension("pub")))
}

struct Server {
    root: PathBuf,
    allowed: String,
    protocol: Option<String>,
    inputs: HashMap<ChannelId, tokio::process::ChildStdin>,
    /// Accepts everything and sends nothing.
    silent: bool,
}

impl ssh::Handler for Server {
    type Error = russh::Error;

    async fn auth_publickey(
        &mut self,
        user: &str,
        key: ssh::VerifiedPublicKey<'_>,
    ) -> Result<ssh::Auth, russh::Error> {
        let shown = key.public_key.to_openssh().unwrap_or_default();
        let known = shown.split(' ').nth(1) == self.allowed.split(' ').nth(1);
        Ok(if known && user == "git" { ssh::Auth::Accept } else { ssh::Auth::reject() })
    }

    async fn channel_open_session(
        &mut self,
        _: Channel<Msg>,
        reply: ssh::ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), russh::Error> {
        reply.accept().await;
        Ok(())
    }

    async fn env_request(
        &mut self,
        _: ChannelId,
        name: &str,
        value: &str,
        _: &mut Session,
    ) -> Result<(), russh::Error> {
        if name == "GIT_PROTOCOL" {
            self.protocol = Some(value.to_owned());
        }
        Ok(())
    }

    async fn exec_request(
        &mut self,
        id: ChannelId,
        command: &[u8],
        session: &mut Session,
    ) -> Result<(), russh::Error> {
        if self.silent {
            return Ok(());
        }
        let command = String::from_utf8_lossy(command).into_owned();
        let path = command
            .strip_prefix("git-upload-pack '")
            .and_then(|c| c.strip_suffix('\''))
            .expect("one quoted path");
        let place = self.root.join(path.trim_start_matches('/'));
        let mut child = tokio::process::Command::new("git")
            .arg("upload-pack")
            .arg(place)
            .env("GIT_PROTOCOL", self.protocol.clone().unwrap_or_default())
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()?;
        self.inputs.insert(id, child.stdin.take().expect("piped"));
        let (mut out, mut complaint) =
            (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
        let handle: Handle = session.handle();
        tokio::spawn(async move {
            let mut piece = vec![0; 16 << 10];
            while let Ok(n @ 1..) = out.read(&mut piece).await {
                let _ = handle.data(id, piece[..n].to_vec()).await;
            }
            let mut said = Vec::new();
            let _ = complaint.read_to_end(&mut said).await;
            let _ = handle.extended_data(id, 1, said).await;
            let _ = handle.eof(id).await;
            let _ = handle.close(id).await;
            let _ = child.wait().await;
        });
        Ok(())
    }

    async fn data(&mut self, id: ChannelId, data: &[u8], _: &mut Session) -> Result<(), russh::Error> {
        if let Some(input) = self.inputs.get_mut(&id) {
            let _ = input.write_all(data).await;
        }
        Ok(())
    }
}

struct Peer {
    port: u16,
    known_hosts: String,
    /// Open connections.
    open: Arc<AtomicUsize>,
}

async fn serve(root: &Path, keys: &Path, allowed: &str) -> Peer {
    serve_with(root, keys, allowed, false).await
}

async fn serve_with(root: &Path, keys: &Path, allowed: &str, silent: bool) -> Peer {
    let (host_key, host_public) = make_key(keys, "host", &["-t", "ed25519", "-N", ""]);
    let key = russh::keys::decode_secret_key(&host_key, None).expect("a host key");
    let config = Arc::new(ssh::Config {
        keys: vec![key],
        auth_rejection_time: std::time::Duration::from_millis(1),
        ..Default::default()
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (root, allowed) = (root.to_owned(), allowed.to_owned());
    let open = Arc::new(AtomicUsize::new(0));
    let counted = open.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let server = Server {
                root: root.clone(),
                allowed: allowed.clone(),
                protocol: None,
                inputs: HashMap::new(),
                silent,
            };
            let (config, counted) = (config.clone(), counted.clone());
            tokio::spawn(async move {
                counted.fetch_add(1, Ordering::SeqCst);
                if let Ok(running) = ssh::run_stream(config, stream, server).await {
                    let _ = running.await;
                }
                counted.fetch_sub(1, Ordering::SeqCst);
            });
        }
    });
    Peer { port, known_hosts: format!("[127.0.0.1]:{port} {host_public}"), open }
}

fn remote(peer: &Peer, path: &str, identity: &str, known_hosts: &str, password: Option<&str>) -> Remote {
    let timeout = Duration::from_secs(60);
    remote_within(timeout, peer, path, identity, known_hosts, password)
}

fn remote_within(
    timeout: Duration,
    peer: &Peer,
    path: &str,
    identity: &str,
    known_hosts: &str,
    password: Option<&str>,
) -> Remote {
    let url = format!("ssh://git@127.0.0.1:{}/{path}", peer.port);
    let mut data: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    data.insert("identity".into(), identity.as_bytes().to_vec());
    data.insert("known_hosts".into(), known_hosts.as_bytes().to_vec());
    if let Some(password) = password {
        data.insert("password".into(), password.as_bytes().to_vec());
    }
    let auth = Auth::from_secret(&Address::parse(&url).unwrap(), &data).unwrap();
    let options = RemoteOptions { timeout, ..RemoteOptions::new(fl_http::Owner::engine()) };
    Remote::new(&url, auth, options).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn fetches_with_deploy_keys_of_every_kind() {
    let all = Repositories::new();
    let tree = all.make("app");
    let first = commit(&tree, &[("x.txt", "1")], "one");
    let second = commit(&tree, &[("x.txt", "2")], "two");
    for (at, arguments) in [
        &["-t", "ed25519", "-N", ""][..],
        &["-t", "ecdsa", "-b", "256", "-N", ""],
        &["-t", "rsa", "-b", "2048", "-N", ""],
        &["-t", "rsa", "-b", "2048", "-N", "", "-m", "PEM"],
        &["-t", "ed25519", "-N", "open sesame"],
    ]
    .into_iter()
    .enumerate()
    {
        let keys = tempfile::tempdir().unwrap();
        let (identity, public) = make_key(keys.path(), "id", arguments);
        let peer = serve(all.root.path(), keys.path(), &public).await;
        let password = arguments.contains(&"open sesame").then_some("open sesame");
        let remote = remote(&peer, "app.git", &identity, &peer.known_hosts, password);
        let resolved = remote
            .resolve(&Reference::Branch("main".into()), false)
            .await
            .unwrap_or_else(|e| panic!("key {at}: {e}"))
            .unwrap();
        assert_eq!(resolved.revision(), format!("main@sha1:{second}"));
        let mut checkout = remote.fetch(&resolved, &FetchOptions::default()).await.unwrap();
        let entry = checkout.snapshot.entries()[0].clone();
        assert_eq!(checkout.snapshot.read_file(&entry, 10).unwrap(), b"2");
        let pinned = Reference::Commit { commit: first.clone(), branch: Some("main".into()), name: None };
        let resolved = remote.resolve(&pinned, false).await.unwrap().unwrap();
        assert_eq!(
            remote.fetch(&resolved, &FetchOptions::default()).await.unwrap().commit.id.to_string(),
            first
        );
    }
}

/// N15: a server that accepts the connection and the command and then sends nothing: the operation ends at its deadline, and
/// neither the connection nor the thread that read from it stay.
#[tokio::test(flavor = "multi_thread")]
async fn a_silent_server_holds_no_connection_after_the_deadline() {
    let all = Repositories::new();
    let keys = tempfile::tempdir().unwrap();
    let (identity, public) = make_key(keys.path(), "id", &["-t", "ed25519", "-N", ""]);
    let peer = serve_with(all.root.path(), keys.path(), &public, true).await;
    let timeout = Duration::from_millis(500);
    for _ in 0..3 {
        let remote = remote_within(timeout, &peer, "app.git", &identity, &peer.known_hosts, None);
        let error = remote.resolve(&Reference::Branch("main".into()), false).await.unwrap_err();
        assert!(error.to_string().ends_with("context deadline exceeded"), "{error}");
    }
    for _ in 0..50 {
        if peer.open.load(Ordering::SeqCst) == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{} connections are still open", peer.open.load(Ordering::SeqCst));
}

/// E05: another host key, an unknown host, a revoked key. No connection is used.
#[tokio::test(flavor = "multi_thread")]
async fn unknown_wrong_and_revoked_host_keys_are_refused() {
    let all = Repositories::new();
    commit(&all.make("app"), &[("x", "1")], "one");
    let keys = tempfile::tempdir().unwrap();
    let (identity, public) = make_key(keys.path(), "id", &["-t", "ed25519", "-N", "secret"]);
    let (stranger, other) = make_key(keys.path(), "other", &["-t", "ed25519", "-N", ""]);
    let peer = serve(all.root.path(), keys.path(), &public).await;
    let main = Reference::Branch("main".into());
    let refused = |identity: String, known: String, password: Option<&'static str>, path: &'static str| {
        let (remote, main) = (remote(&peer, path, &identity, &known, password), main.clone());
        async move { remote.resolve(&main, false).await.unwrap_err().to_string() }
    };
    let known = || peer.known_hosts.clone();
    let mismatch = format!("[127.0.0.1]:{} {other}", peer.port);
    assert!(
        refused(identity.clone(), mismatch, Some("secret"), "app.git")
            .await
            .ends_with("ssh: handshake failed: knownhosts: key mismatch")
    );
    let unknown = format!("other.example {other}");
    assert!(
        refused(identity.clone(), unknown, Some("secret"), "app.git")
            .await
            .ends_with("ssh: handshake failed: knownhosts: key is unknown")
    );
    let revoked = format!("{}@revoked * {}", known(), known().split_once(' ').unwrap().1);
    assert!(
        refused(identity.clone(), revoked, Some("secret"), "app.git")
            .await
            .ends_with("knownhosts: key is revoked")
    );
    assert!(refused(stranger, known(), None, "app.git").await.contains("unable to authenticate"));
    assert!(
        refused(identity.clone(), known(), Some("wrong"), "app.git")
            .await
            .contains("cannot be read with the given passphrase")
    );
    assert!(refused(identity.clone(), known(), None, "app.git").await.contains("encrypted"));
    let missing = refused(identity, known(), Some("secret"), "none.git").await;
    assert_eq!(
        missing,
        format!(
            "unable to clone: repository not found: git repository: 'ssh://git@127.0.0.1:{}/none.git'",
            peer.port
        )
    );
}
