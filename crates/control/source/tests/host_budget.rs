//! N10: a Git host or registry that answers 429 with Retry-After gets no request of that tenant before the window ends, from
//! any object of any kind. Tenants do not throttle each other: see the `isolation` tests of `fl-sim`.

#![allow(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fl_git_client::{Auth, Reference};
use fl_http::{ByteBudget, Owner};
use fl_oci::{RegistryOptions, Repository};
use fl_source::git::{GitClient, GitRequest, NetworkGit};
use fl_source::oci::{NetworkOci, OciClient};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const OWNER: &str = "apps";
const WINDOW: u64 = 120;

/// A host that answers 429 always; counts its requests.
async fn busy_host() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = requests.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            counted.fetch_add(1, Ordering::SeqCst);
            let answer = format!(
                "HTTP/1.1 429 Too Many Requests\r\nRetry-After: {WINDOW}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    (host, requests)
}

async fn git(host: &str, name: usize, scratch: &std::path::Path) -> String {
    let git = NetworkGit { scratch: scratch.to_owned(), ssh: fl_git_client::SshAlgorithms::default() };
    let request = GitRequest {
        owner: Owner::namespace(OWNER),
        url: format!("http://{host}/repository-{name}.git"),
        auth: Auth::Http { credentials: fl_http::Credentials::None, ca: None, client_certificate: None },
        proxy: None,
        timeout: Duration::from_secs(10),
        reference: Reference::Branch("main".to_owned()),
        lease: ByteBudget::shared().lease(Owner::namespace(OWNER), Duration::from_secs(10)),
    };
    git.open(&request).unwrap().resolve(false).await.unwrap_err().to_string()
}

async fn oci(host: &str, name: usize) -> String {
    let registry = NetworkOci
        .open(RegistryOptions { insecure: true, ..RegistryOptions::new(Owner::namespace(OWNER)) })
        .unwrap();
    let repository: Repository = Repository::parse(&format!("{host}/image-{name}")).unwrap();
    registry.resolve(&repository.tag("v1").unwrap()).await.unwrap_err().to_string()
}

#[tokio::test]
async fn all_objects_of_a_tenant_wait_for_a_throttled_host() {
    let scratch = tempfile::tempdir().unwrap();
    let (host, requests) = busy_host().await;
    git(&host, 0, scratch.path()).await;
    let first = requests.load(Ordering::SeqCst);
    assert_eq!(first, 1);
    // Twenty objects of two kinds, every ten seconds of the window.
    for _ in 0..WINDOW / 10 {
        for name in 0..10 {
            let (git, oci) = (git(&host, name, scratch.path()).await, oci(&host, name).await);
            for error in [git, oci] {
                assert!(error.contains("is throttled"), "{error}");
            }
        }
        assert_eq!(requests.load(Ordering::SeqCst), first, "requests inside the forbidden window");
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(10)).await;
        tokio::time::resume();
    }
    // The window is over; the next request starts another one.
    oci(&host, 0).await;
    for name in 0..10 {
        git(&host, name, scratch.path()).await;
    }
    assert_eq!(requests.load(Ordering::SeqCst), first + 1);
}
