//! Remote content with an in-memory fetcher. The expected origins are those of kustomize 5.8.

#![allow(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;

use fl_kustomize::{
    ErrorKind, Fetcher, HostError, LoadRestrictor, Memory, Options, Output, Repository, build,
};

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\n";

/// Repositories by URL and reference, and files by URL.
#[derive(Default)]
struct RemoteServer {
    checkouts: HashMap<(String, String), PathBuf>,
    files: HashMap<String, String>,
    asked: RefCell<Vec<String>>,
}

impl Fetcher for RemoteServer {
    fn file(&self, url: &str) -> Result<Vec<u8>, HostError> {
        self.asked.borrow_mut().push(url.to_owned());
        self.files.get(url).map(|f| f.clone().into_bytes()).ok_or_else(|| "not found".into())
    }

    fn checkout(&self, repository: &Repository) -> Result<PathBuf, HostError> {
        self.asked.borrow_mut().push(format!("{}@{}", repository.url, repository.reference));
        let key = (repository.url.clone(), repository.reference.clone());
        self.checkouts.get(&key).cloned().ok_or_else(|| "no such repository".into())
    }
}

fn remote_server() -> RemoteServer {
    let mut all = RemoteServer::default();
    for (reference, root) in [("v1", "/elsewhere/0"), ("", "/elsewhere/1")] {
        let key = ("https://git.example/o/base.git".to_owned(), reference.to_owned());
        all.checkouts.insert(key, root.into());
    }
    all
}

fn run(files: &Memory, fetcher: &RemoteServer) -> Result<Output, fl_kustomize::Error> {
    let options = Options {
        load_restrictor: LoadRestrictor::None,
        boundary: Some("/artifact".into()),
        fetcher: Some(fetcher),
        ..Options::default()
    };
    build(files, "/artifact/app".as_ref(), &options)
}

#[test]
fn repositories_and_files_are_built() {
    let mut all = remote_server();
    all.files.insert("https://files.example/f.yaml".to_owned(), MAP.replace("m}", "f}"));
    // An HTML page of a Git host is not a file of objects.
    let page = "<!DOCTYPE html>\n<html><body>a: b</body></html>\n";
    all.files.insert("https://git.example/o/base.git".to_owned(), page.to_owned());
    let mut files = Memory::new();
    files
        .add(
            "/artifact/app/kustomization.yaml",
            "resources:\n- https://git.example/o/base.git//dir?ref=v1\n- https://git.example/o/base.git\n- https://files.example/f.yaml\nbuildMetadata: [originAnnotations]\n",
        )
        .add("/elsewhere/0/dir/kustomization.yaml", "resources: [../other, g.yaml]\n")
        .add("/elsewhere/0/dir/g.yaml", MAP.replace("m}", "g}"))
        .add("/elsewhere/0/other/kustomization.yaml", "configMapGenerator: [{name: made, literals: [a=b]}]\n")
        .add("/elsewhere/1/kustomization.yaml", "resources: [m.yaml]\n")
        .add("/elsewhere/1/m.yaml", MAP);
    let output = run(&files, &all).unwrap();
    let origins: Vec<&str> = output
        .objects
        .iter()
        .map(|o| {
            o.at(&["metadata", "annotations", "config.kubernetes.io/origin"]).unwrap().as_text().unwrap()
        })
        .collect();
    assert_eq!(
        origins,
        [
            "path: https:/files.example/f.yaml\n",
            "path: dir/g.yaml\nrepo: https://git.example/o/base.git\nref: v1\n",
            "path: notCloned/m.yaml\nrepo: https://git.example/o/base.git\n",
            "repo: https://git.example/o/base.git\nref: v1\nconfiguredIn: other/kustomization.yaml\nconfiguredBy:\n  apiVersion: builtin\n  kind: ConfigMapGenerator\n",
        ]
    );
}

/// C03: a checkout refers only to itself: not to the artifact, another checkout or the machine.
#[test]
fn checkout_cannot_be_left() {
    for (kustomization, boundary) in [
        ("resources: [../../../artifact/app/secret]\n", true),
        ("resources: [../../1]\n", true),
        ("resources: [../../../artifact/app/secret/m.yaml]\n", true),
        ("configMapGenerator: [{name: a, files: [../../../artifact/app/secret/m.yaml]}]\n", true),
        ("configMapGenerator: [{name: a, files: [/artifact/app/secret/m.yaml]}]\n", true),
        ("configMapGenerator: [{name: a, files: [link]}]\n", true),
        ("resources: [up]\n", true),
        // Files outside of the kustomization's directory are rejected even if they are in the same checkout.
        ("configMapGenerator: [{name: a, files: [../file]}]\n", true),
        ("configMapGenerator: [{name: a, files: [own]}]\n", false),
    ] {
        let mut files = Memory::new();
        files
            .add(
                "/artifact/app/kustomization.yaml",
                "resources: ['https://git.example/o/base.git//dir?ref=v1']\n",
            )
            .add("/artifact/app/secret/kustomization.yaml", "resources: [m.yaml]\n")
            .add("/artifact/app/secret/m.yaml", MAP)
            .add("/elsewhere/0/dir/kustomization.yaml", kustomization)
            .add("/elsewhere/0/dir/own", "x")
            .add("/elsewhere/0/file", "x")
            .link("/elsewhere/0/dir/link", "/artifact/app/secret/m.yaml")
            .link("/elsewhere/0/dir/up", "/artifact/app/secret")
            .add("/elsewhere/1/kustomization.yaml", "resources: [m.yaml]\n")
            .add("/elsewhere/1/m.yaml", MAP);
        match run(&files, &remote_server()) {
            Ok(_) => assert!(!boundary, "{kustomization}"),
            Err(error) => {
                assert!(
                    boundary && matches!(*error.kind, ErrorKind::Boundary { .. }),
                    "{kustomization}: {error}"
                );
            }
        }
    }
    // Neither does the artifact refer to a checkout by its path.
    let mut files = Memory::new();
    files
        .add("/artifact/app/kustomization.yaml", "resources: [../../elsewhere/0]\n")
        .add("/elsewhere/0/kustomization.yaml", "resources: [m.yaml]\n")
        .add("/elsewhere/0/m.yaml", MAP);
    let error = run(&files, &remote_server()).unwrap_err();
    assert!(matches!(*error.kind, ErrorKind::Boundary { .. }), "{error}");
}

/// C03: cycles of repositories end, and the error of a failed fetch does not contain the password of the URL.
#[test]
fn cycles_and_failed_fetches_end() {
    let mut files = Memory::new();
    files
        .add("/artifact/app/kustomization.yaml", "resources: ['https://git.example/o/base.git?ref=v1']\n")
        .add("/elsewhere/0/kustomization.yaml", "resources: ['https://git.example/o/base.git']\n")
        .add("/elsewhere/1/kustomization.yaml", "resources: ['https://git.example/o/base.git?ref=v1']\n");
    let error = run(&files, &remote_server()).unwrap_err();
    assert!(matches!(*error.kind, ErrorKind::Cycle { .. }), "{error}");
    for address in ["https://me:canary@git.example/o/none.git", "https://me:canary@files.example/f.yaml"] {
        let mut files = Memory::new();
        files.add("/artifact/app/kustomization.yaml", format!("resources: ['{address}']\n"));
        let error = run(&files, &remote_server()).unwrap_err().to_string();
        assert!(error.contains("https://me:***@") && !error.contains("canary"), "{error}");
        let off = build(&files, "/artifact/app".as_ref(), &Options::default()).unwrap_err().to_string();
        assert!(off.contains("switched off") && !off.contains("canary"), "{off}");
    }
}
