//! Files in the repository that the program itself writes. They are written anew by `cargo xtask generate`, which runs these
//! tests with `RECORD=1`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn recording() -> bool {
    std::env::var_os("RECORD").is_some()
}

fn printed(args: &[&str]) -> String {
    let run = Command::new(env!("CARGO_BIN_EXE_fluorite")).args(args).output().expect("the program runs");
    assert!(run.status.success(), "{args:?}: {}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8(run.stdout).expect("text")
}

fn hold(path: &str, fresh: &str) {
    let file = repository(path);
    if recording() {
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("the folder can be made");
        std::fs::write(&file, fresh).expect("the file can be written");
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(kept == fresh, "{path} is stale; run `cargo xtask generate`");
}

#[test]
fn manifest_is_current() {
    hold("deploy/manifests/fluorite.yaml", &printed(&["install", "--export"]));
}

#[test]
fn chart_crds_are_current() {
    let components =
        "--components=source-controller,kustomize-controller,helm-controller,notification-controller";
    hold("deploy/chart/fluorite/crds.yaml", &printed(&["install", "--export", "--crds-only", components]));
}

fn pages(folder: &Path) -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|e| {
            let text = std::fs::read_to_string(e.path()).expect("a page");
            (e.file_name().to_string_lossy().into_owned(), text)
        })
        .collect()
}

#[test]
fn reference_is_current() {
    let folder = tempfile::tempdir().expect("a folder");
    printed(&["docgen", "--path", folder.path().to_str().expect("text")]);
    let fresh = pages(folder.path());
    let kept = repository("docs/reference");
    if recording() {
        let _ = std::fs::remove_dir_all(&kept);
        std::fs::create_dir_all(&kept).expect("the folder can be made");
        for (name, text) in &fresh {
            std::fs::write(kept.join(name), text).expect("the page can be written");
        }
    }
    let kept = pages(&kept);
    let names = |pages: &BTreeMap<String, String>| pages.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&kept), names(&fresh), "docs/reference is stale; run `cargo xtask generate`");
    for (name, text) in &fresh {
        assert!(kept[name] == *text, "docs/reference/{name} is stale; run `cargo xtask generate`");
    }
}
