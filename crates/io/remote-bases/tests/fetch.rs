//! Against the real `git http-backend` on loopback.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

#[path = "../../git-client/tests/server/mod.rs"]
mod server;

use std::path::Path;
use std::time::Duration;

use fl_http::AddressPolicy;
use fl_kustomize::{Fetcher, LoadRestrictor, Memory, Options, Repository, build};
use fl_remote_bases::{FilesWithBases, Limits, RemoteBases};
use server::{Repositories, Web, commit, git};

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\n";

/// Builds on the blocking pool, as the controller does.
async fn built(kustomization: String, policy: AddressPolicy, limits: Limits) -> Result<String, String> {
    let work = move || {
        let mut own = Memory::new();
        own.add("/artifact/kustomization.yaml", kustomization);
        let bases = RemoteBases::new(fl_http::Owner::engine(), policy, limits);
        let options = Options {
            load_restrictor: LoadRestrictor::None,
            boundary: Some("/artifact".into()),
            fetcher: Some(&bases),
            ..Options::default()
        };
        let files = FilesWithBases { own: &own, bases: &bases };
        assert!(!bases.used());
        let output = build(&files, Path::new("/artifact"), &options).map_err(|e| e.to_string())?;
        assert!(bases.used());
        output.to_yaml().map_err(|e| e.to_string())
    };
    tokio::task::spawn_blocking(work).await.unwrap()
}

async fn open(kustomization: String) -> Result<String, String> {
    built(kustomization, AddressPolicy::default(), Limits::default()).await
}

fn base() -> (Repositories, std::path::PathBuf, String) {
    let all = Repositories::new();
    let tree = all.make("base");
    let first =
        commit(&tree, &[("dir/kustomization.yaml", "resources: [m.yaml]\n"), ("dir/m.yaml", MAP)], "first");
    git(&tree, &["tag", "v1"]);
    git(&tree, &["push", "-q", "origin", "--tags"]);
    commit(&tree, &[("dir/m.yaml", &MAP.replace("m}", "second}"))], "second");
    (all, tree, first)
}

#[tokio::test(flavor = "multi_thread")]
async fn references_of_every_kind_are_built() {
    let (all, _tree, first) = base();
    let web = Web::serve(all.root.path(), None, true).await;
    let first: &str = &first;
    for (reference, name) in [
        ("", "second"),
        ("?ref=main", "second"),
        ("?ref=heads/main", "second"),
        ("?ref=refs/heads/main", "second"),
        ("?ref=v1", "m"),
        ("?version=v1&timeout=5s", "m"),
        (&format!("?ref={first}"), "m"),
    ] {
        let text = open(format!("resources: ['{}/base.git//dir{reference}']\n", web.address)).await;
        assert!(text.as_ref().is_ok_and(|t| t.contains(&format!("name: {name}\n"))), "{reference}: {text:?}");
    }
    for (reference, wanted) in [
        ("?ref=none", "couldn't find remote ref"),
        ("?ref=ce013625030ba8dba906f756967f9e9ca394464a", "object not found"),
    ] {
        let error =
            open(format!("resources: ['{}/base.git//dir{reference}']\n", web.address)).await.unwrap_err();
        assert!(error.contains(wanted), "{error}");
    }
    let error = open(format!("resources: ['{}/base.git//none']\n", web.address)).await.unwrap_err();
    assert!(error.contains("No such file"), "{error}");
}

/// Each address is requested once in a build, whether it answers or not; two directories of one repository are one clone.
#[tokio::test(flavor = "multi_thread")]
async fn an_address_is_asked_once() {
    let (all, tree, _) = base();
    commit(&tree, &[("two/kustomization.yaml", "resources: [../dir]\nnamePrefix: two-\n")], "more");
    let web = Web::serve(all.root.path(), None, true).await;
    let url = format!("{}/base.git", web.address);
    open(format!("resources: ['{url}//dir', '{url}//two']\n")).await.unwrap();
    let first = web.count();
    // Two questions whether it is a file, then what the server can do, a listing and a pack.
    assert!(first <= 6, "{first}");
    let file = format!("{}/none.yaml", web.address);
    let error = open(format!(
        "configMapGenerator: [{{name: a, files: ['{file}']}}, {{name: b, files: ['{file}']}}]\n"
    ))
    .await;
    assert!(error.unwrap_err().contains("404"));
    assert_eq!(web.count(), 1);
}

/// C01, C03: links of a repository are not there, and what it names stays inside.
#[tokio::test(flavor = "multi_thread")]
async fn a_base_stays_inside_of_itself() {
    let (all, tree, _) = base();
    let secret = all.root.path().join("secret.yaml");
    std::fs::write(&secret, MAP).unwrap();
    for (name, target) in [("dir/link.yaml", secret.as_path()), ("dir/up", Path::new("../.."))] {
        std::os::unix::fs::symlink(target, tree.join(name)).unwrap();
    }
    let web = Web::serve(all.root.path(), None, true).await;
    for entry in
        ["link.yaml", "up/secret.yaml", "../../../../../etc", &secret.display().to_string(), "../../0/dir"]
    {
        commit(&tree, &[("dir/kustomization.yaml", &format!("resources: ['{entry}']\n"))], entry);
        let error = open(format!("resources: ['{}/base.git//dir']\n", web.address)).await.unwrap_err();
        assert!(
            ["no such file", "No such file", "security:", "cycle"].iter().any(|w| error.contains(w)),
            "{entry}: {error}"
        );
    }
    let files: &[&str] = &["file:///etc", "git@127.0.0.1:o/r"];
    for address in files {
        let error = open(format!("resources: ['{address}']\n")).await.unwrap_err();
        assert!(error.contains("are not fetched") || error.contains("over SSH"), "{error}");
    }
}

