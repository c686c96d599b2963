//! G01: values of a Secret in `valuesFrom` are shown nowhere, whatever step of a release quotes them.

mod fixture;

use fixture::{MANAGER, TestCluster, condition, ready};
use fl_runtime::log::{Encoding, Level};
use serde_json::{Value, json};

const CANARY: &str = "c4n4ry of/the mine";
const PART: &str = "c4n4ry";

/// Waits until the request was handled and its result is known; failed installs are tried again and again.
async fn ended(test_cluster: &TestCluster, token: &str) -> Value {
    test_cluster
        .until(|o| o["status"]["lastHandledReconcileAt"] == token && matches!(ready(o).0, "True" | "False"))
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn values_of_a_secret_are_shown_nowhere() {
    let log = std::env::temp_dir().join(format!("fluorite-helm-secrets-{}", std::process::id()));
    fl_runtime::log::configure(Level::Trace, Encoding::Json);
    fl_runtime::log::redirect(std::fs::File::create(&log).expect("a file"));
    let test_cluster = TestCluster::new().await;
    let values = [
        ("schema", json!({"code": CANARY})),
        ("fail", json!({"boom": CANARY})),
        ("label", json!({"label": CANARY})),
        ("type", json!({"types": CANARY})),
    ];
    let mut shown = String::new();
    for (at, (name, values)) in values.iter().enumerate() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "default"},
            "stringData": {"values.yaml": values.to_string(), "one": CANARY}});
        test_cluster.cluster.apply(&secret, &MANAGER).await.expect("a Secret");
        let token = at.to_string();
        test_cluster.apply(json!({"valuesFrom": [{"kind": "Secret", "name": name}]}), &token).await;
        let object = ended(&test_cluster, &token).await;
        // A value in the place of a table is only warned about.
        assert!(*name == "type" || ready(&object).0 == "False", "{name}: {}", object["status"]);
        let message = condition(&object, "Ready").map(|c| c["message"].to_string()).unwrap_or_default();
        if matches!(*name, "fail" | "label") {
            assert!(message.contains("***"), "{name}: the value is quoted, and masked: {message}");
        }
        shown.push_str(&format!("{name}: {}\n", object["status"]));
    }
    // One value at a path, refused by the schema; and a post-renderer whose patch quotes what is there.
    let target = json!({"kind": "Secret", "name": "schema", "valuesKey": "one", "targetPath": "code"});
    test_cluster.apply(json!({"valuesFrom": [target]}), "path").await;
    shown.push_str(&ended(&test_cluster, "path").await["status"].to_string());
    let target = json!({"kind": "Secret", "name": "schema", "valuesKey": "one", "targetPath": "color"});
    let patch = "[{\"op\": \"test\", \"path\": \"/data/color\", \"value\": \"other\"}]";
    let patches = json!([{"kustomize": {"patches": [{"patch": patch, "target": {"kind": "ConfigMap"}}]}}]);
    test_cluster.apply(json!({"valuesFrom": [target], "postRenderers": patches}), "patch").await;
    let object = ended(&test_cluster, "patch").await;
    assert_eq!(ready(&object).0, "False", "{}", object["status"]);
    shown.push_str(&object["status"].to_string());
    // Events are written a moment later.
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let events = test_cluster.cluster.list("v1", "Event", "default", &[]).await.expect("events");
    assert!(events["items"].as_array().is_some_and(|items| !items.is_empty()));
    shown.push_str(&events.to_string().replace("\\n", "\n"));
    shown.push_str(&test_cluster.metrics());
    shown.push_str(&std::fs::read_to_string(&log).expect("the log"));
    let _ = std::fs::remove_file(&log);
    let line = shown.lines().find(|line| line.to_lowercase().contains(PART));
    assert_eq!(line, None, "the value is shown");
    test_cluster.end();
}
