//! Releases written by helm: read as helm reads them, and equal to what this crate writes for the same chart.

use std::path::PathBuf;

use fl_helm::{DiskFiles, Loader};
use fl_helm_storage::{History, Release, Status, StoredChart, decode, encode, secret_object, values_digest};
use serde_json::Value;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/shop")
}

fn text(name: &str) -> String {
    std::fs::read_to_string(folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn json(name: &str) -> Value {
    serde_json::from_str(&text(name)).expect("JSON")
}

fn history() -> History {
    let secrets = json("secrets.json");
    History::read("shop", secrets.as_array().expect("a list"))
}

#[test]
fn releases_of_helm_are_read() {
    let history = history();
    assert!(history.corrupt.is_empty());
    let told = json("history.json");
    let told = told.as_array().expect("a list");
    assert_eq!(history.releases.len(), told.len());
    for (release, told) in history.releases.iter().zip(told) {
        let version = release.version;
        assert_eq!(Some(version), told["revision"].as_i64());
        assert_eq!(release.info.status.as_str(), told["status"]);
        assert_eq!(release.info.description, told["description"].as_str().expect("a text"));
        assert_eq!(release.info.last_deployed.text(), told["updated"].as_str().expect("a time"));
        assert_eq!(release.chart.metadata.app_version, told["app_version"].as_str().expect("a text"));
        assert_eq!(release.manifest.trim_end(), text(&format!("manifest-{version}.yaml")).trim_end());
        assert_eq!(Value::Object(release.config.clone()), json(&format!("values-{version}.json")));
        assert_eq!(
            format!("NOTES:\n{}", release.info.notes.trim_end()),
            text(&format!("notes-{version}.txt")).trim_end()
        );
        let hooks = text(&format!("hooks-{version}.yaml"));
        for hook in &release.hooks {
            assert!(hooks.contains(&hook.manifest), "{hooks}");
            assert_eq!((hook.weight, hook.events.len()), (-5, 2));
            assert_eq!(hook.last_run.phase.as_str(), "Succeeded");
        }
    }
    assert_eq!(history.deployed().map(|release| release.version), Some(3));
    assert_eq!(history.next_version(), 4);
}

#[test]
fn releases_survive_a_round_trip() {
    for release in &history().releases {
        let again = decode(&encode(release).expect("a record")).expect("a release");
        assert_eq!(
            serde_json::to_value(release).expect("JSON"),
            serde_json::to_value(&again).expect("JSON"),
            "revision {}",
            release.version
        );
        let secret = secret_object(release, "default", ("modifiedAt", 5)).expect("a Secret");
        let recorded = json("secrets.json");
        let theirs = recorded.as_array().expect("a list").iter().find(|secret| {
            secret["metadata"]["labels"]["version"].as_str() == Some(&*release.version.to_string())
        });
        let theirs = theirs.expect("recorded");
        for key in ["name", "owner", "status", "version"] {
            assert_eq!(secret["metadata"]["labels"][key], theirs["metadata"]["labels"][key]);
        }
        assert_eq!(secret["metadata"]["name"], theirs["metadata"]["name"]);
        assert_eq!(secret["type"], theirs["type"]);
    }
}

/// A chart loaded by this crate is stored as helm stored it.
#[test]
fn charts_are_stored_as_by_helm() {
    let files = DiskFiles::open(&folder().join("chart")).expect("the chart");
    let chart = Loader::new().directory(&files).expect("a chart");
    let ours = serde_json::to_value(StoredChart::of(&chart).expect("in memory")).expect("JSON");
    let theirs = serde_json::to_value(&history().releases[0].chart).expect("JSON");
    for key in ["metadata", "values", "schema", "lock"] {
        assert_eq!(ours[key], theirs[key], "{key}");
    }
    let sorted = |value: &Value| {
        let mut files: Vec<(String, String)> = value
            .as_array()
            .into_iter()
            .flatten()
            .map(|file| (file["name"].as_str().unwrap_or_default().to_owned(), file["data"].to_string()))
            .collect();
        files.sort();
        files
    };
    assert_eq!(sorted(&ours["templates"]), sorted(&theirs["templates"]));
    assert_eq!(sorted(&ours["files"]), sorted(&theirs["files"]));
}

/// Threat D10.
#[test]
fn corrupt_releases_are_rejected() {
    let good = encode(&history().releases[0]).expect("a record");
    let cut = &good[..good.len() / 8 * 4];
    assert!(decode(cut).expect_err("cut off").to_string().contains("gzip"));
    assert!(decode("!!!").expect_err("no base64").to_string().contains("base64"));
    assert!(decode("e30=").expect_err("empty").to_string().contains("name"));
    assert!(decode("W10=").is_err());
    let mut large = Release { name: "big".into(), version: 1, ..Release::default() };
    large.info.status = Status::Deployed;
    let mut state = 1_u64;
    // Random data does not compress.
    large.manifest = (0..2_000_000)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b' ' + u8::try_from((state >> 33) % 90).expect("below 90"))
        })
        .collect();
    let error = encode(&large).expect_err("too large").to_string();
    assert!(error.contains("1048576") && error.contains(".helmignore"), "{error}");
}

#[test]
fn values_digests_match_recorded_ones() {
    let history = history();
    assert_eq!(values_digest(&history.releases[0].config), values_digest(&history.releases[2].config));
    assert_ne!(values_digest(&history.releases[0].config), values_digest(&history.releases[1].config));
}
