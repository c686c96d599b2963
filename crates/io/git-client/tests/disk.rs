//! Repositories on disk, made by the real `git`.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::path::Path;
use std::process::Command;

use fl_git::HashKind;
use fl_git_client::{DiskError, DiskRepository, Head, Reference};

fn git(directory: &Path, args: &[&str]) -> String {
    let out = Command::new("git")
        .args(["-c", "user.name=T", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main"])
        .args(["-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false", "-C"])
        .arg(directory)
        .args(args)
        .output()
        .expect("git runs");
    assert!(out.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).trim().to_owned()
}

fn repository() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    git(dir.path(), &["init", "--quiet"]);
    dir
}

fn commit(dir: &Path, files: &[(&str, &str)]) -> String {
    for (path, content) in files {
        let path = dir.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    git(dir, &["add", "-A"]);
    git(dir, &["commit", "--quiet", "-m", "a change"]);
    git(dir, &["rev-parse", "HEAD"])
}

fn texts(repository: &DiskRepository, commit: &str) -> Vec<(String, String)> {
    let mut objects = repository.objects().unwrap();
    let files = objects.files(&commit.parse().unwrap()).unwrap();
    let mut read = |id| String::from_utf8(objects.read_kind(id, fl_git::ObjectKind::Blob).unwrap()).unwrap();
    files.iter().map(|(path, entry)| (path.clone(), read(&entry.id))).collect()
}

#[test]
fn reads_loose_and_packed_objects_and_references() {
    let dir = repository();
    let long = "line\n".repeat(2000);
    commit(dir.path(), &[("a/b.yaml", "one\n"), ("long.txt", &long)]);
    let second = commit(dir.path(), &[("a/b.yaml", "two\n"), ("long.txt", &format!("{long}end\n"))]);
    git(dir.path(), &["tag", "-m", "notes", "v1.2.0"]);
    git(dir.path(), &["tag", "v1.10.0"]);
    let want =
        vec![("a/b.yaml".to_owned(), "two\n".to_owned()), ("long.txt".to_owned(), format!("{long}end\n"))];
    for packed in [false, true] {
        if packed {
            git(dir.path(), &["gc", "--quiet", "--aggressive"]);
        }
        let found = DiskRepository::discover(&dir.path().join("a")).unwrap();
        assert_eq!(found.head().unwrap().0, Head::Branch("main".to_owned()));
        assert_eq!(found.head().unwrap().1.unwrap().to_string(), second);
        assert_eq!(texts(&found, &second), want, "packed: {packed}");
        let resolve = |reference| found.resolve(&reference, "u").unwrap().unwrap();
        assert_eq!(resolve(Reference::Branch("main".into())).revision(), format!("main@sha1:{second}"));
        let tag = resolve(Reference::Tag("v1.2.0".into()));
        assert_eq!(tag.commit.to_string(), second);
        assert_eq!(found.describe(&tag).unwrap().tag.unwrap().message, "notes\n");
        assert_eq!(resolve(Reference::Semver("1.x".into())).revision(), format!("v1.10.0@sha1:{second}"));
        let missing = found.resolve(&Reference::Branch("other".into()), "u").unwrap_err().to_string();
        assert_eq!(missing, "unable to clone 'u': couldn't find remote ref \"refs/heads/other\"");
    }
}

#[test]
fn a_linked_work_tree_and_a_sha256_repository() {
    let dir = tempfile::tempdir().unwrap();
    git(dir.path(), &["init", "--quiet", "--object-format=sha256", "main"]);
    let main = dir.path().join("main");
    let id = commit(&main, &[("x.yaml", "x\n")]);
    git(&main, &["worktree", "add", "--quiet", "../side", "-b", "side"]);
    let side = DiskRepository::discover(&dir.path().join("side")).unwrap();
    assert_eq!(side.head().unwrap().0, Head::Branch("side".to_owned()));
    assert_eq!(texts(&side, &id), [("x.yaml".to_owned(), "x\n".to_owned())]);
    assert_eq!(side.hash(), HashKind::Sha256);
}

#[test]
fn empty_directories_and_missing_repositories_are_rejected() {
    let dir = repository();
    let empty = DiskRepository::discover(dir.path()).unwrap();
    assert_eq!(empty.head().unwrap(), (Head::Branch("main".to_owned()), None));
    assert!(empty.resolve(&Reference::Branch("main".into()), "u").unwrap().is_none());
    let none = tempfile::tempdir().unwrap();
    assert!(matches!(DiskRepository::discover(none.path()), Err(DiskError::NotARepository(_))));
}

#[test]
fn a_damaged_object_is_never_handed_out() {
    let dir = repository();
    let id = commit(dir.path(), &[("x.yaml", "x\n")]);
    let blob = git(dir.path(), &["rev-parse", "HEAD:x.yaml"]);
    let other = git(dir.path(), &["rev-parse", "HEAD^{tree}"]);
    let place = |id: &str| dir.path().join(".git/objects").join(&id[..2]).join(&id[2..]);
    let content = std::fs::read(place(&other)).unwrap();
    std::fs::remove_file(place(&blob)).unwrap();
    std::fs::write(place(&blob), content).unwrap();
    let found = DiskRepository::discover(dir.path()).unwrap();
    let mut objects = found.objects().unwrap();
    assert_eq!(objects.files(&id.parse().unwrap()).unwrap().len(), 1);
    assert!(objects.read(&blob.parse().unwrap()).unwrap_err().to_string().contains("is not that of"));
}

#[test]
fn remotes_and_a_detached_head() {
    let dir = repository();
    let first = commit(dir.path(), &[("x", "1")]);
    commit(dir.path(), &[("x", "2")]);
    git(dir.path(), &["remote", "add", "origin", "https://git.example/shop.git"]);
    git(dir.path(), &["checkout", "--quiet", &first]);
    let found = DiskRepository::discover(dir.path()).unwrap();
    assert_eq!(found.remotes(), ["https://git.example/shop.git"]);
    assert_eq!(found.head().unwrap().0, Head::Detached(first.parse().unwrap()));
}
