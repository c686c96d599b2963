//! Dashboards and alerts name only metrics that the engine exports.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

fn monitoring(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/chart/fluorite/monitoring").join(path)
}

/// Every text below a key of this name.
fn texts(value: &Value, key: &str, out: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (name, below) in map {
                match below {
                    Value::String(text) if name == key => out.push(text.clone()),
                    other => texts(other, key, out),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| texts(item, key, out)),
        _ => {}
    }
}

/// The names of metrics in a query: words with a prefix of ours. Labels have none.
fn metrics(query: &str) -> BTreeSet<String> {
    let words = query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let prefixes = ["gotk_", "controller_runtime_", "workqueue_", "rest_client_", "process_", "go_", "flux_"];
    words.filter(|w| prefixes.iter().any(|p| w.starts_with(p))).map(str::to_owned).collect()
}

fn exported(name: &str) -> bool {
    fl_runtime::FAMILIES.iter().any(|family| {
        let histogram = family.kind == "histogram";
        let parts = ["_bucket", "_sum", "_count"];
        if histogram {
            parts.iter().any(|p| name == format!("{}{p}", family.name))
        } else {
            name == family.name
        }
    })
}

fn check(file: &Path, queries: &[String]) -> BTreeSet<String> {
    assert!(!queries.is_empty(), "{} asks nothing", file.display());
    let mut all = BTreeSet::new();
    for query in queries {
        let named = metrics(query);
        assert!(!named.is_empty(), "{}: no metric in {query}", file.display());
        for name in &named {
            assert!(exported(name), "{}: the engine has no metric {name}", file.display());
        }
        all.extend(named);
    }
    all
}

#[test]
fn dashboards_and_rules_use_existing_metrics() {
    let mut used = BTreeSet::new();
    let mut ids = BTreeSet::new();
    for entry in std::fs::read_dir(monitoring("dashboards")).expect("dashboards").flatten() {
        let text = std::fs::read_to_string(entry.path()).expect("a dashboard");
        let dashboard: Value = serde_json::from_str(&text).expect("JSON");
        let mut queries = Vec::new();
        texts(&dashboard, "expr", &mut queries);
        used.extend(check(&entry.path(), &queries));
        let panels = dashboard["panels"].as_array().expect("panels");
        assert!(panels.iter().all(|p| p["title"].as_str().is_some_and(|t| !t.is_empty())));
        let numbers: BTreeSet<_> = panels.iter().map(|p| p["id"].as_u64()).collect();
        assert_eq!(numbers.len(), panels.len(), "panels have different numbers");
        assert!(ids.insert(dashboard["uid"].to_string()), "dashboards have different names");
    }
    let file = monitoring("rules.yaml");
    let node =
        fl_yaml::parse_all(&std::fs::read(&file).expect("rules"), &fl_yaml::Options::sigs()).expect("YAML");
    let json =
        fl_yaml::to_json(&node[0], fl_yaml::Dialect::Sigs, fl_yaml::JsonStyle::default()).expect("JSON");
    let rules: Value = serde_json::from_str(&json).expect("JSON");
    let mut queries = Vec::new();
    texts(&rules, "expr", &mut queries);
    used.extend(check(&file, &queries));
    // And the other way round: what is exported is worth a look somewhere.
    for family in fl_runtime::FAMILIES {
        assert!(used.iter().any(|u| u.starts_with(family.name)), "{} is on no dashboard", family.name);
    }
}
