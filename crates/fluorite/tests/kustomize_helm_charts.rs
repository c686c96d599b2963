//! `helmCharts` of a kustomization. `charts/want.yaml` is what kustomize 5.8 with helm 3 prints for `charts/in`:
//! `kustomize build --enable-helm charts/in > charts/want.yaml`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/charts").join(path)
}

fn build(directory: &Path, flags: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fluorite"));
    command.args(["kustomize", "build"]).args(flags).arg(directory);
    command.output().expect("fluorite starts")
}

#[test]
fn charts_are_inflated_as_kustomize_does_with_helm() {
    let output = build(&here("in"), &["--enable-helm"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let want = std::fs::read_to_string(here("want.yaml")).expect("the golden");
    assert_eq!(String::from_utf8_lossy(&output.stdout), want);
}

#[test]
fn charts_are_rejected_unless_enabled() {
    let output = build(&here("in"), &[]);
    assert!(!output.status.success());
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("must specify --enable-helm"), "{error}");
    assert!(error.contains("kustomization.yaml:1"), "the file and line: {error}");
}

#[test]
fn chart_errors_are_reported() {
    for (entry, words) in [
        ("{name: none}", "no repo specified for pull, no chart found at"),
        ("{name: ''}", "chart name cannot be empty"),
        ("{name: ../escape}", "leads out of the folder of charts"),
        ("{name: app, valuesMerge: maybe}", "valuesMerge must be one of"),
        ("{name: app, repository: x}", "unknown field \"repository\""),
    ] {
        let directory = tempfile::tempdir().expect("a folder");
        let file = directory.path().join("kustomization.yaml");
        std::fs::write(&file, format!("helmCharts: [{entry}]\n")).expect("written");
        let output = build(directory.path(), &["--enable-helm"]);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && error.contains(words), "{entry}: {error}");
    }
}
