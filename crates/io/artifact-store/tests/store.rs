//! Publishing, damage, retention and serving, as a controller and its consumers see them.

#![allow(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime};

use fl_archive::Mode;
use fl_artifact_store::{Check, Error, Hosts, Location, Retention, Store, StoreOptions, serve};
use fl_types::Algorithm;

fn store(root: &std::path::Path) -> Store {
    let retention = Retention { ttl: Duration::from_secs(60), records: 2 };
    Store::open(StoreOptions {
        root: root.into(),
        advertised: "source.local.".into(),
        algorithm: Algorithm::Sha256,
        retention,
    })
    .unwrap()
}

fn here() -> Location {
    Location::new("GitRepository", "apps", "podinfo").unwrap()
}

fn text(store: &Store, file: &str, content: &str) -> fl_artifact_store::Artifact {
    store
        .publish(&here(), file, |out| {
            out.write_all(content.as_bytes()).map_err(|source| Error::Io {
                action: "write",
                path: file.into(),
                source,
            })
        })
        .unwrap()
}

#[test]
fn a_published_file_has_its_path_digest_and_modes() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let artifact = text(&store, "abc.tar.gz", "hello\n");
    assert_eq!(artifact.path, "gitrepository/apps/podinfo/abc.tar.gz");
    assert_eq!(artifact.url, "http://source.local./gitrepository/apps/podinfo/abc.tar.gz");
    assert_eq!(
        artifact.digest.to_string(),
        "sha256:5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"
    );
    assert_eq!(artifact.size, 6);
    let file = store.file(&artifact.path).unwrap();
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(file.parent().unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn a_failed_write_leaves_the_old_artifact_and_no_half_file() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let old = text(&store, "same.tar.gz", "old");
    let failed: Result<_, Error> = store.publish(&here(), "same.tar.gz", |out| {
        out.write_all(b"half").unwrap();
        Err(Error::Algorithm("broken".into()))
    });
    assert!(failed.is_err());
    assert_eq!(store.check(&old.path, &old.digest).unwrap(), Check::Intact);
    assert_eq!(std::fs::read_dir(store.file(&old.path).unwrap().parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn damage_and_loss_are_found_and_unfinished_files_are_cleared_at_start() {
    let dir = tempfile::tempdir().unwrap();
    let first = store(dir.path());
    let artifact = text(&first, "a.tar.gz", "content");
    let file = first.file(&artifact.path).unwrap();
    std::fs::write(file.parent().unwrap().join(".unfinished-x"), "torn").unwrap();
    std::fs::write(&file, "c0ntent").unwrap();
    let again = store(dir.path());
    assert!(!file.parent().unwrap().join(".unfinished-x").exists());
    assert_eq!(again.check(&artifact.path, &artifact.digest).unwrap(), Check::Damaged);
    again.remove(&artifact.path).unwrap();
    again.remove(&artifact.path).unwrap();
    assert_eq!(again.check(&artifact.path, &artifact.digest).unwrap(), Check::Missing);
}

#[test]
fn the_same_tree_gives_the_same_digest() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let tree = |file: &str| {
        store.publish_tree::<Error>(&here(), file, |tar| {
            tar.directory(".")?;
            Ok(tar.file("a.yaml", Mode::File, 2, &mut b"a\n".as_slice())?)
        })
    };
    let (one, two) = (tree("1.tar.gz").unwrap(), tree("2.tar.gz").unwrap());
    assert_eq!(one.digest, two.digest);
    let mut bytes = Vec::new();
    let file = std::fs::File::open(store.file(&one.path).unwrap()).unwrap();
    flate2::read::GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes.len(), 5 * 512);
}

#[test]
fn retention_keeps_the_current_file_and_the_newest_others() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    for name in ["1", "2", "3", "4"] {
        let artifact = text(&store, name, name);
        let age = Duration::from_secs(10 * (5 - name.parse::<u64>().unwrap()));
        let file = std::fs::File::options().write(true).open(store.file(&artifact.path).unwrap()).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
    }
    store.link(&here(), "4", "latest").unwrap();
    let removed = store.collect(&here(), "1", SystemTime::now()).unwrap();
    let mut names: Vec<_> =
        removed.iter().map(|p| p.file_name().unwrap().to_string_lossy().into_owned()).collect();
    names.sort();
    assert_eq!(names, ["2", "3"], "two records stay: the current one, however old, and the newest other");
    let later = SystemTime::now() + Duration::from_secs(120);
    assert_eq!(store.collect(&here(), "1", later).unwrap().len(), 1, "past its time");
    assert!(store.file("gitrepository/apps/podinfo/1").unwrap().exists());
    store.remove_all(&here()).unwrap();
    assert!(store.collect(&here(), "1", later).unwrap().is_empty());
}

