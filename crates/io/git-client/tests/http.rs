//! Against the real `git http-backend`.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod server;

use std::collections::BTreeMap;

use fl_git_client::{
    Address, Auth, Branches, Checkout, Error, FetchOptions, Kind, Reference, Remote, RemoteOptions,
};
use server::{Repositories, Web, commit, git};

fn remote(url: &str, secret: &[(&str, &str)]) -> Remote {
    let data: BTreeMap<String, Vec<u8>> =
        secret.iter().map(|(k, v)| ((*k).to_owned(), v.as_bytes().to_vec())).collect();
    let auth = Auth::from_secret(&Address::parse(url).unwrap(), &data).unwrap();
    Remote::new(url, auth, RemoteOptions::new(fl_http::Owner::engine())).unwrap()
}

async fn fetch(
    remote: &Remote,
    reference: Reference,
    options: &FetchOptions,
) -> Result<(String, Checkout), Error> {
    let resolved = remote.resolve(&reference, false).await?.expect("not empty");
    Ok((resolved.revision(), remote.fetch(&resolved, options).await?))
}

fn listing(checkout: &mut Checkout) -> Vec<String> {
    let entries = checkout.snapshot.entries().to_vec();
    let shown = |e: &fl_git_client::Entry, text: &[u8]| match e.kind {
        Kind::Directory => format!("{}/", e.path),
        Kind::File { executable } => {
            format!(
                "{}{}={}",
                e.path,
                if executable { "*" } else { "" },
                String::from_utf8_lossy(text).trim()
            )
        }
    };
    entries.iter().map(|e| shown(e, &checkout.snapshot.read_file(e, 1 << 20).unwrap())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_reference() {
    for protocol2 in [true, false] {
        let all = Repositories::new();
        let tree = all.make("app");
        let first = commit(&tree, &[("a/x.yaml", "one"), ("b.txt", "b"), ("a.txt", "t")], "first commit");
        git(&tree, &["tag", "v1.0.0"]);
        git(&tree, &["tag", "1.2"]);
        let second = commit(&tree, &[("b.txt", "changed")], "second commit");
        git(&tree, &["tag", "-a", "v1.1.0", "-m", "annotated"]);
        git(&tree, &["tag", "2.0.0-rc.1"]);
        git(&tree, &["push", "-q", "origin", "--tags"]);
        git(&tree, &["checkout", "-q", "-b", "side", &first]);
        let side = commit(&tree, &[("side.txt", "s")], "on the side");
        let web = Web::serve(all.root.path(), None, protocol2).await;
        let url = format!("{}/app.git", web.address);
        let remote = remote(&url, &[]);
        let plain = FetchOptions::default();
        let tag = |t: &str| Reference::Tag(t.to_owned());
        let pinned = |commit: &str, branch: Option<&str>| Reference::Commit {
            commit: commit.to_owned(),
            branch: branch.map(str::to_owned),
            name: None,
        };
        for (reference, revision) in [
            (Reference::Branch("main".into()), format!("main@sha1:{second}")),
            (tag("v1.0.0"), format!("v1.0.0@sha1:{first}")),
            (tag("v1.1.0"), format!("v1.1.0@sha1:{second}")),
            (Reference::Semver("1.x".into()), format!("v1.1.0@sha1:{second}")),
            (Reference::Semver(">=1.0.0-0".into()), format!("2.0.0-rc.1@sha1:{second}")),
            (Reference::Name("refs/heads/main".into()), format!("refs/heads/main@sha1:{second}")),
            (Reference::Name("refs/tags/v1.1.0".into()), format!("refs/tags/v1.1.0@sha1:{second}")),
            (pinned(&first, Some("main")), format!("main@sha1:{first}")),
            (pinned(&side, None), format!("sha1:{side}")),
        ] {
            let (found, checkout) = fetch(&remote, reference.clone(), &plain)
                .await
                .unwrap_or_else(|e| panic!("{reference:?}: {e}"));
            assert_eq!(found, revision, "{reference:?}");
            assert!(found.ends_with(&checkout.commit.id.to_string()));
        }
        let (_, mut checkout) = fetch(&remote, pinned(&first, Some("main")), &plain).await.unwrap();
        assert_eq!(listing(&mut checkout), ["a/", "a/x.yaml=one", "a.txt=t", "b.txt=b"]);
        assert_eq!(checkout.commit.short_message(), "first commit");
        let (_, tagged) = fetch(&remote, tag("v1.1.0"), &plain).await.unwrap();
        assert!(tagged.commit.tag.unwrap().to_string().starts_with("v1.1.0@"));
        let failed =
            |reference: Reference| async { fetch(&remote, reference, &plain).await.unwrap_err().to_string() };
        assert_eq!(
            failed(Reference::Branch("none".into())).await,
            format!("unable to clone '{url}': couldn't find remote ref \"refs/heads/none\"")
        );
        assert_eq!(
            failed(tag("v9")).await,
            format!("unable to clone '{url}': couldn't find remote ref \"refs/tags/v9\"")
        );
        assert_eq!(failed(Reference::Semver("9.x".into())).await, "no match found for semver: 9.x");
        assert_eq!(
            failed(Reference::Semver("not a range".into())).await,
            "semver parse error: improper constraint: \"not a range\""
        );
        assert_eq!(
            failed(Reference::Name("refs/x".into())).await,
            "unable to resolve ref 'refs/x' to a specific commit"
        );
        let unknown = "1".repeat(40);
        assert_eq!(
            failed(pinned(&unknown, Some("main"))).await,
            format!("unable to resolve commit object for '{unknown}': object not found")
        );
        // Its parent is on the branch, it is not.
        assert_eq!(
            failed(pinned(&side, Some("main"))).await,
            format!("unable to resolve commit object for '{side}': object not found")
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_beside_branches_may_be_asked_to_be_on_one() {
    let all = Repositories::new();
    let tree = all.make("app");
    commit(&tree, &[("x", "1")], "one");
    git(&tree, &["push", "-q", "origin", "HEAD:refs/pull/1/head"]);
    commit(&tree, &[("x", "2")], "two");
    git(&tree, &["checkout", "-q", "-b", "gone"]);
    let alone = commit(&tree, &[("x", "3")], "three");
    git(&tree, &["push", "-q", "origin", "HEAD:refs/pull/2/head", "HEAD:refs/tags/v1"]);
    git(&tree, &["push", "-q", "origin", "--delete", "gone"]);
    let web = Web::serve(all.root.path(), None, true).await;
    let remote = remote(&format!("{}/app.git", web.address), &[]);
    let name = |n: &str| Reference::Name(n.to_owned());
    let missing = format!("unable to resolve commit object for '{alone}': object not found");
    for branches in [Branches::All, Branches::One("main".to_owned())] {
        let options = FetchOptions { only_on: Some(branches), ..FetchOptions::default() };
        assert!(fetch(&remote, name("refs/pull/1/head"), &options).await.is_ok());
        let error = fetch(&remote, name("refs/pull/2/head"), &options).await.unwrap_err();
        assert_eq!(error.to_string(), missing);
        let error = fetch(&remote, name("HEAD"), &options).await.unwrap_err();
        assert!(error.to_string().contains("'0000000000000000000000000000000000000000'"), "{error}");
        // Tags are cloned by their name.
        assert!(fetch(&remote, name("refs/tags/v1"), &options).await.is_ok());
    }
    assert!(fetch(&remote, name("refs/pull/2/head"), &FetchOptions::default()).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unchanged_repository_costs_one_request() {
    let all = Repositories::new();
    let tree = all.make("app");
    commit(&tree, &[("x", "1")], "one");
    let web = Web::serve(all.root.path(), None, true).await;
    let remote = remote(&format!("{}/app.git", web.address), &[]);
    let main = Reference::Branch("main".into());
    remote.resolve(&main, false).await.unwrap();
    assert_eq!(web.count(), 2, "what the server can do, and the listing");
    remote.resolve(&main, true).await.unwrap();
    assert_eq!(web.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn logins_and_their_refusal() {
    let all = Repositories::new();
    let tree = all.make("app");
    commit(&tree, &[("x", "1")], "one");
    // user:secret
    let web = Web::serve(all.root.path(), Some("dXNlcjpzZWNyZXQ="), true).await;
    let url = format!("{}/app.git", web.address);
    let main = Reference::Branch("main".into());
    let good = remote(&url, &[("username", "user"), ("password", "secret")]);
    assert!(fetch(&good, main.clone(), &FetchOptions::default()).await.is_ok());
    for secret in [&[][..], &[("username", "user")], &[("username", "user"), ("password", "canary")]] {
        let error = remote(&url, secret).resolve(&main, false).await.unwrap_err().to_string();
        assert_eq!(error, format!("unable to clone '{url}': authentication required: no go"));
        let error = remote(&url, secret).resolve(&main, true).await.unwrap_err().to_string();
        assert_eq!(error, format!("unable to list remote for '{url}': authentication required: no go"));
    }
    let inside = url.replace("http://", "http://user:canary@");
    let error = remote(&inside, &[]).resolve(&main, false).await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_repositories_and_references_are_rejected() {
    let all = Repositories::new();
    all.make("empty");
    let web = Web::serve(all.root.path(), None, true).await;
    let main = Reference::Branch("main".into());
    let empty = remote(&format!("{}/empty.git", web.address), &[]);
    assert_eq!(empty.resolve(&main, false).await.unwrap(), None);
    let url = format!("{}/none.git", web.address);
    let error = remote(&url, &[]).resolve(&main, false).await.unwrap_err().to_string();
    assert!(error.starts_with(&format!("unable to clone '{url}': repository not found: ")), "{error}");
    // A plain address has no use for certificates; they need not be any.
    let plain = remote(&format!("{}/empty.git", web.address), &[("ca.crt", "no certificate")]);
    assert_eq!(plain.resolve(&main, false).await.unwrap(), None);
    let nobody = remote("http://127.0.0.1:1/x.git", &[]).resolve(&main, false).await.unwrap_err().to_string();
    assert_eq!(
        nobody,
        "unable to clone 'http://127.0.0.1:1/x.git': Get \"http://127.0.0.1:1/x.git/info/refs?service=git-upload-pack\": \
         dial tcp 127.0.0.1:1: connect: connection refused"
    );
    // What is wrong with a key is found before anybody is called.
    let secret = [("identity", "no key"), ("known_hosts", "h ssh-ed25519 AAAA")];
    let keyless = remote("ssh://git@127.0.0.1:1/x.git", &secret).resolve(&main, false).await.unwrap_err();
    assert_eq!(keyless.to_string(), "unable to construct auth method with options: ssh: no key found");
}

#[tokio::test(flavor = "multi_thread")]
async fn sparse_links_and_submodules() {
    let all = Repositories::new();
    let library = all.make("lib");
    commit(&library, &[("lib.txt", "library")], "lib");
    let tree = all.make("app");
    commit(&tree, &[("a/1.txt", "1"), ("ab.txt", "2"), ("c/d/3.txt", "3"), ("run.sh", "x")], "files");
    std::os::unix::fs::symlink("/etc/passwd", tree.join("a/link")).unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(tree.join("run.sh"), executable).unwrap();
    let bare = all.root.path().join("lib.git");
    git(
        &tree,
        &[
            "-c",
            "protocol.file.allow=always",
            "submodule",
            "add",
            "-q",
            &bare.display().to_string(),
            "vendor/lib",
        ],
    );
    std::fs::write(
        tree.join(".gitmodules"),
        "[submodule \"vendor/lib\"]\n\tpath = vendor/lib\n\turl = ../lib.git\n",
    )
    .unwrap();
    commit(&tree, &[], "all of it");
    git(&all.root.path().join("app.git"), &["config", "uploadpack.allowFilter", "true"]);
    let web = Web::serve(all.root.path(), None, true).await;
    let remote = remote(&format!("{}/app.git", web.address), &[]);
    let main = || Reference::Branch("main".into());
    let sparse = FetchOptions { sparse: vec!["./a".into(), "c/d".into()], ..FetchOptions::default() };
    let (_, mut checkout) = fetch(&remote, main(), &sparse).await.unwrap();
    assert_eq!(listing(&mut checkout), ["a/", "a/1.txt=1", "ab.txt=2", "c/", "c/d/", "c/d/3.txt=3"]);
    assert!(
        checkout.snapshot.has_path("./a/")
            && checkout.snapshot.has_path("a/link")
            && !checkout.snapshot.has_path("nope")
    );
    let (_, mut plain) = fetch(&remote, main(), &FetchOptions::default()).await.unwrap();
    let names = listing(&mut plain);
    assert!(names.contains(&"run.sh*=x".to_owned()) && names.last().unwrap() == "vendor/lib/", "{names:?}");
    let recurse = FetchOptions { recurse_submodules: true, ..FetchOptions::default() };
    let (_, mut whole) = fetch(&remote, main(), &recurse).await.unwrap();
    let names = listing(&mut whole);
    assert_eq!(
        names[names.len() - 3..],
        [
            "vendor/lib/",
            "vendor/lib/.git=gitdir: ../../.git/modules/vendor/lib",
            "vendor/lib/lib.txt=library"
        ]
    );
    // One that is gone is a clone that failed.
    let modules = "[submodule \"vendor/lib\"]\n\tpath = vendor/lib\n\turl = ../gone.git\n";
    commit(&tree, &[(".gitmodules", modules)], "gone");
    let error = fetch(&remote, main(), &recurse).await.unwrap_err().to_string();
    let url = remote.address().shown();
    assert!(error.starts_with(&format!("unable to clone '{url}': repository not found: ")), "{error}");
}
