//! The image recipe cannot be built in a test; what can be known without building it is held here.

use std::path::Path;

fn read(path: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read_to_string(file).expect(path)
}

/// The lines of the recipe without remarks, continuations joined.
fn lines() -> Vec<String> {
    let text = read("deploy/Containerfile").replace("\\\n", " ");
    text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')).map(str::to_owned).collect()
}

#[test]
fn image_is_a_static_binary_from_scratch() {
    let lines = lines();
    let toolchain = read("rust-toolchain.toml");
    let channel = toolchain.lines().find_map(|l| l.strip_prefix("channel = ")).expect("a channel");
    let version: Vec<&str> = channel.trim_matches('"').split('.').take(2).collect();
    assert!(lines.contains(&format!("FROM rust:{}-slim AS build", version.join("."))), "{lines:?}");
    assert!(lines.iter().any(|l| l.contains("+crt-static") && l.contains("--target")), "{lines:?}");
    let build = lines.iter().find(|l| l.contains("cargo build")).expect("a build");
    for part in ["--profile dist", "--locked", "/dist/fluorite", "! readelf -l", "DYN", "GNU_RELRO"] {
        assert!(build.contains(part), "{part} is missing in {build}");
    }
    let stages: Vec<&String> = lines.iter().filter(|l| l.starts_with("FROM ")).collect();
    assert_eq!(stages.last().map(|l| l.as_str()), Some("FROM scratch"));
}

#[test]
fn image_runs_as_an_unprivileged_user() {
    let lines = lines();
    let user = lines.iter().find_map(|l| l.strip_prefix("USER ")).expect("a user");
    let numbers: Vec<u32> = user.split(':').map(|n| n.parse().expect("a number")).collect();
    assert!(numbers.len() == 2 && numbers.iter().all(|n| *n > 0), "{user}");
    assert!(
        lines.contains(&"ENTRYPOINT [\"/fluorite\"]".to_owned())
            && lines.contains(&"CMD [\"run\"]".to_owned())
    );
    for label in ["title", "source", "licenses", "version", "revision"] {
        assert!(lines.iter().any(|l| l.contains(&format!("org.opencontainers.image.{label}="))), "{label}");
    }
}