/// C03: a guarded fetcher makes no request to this machine, neither for files nor for repositories and their submodules.
#[tokio::test(flavor = "multi_thread")]
async fn forbidden_addresses_get_no_request() {
    let (all, tree, _) = base();
    let web = Web::serve(all.root.path(), None, true).await;
    for entry in [format!("{}/base.git//dir", web.address), format!("{}/x.yaml", web.address)] {
        for field in ["resources", "components"] {
            let kustomization = format!("{field}: ['{entry}']\n");
            let refused = built(kustomization, AddressPolicy::cluster(), Limits::default()).await;
            let error = refused.unwrap_err();
            assert!(
                error.contains("refused: it is a loopback address") || error.contains("no such file"),
                "{error}"
            );
        }
    }
    assert_eq!(web.count(), 0);
    // The repository is where it may be; its submodule is not.
    let port = web.address.rsplit(':').next().unwrap().to_owned();
    let sub = all.make("sub");
    let pinned = commit(&sub, &[("s.yaml", MAP)], "sub");
    let modules = format!("[submodule \"sub\"]\n\tpath = dir/sub\n\turl = http://127.0.0.1:{port}/sub.git\n");
    git(&tree, &["update-index", "--add", "--cacheinfo", &format!("160000,{pinned},dir/sub")]);
    std::fs::create_dir_all(tree.join("dir/sub")).unwrap();
    std::fs::write(tree.join(".gitmodules"), modules).unwrap();
    git(&tree, &["add", ".gitmodules"]);
    git(&tree, &["commit", "-q", "-m", "submodule"]);
    git(&tree, &["push", "-q", "origin", "main"]);
    let home = Web::serve(all.root.path(), None, true).await;
    let _ = (web.count(), &home);
    let elsewhere = peer_at(all.root.path(), "127.0.0.2").await;
    let policy = AddressPolicy::cluster().allow(["127.0.0.2/32".parse().unwrap()]);
    let error = built(format!("resources: ['{elsewhere}/base.git//dir']\n"), policy, Limits::default()).await;
    let error = error.unwrap_err();
    assert!(error.contains("/sub.git/info/refs") && error.contains("loopback"), "{error}");
    assert_eq!(web.count(), 0);
}

/// The same server under another address.
async fn peer_at(root: &Path, ip: &str) -> String {
    let web = Web::serve(root, None, true).await;
    let target = web.address.trim_start_matches("http://").to_owned();
    let listener = tokio::net::TcpListener::bind((ip, 0)).await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut here, _)) = listener.accept().await {
            let target = target.clone();
            tokio::spawn(async move {
                let mut there = tokio::net::TcpStream::connect(target).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut here, &mut there).await;
            });
        }
    });
    address
}

/// What a build may fetch is bounded in every way.
#[tokio::test(flavor = "multi_thread")]
async fn budgets() {
    let (all, tree, _) = base();
    commit(&tree, &[("large", &"x".repeat(100_000))], "large");
    let web = Web::serve(all.root.path(), None, true).await;
    let base = format!("resources: ['{}/base.git//dir']\n", web.address);
    let few = Limits { bytes: 50_000, ..Limits::default() };
    let error = built(base.clone(), AddressPolicy::default(), few).await.unwrap_err();
    assert!(error.contains("bytes that a build may fetch"), "{error}");
    let few = Limits { entries: 2, ..Limits::default() };
    let error = built(base.clone(), AddressPolicy::default(), few).await.unwrap_err();
    assert!(error.contains("more than a build may fetch"), "{error}");
    let few = Limits { addresses: 1, ..Limits::default() };
    let error = built(base.clone(), AddressPolicy::default(), few).await.unwrap_err();
    assert!(error.contains("more than 1 addresses"), "{error}");
    // A server that takes the question and never answers.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/o/r", silent.local_addr().unwrap());
    let start = std::time::Instant::now();
    let short = Limits { time: Duration::from_millis(500), ..Limits::default() };
    let error = built(format!("resources: ['{url}']\n"), AddressPolicy::default(), short).await.unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    assert!(error.contains("deadline exceeded") || error.contains("fetched for"), "{error}");
}

/// A command has no runtime; the folder is gone after the build.
#[test]
fn without_a_runtime_and_without_a_trace() {
    let (all, _tree, _) = base();
    let server = tokio::runtime::Runtime::new().unwrap();
    let web = server.block_on(Web::serve(all.root.path(), None, true));
    let bases = RemoteBases::new(fl_http::Owner::engine(), AddressPolicy::default(), Limits::default());
    let url = format!("{}/base.git//dir?ref=v1", web.address);
    let place = bases.checkout(&Repository::parse(&url).unwrap()).unwrap();
    assert!(place.join("dir/m.yaml").is_file());
    drop(bases);
    assert!(!place.parent().unwrap().exists());
}
