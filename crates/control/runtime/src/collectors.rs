//! Metrics computed on scrape: the state of every object, and the process itself.

use std::fmt::Write as _;

use serde_json::Value;

use crate::informer::Store;
use crate::metrics::{CPU_SECONDS, RESIDENT_MEMORY, RESOURCE_INFO, head, labels};

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The revision of an object: of its artifact, of the applied source, or the chart version.
fn revision(object: &Value) -> &str {
    let places = [
        "/status/lastAppliedRevision",
        "/status/artifact/revision",
        "/status/history/0/chartVersion",
        "/status/lastAttemptedRevision",
    ];
    places.into_iter().map(|place| text(object, place)).find(|t| !t.is_empty()).unwrap_or_default()
}

/// The labels of one object, as the dashboards made for Flux with kube-state-metrics expect them.
fn info(object: &Value) -> String {
    let ready = object
        .pointer("/status/conditions")
        .and_then(Value::as_array)
        .and_then(|all| all.iter().find(|c| c["type"] == "Ready"));
    let suspended = object.pointer("/spec/suspend").and_then(Value::as_bool).unwrap_or_default();
    labels(&[
        ("customresource_group", text(object, "/apiVersion").split('/').next().unwrap_or_default()),
        ("customresource_kind", text(object, "/kind")),
        ("customresource_version", text(object, "/apiVersion").split('/').nth(1).unwrap_or_default()),
        ("exported_namespace", text(object, "/metadata/namespace")),
        ("name", text(object, "/metadata/name")),
        ("ready", ready.map_or("Unknown", |c| text(c, "/status"))),
        ("reason", ready.map_or("", |c| text(c, "/reason"))),
        ("revision", revision(object)),
        ("suspended", if suspended { "true" } else { "false" }),
    ])
}

/// One sample per object of these stores.
pub(crate) fn objects<'a>(out: &mut String, stores: impl Iterator<Item = &'a Store>) {
    head(out, &RESOURCE_INFO);
    for store in stores {
        for live in store.list(None) {
            let mut object = live.value();
            // Cached objects have no apiVersion and kind of their own.
            object["apiVersion"] = store.kind().api_version().into();
            object["kind"] = store.kind().kind().into();
            let _ = writeln!(out, "{}{{{}}} 1", RESOURCE_INFO.name, info(&object));
        }
    }
}

/// CPU time and memory of this process, from /proc where it exists.
pub(crate) fn process(out: &mut String) {
    // Linux counts in hundredths of a second and, on supported machines, in pages of 4 KiB.
    const TICKS: f64 = 100.0;
    const PAGE: u64 = 4096;
    let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
    // The program name comes first, in parentheses, and may contain any character.
    let stat = read("/proc/self/stat");
    let fields: Vec<&str> =
        stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().collect()).unwrap_or_default();
    let number = |at: usize| fields.get(at).and_then(|f| f.parse::<u64>().ok());
    if let (Some(user), Some(system)) = (number(11), number(12)) {
        head(out, &CPU_SECONDS);
        let _ = writeln!(out, "{} {}", CPU_SECONDS.name, (user + system) as f64 / TICKS);
    }
    if let Some(pages) = number(21) {
        head(out, &RESIDENT_MEMORY);
        let _ = writeln!(out, "{} {}", RESIDENT_MEMORY.name, pages * PAGE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn object_metrics_describe_the_object() {
        let object = json!({"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
            "metadata": {"name": "app", "namespace": "team"}, "spec": {"suspend": true},
            "status": {"artifact": {"revision": "main@sha1:1"}, "conditions": [{"type": "Ready", "status": "False", "reason": "No"}]}});
        assert_eq!(
            info(&object),
            "customresource_group=\"source.toolkit.fluxcd.io\",customresource_kind=\"GitRepository\",\
             customresource_version=\"v1\",exported_namespace=\"team\",name=\"app\",ready=\"False\",reason=\"No\",\
             revision=\"main@sha1:1\",suspended=\"true\""
        );
        assert!(info(&json!({"metadata": {"name": "new"}})).contains("ready=\"Unknown\""));
    }

    #[test]
    fn process_metrics_are_not_zero() {
        let mut out = String::new();
        process(&mut out);
        let memory = out.lines().find_map(|l| l.strip_prefix("process_resident_memory_bytes ")).unwrap();
        assert!(memory.parse::<u64>().unwrap() > 100_000, "{out}");
    }
}