#[test]
fn no_part_of_a_path_leaves_the_store() {
    for bad in ["..", ".", "", "a/b", "a\\b", "a\0b"] {
        assert!(Location::new("kind", bad, "name").is_err(), "{bad:?}");
        assert!(here().path(bad).is_err(), "{bad:?}");
    }
    let dir = tempfile::tempdir().unwrap();
    assert!(store(dir.path()).file("a/../../etc/passwd").is_err());
}

fn get(address: SocketAddr, request: &str) -> String {
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(stream, "{request}\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_artifacts_are_served_with_etags_and_ranges() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(&dir.path().join("root"));
    std::fs::write(dir.path().join("secret"), "no").unwrap();
    let artifact = text(&store, "sha256:ab.tar.gz", "0123456789");
    store.link(&here(), "sha256:ab.tar.gz", "latest.tar.gz").unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let server =
        tokio::spawn(async move { serve(&store, listener, Hosts::Any, async { drop(stopped.await) }).await });
    let checks = tokio::task::spawn_blocking(move || {
        let path = format!("/{}", artifact.path);
        let whole = get(address, &format!("GET {path} HTTP/1.1"));
        assert!(whole.starts_with("HTTP/1.1 200") && whole.ends_with("0123456789"), "{whole}");
        let tag = whole.lines().find_map(|l| l.strip_prefix("etag: ")).unwrap().to_owned();
        assert!(
            get(address, &format!("GET {path} HTTP/1.1\r\nIf-None-Match: {tag}")).starts_with("HTTP/1.1 304")
        );
        let part = get(address, &format!("GET {path} HTTP/1.1\r\nRange: bytes=2-4"));
        assert!(
            part.starts_with("HTTP/1.1 206")
                && part.contains("bytes 2-4/10")
                && part.ends_with("\r\n\r\n234"),
            "{part}"
        );
        assert!(
            get(address, &format!("GET {path} HTTP/1.1\r\nRange: bytes=20-")).starts_with("HTTP/1.1 416")
        );
        for name in ["Range", "If-None-Match"] {
            let refused = get(address, &format!("GET {path} HTTP/1.1\r\n{name}: bytes=2-4 ü"));
            assert!(refused.starts_with("HTTP/1.1 400"), "{name}: {refused}");
        }
        let head = get(address, &format!("HEAD {path} HTTP/1.1"));
        assert!(head.contains("content-length: 10") && head.ends_with("\r\n\r\n"), "{head}");
        assert!(
            get(address, "GET /gitrepository/apps/podinfo/latest.tar.gz HTTP/1.1").ends_with("0123456789")
        );
        assert!(get(address, "GET / HTTP/1.1").contains("gitrepository/"));
        assert!(get(address, "GET /gitrepository HTTP/1.1").contains("location: gitrepository/"));
        for bad in
            ["/../secret", "/%2e%2e/secret", "/gitrepository/..%2f..%2fsecret", "/nothing", "/.unfinished-x"]
        {
            assert!(get(address, &format!("GET {bad} HTTP/1.1")).starts_with("HTTP/1.1 404"), "{bad}");
        }
        assert!(get(address, "DELETE / HTTP/1.1").starts_with("HTTP/1.1 405"));
    });
    checks.await.unwrap();
    stop.send(()).unwrap();
    server.await.unwrap();
}

/// I04: a page of another name that resolves to this machine reads nothing (DNS rebinding).
#[tokio::test(flavor = "multi_thread")]
async fn a_loopback_server_refuses_foreign_host_headers() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let artifact = text(&store, "a.tar.gz", "content");
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { serve(&store, listener, Hosts::Loopback, std::future::pending()).await });
    let checks = tokio::task::spawn_blocking(move || {
        let status = |request: String| {
            let mut stream = std::net::TcpStream::connect(address).unwrap();
            write!(stream, "{request}Connection: close\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            assert!(answer.ends_with("\r\n\r\ncontent") == answer.starts_with("HTTP/1.1 200"), "{answer}");
            answer.split(' ').nth(1).unwrap().to_owned()
        };
        let path = format!("/{}", artifact.path);
        let port = address.port();
        for host in [
            format!("127.0.0.1:{port}"),
            "localhost".to_owned(),
            format!("LOCALHOST:{port}"),
            "[::1]:80".to_owned(),
        ] {
            assert_eq!(status(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n")), "200", "{host}");
        }
        let foreign = [
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example:80",
            "10.0.0.1",
            "",
            "a@localhost.example",
        ];
        for host in foreign {
            assert_eq!(status(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n")), "403", "{host}");
        }
        assert_eq!(status(format!("GET {path} HTTP/1.0\r\n")), "403", "no Host header");
        let absolute = format!("GET http://evil.example{path} HTTP/1.1\r\nHost: localhost\r\n");
        assert_eq!(status(absolute), "403", "a foreign host in the request target");
    });
    checks.await.unwrap();
}
