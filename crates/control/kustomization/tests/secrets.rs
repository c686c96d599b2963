//! G01: values that come from Secrets and from decryption are shown nowhere: not in conditions, events, logs or metrics, whatever step of a
//! pass quotes them.

mod fixture;

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fixture::{cluster, push, revision, run};
use fl_runtime::log::{Encoding, Level};
use fl_runtime::{Kind, Write};
use fl_sim::{NAMESPACE, TestCluster, condition};
use serde_json::{Value, json};

const CANARY: &str = "c4n4ry of/the \"mine\"";
/// The beginning is as bad as the whole.
const PART: &str = "c4n4ry";
/// What the golden file of `sops` holds.
const DECRYPTED: &str = "hunter2";

fn golden(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../engine/sops/tests/sops");
    std::fs::read_to_string(folder.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

async fn secret(cluster: &TestCluster, name: &str, data: Value) {
    cluster
        .apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}))
        .await;
}

fn spec(path: &str, more: Value) -> Value {
    let mut spec = json!({"interval": "10m", "retryInterval": "10m", "prune": true, "timeout": "20s", "path": path,
        "sourceRef": {"kind": "GitRepository", "name": "app"}});
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    spec
}

#[test]
fn secret_values_are_masked_everywhere() {
    let log = tempfile::NamedTempFile::new().expect("a file");
    fl_runtime::log::configure(Level::Trace, Encoding::Json);
    fl_runtime::log::redirect(log.reopen().expect("a file"));
    run(async {
        let map = |rest: &str| {
            format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  namespace: {NAMESPACE}\n{rest}")
        };
        let widget = golden("age.regex.secret.yaml")
            .replace("apiVersion: v1", "apiVersion: example.com/v1")
            .replace("kind: Secret", "kind: Widget")
            .replace("name: s\n", &format!("name: s\n    namespace: {NAMESPACE}\n"));
        let files = [
            // The API server refuses the label and quotes it.
            ("label/a.yaml", map("  labels:\n    a: '${PASSWORD}'\n")),
            // A piece of the value, as rejected.
            ("piece/a.yaml", map("  labels:\n    a: '${PASSWORD:0:9} !'\n")),
            // The same value as the server writes it in base64.
            ("data/a.yaml", map("binaryData: '${PASSWORD}'\n")),
            // What substitution makes is not YAML.
            ("yaml/a.yaml", map("data:\n  a: ${PASSWORD}: ${PASSWORD}: [\n")),
            // A patch that cannot be applied to what is there.
            ("patch/a.yaml", map("data: {a: '${PASSWORD}'}\n")),
            // The name and the kind of an object.
            ("name/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '${PASSWORD}'}\n".to_owned()),
            ("kind/a.yaml", "apiVersion: v1\nkind: '${PASSWORD}'\nmetadata: {name: a}\n".to_owned()),
            // A value that SOPS encrypted, in an object whose schema refuses it.
            ("sops/a.yaml", widget),
        ];
        let cluster = cluster(71, &files).await;
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": "widgets.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
                "names": {"kind": "Widget", "plural": "widgets"}, "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
                    "stringData": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                        "properties": {"alpha": {"type": "string", "enum": ["a"]}}}}}}}]}});
        let group = "apiextensions.k8s.io";
        let kind = Kind::new(group, "v1", "CustomResourceDefinition", "customresourcedefinitions", false);
        cluster.user.create(&kind, None, &definition, &Write::by("admin")).await.expect("a definition");
        secret(&cluster, "vars", json!({"PASSWORD": CANARY})).await;
        secret(&cluster, "keys", json!({"me.agekey": golden("key.agekey")})).await;
        let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": CANARY, "user": "u"}}],
            "users": [{"name": "u", "user": {"token": CANARY}}]});
        secret(&cluster, "cluster", json!({"value": kubeconfig.to_string()})).await;
        let from = json!({"postBuild": {"substituteFrom": [{"kind": "Secret", "name": "vars"}]}});
        let mut cases: Vec<(&str, Value)> = ["label", "piece", "data", "yaml", "name", "kind"]
            .into_iter()
            .map(|path| (path, spec(path, from.clone())))
            .collect();
        let mut patched = from.clone();
        patched["patches"] =
            json!([{"patch": "- {op: test, path: /data/a, value: other}", "target": {"kind": "ConfigMap"}}]);
        cases.push(("patch", spec("patch", patched)));
        let keys = json!({"decryption": {"provider": "sops", "secretRef": {"name": "keys"}}});
        cases.push(("sops", spec("sops", keys)));
        cases.push(("remote", spec("label", json!({"kubeConfig": {"secretRef": {"name": "cluster"}}}))));
        let mut shown = String::new();
        for (name, spec) in &cases {
            cluster.source("Kustomization", name, spec.clone()).await;
            let failed = cluster.failed("Kustomization", name).await;
            let message = condition(&failed, "Ready")["message"].as_str().unwrap_or_default().to_owned();
            shown.push_str(&format!("{name}: {}\n", failed["status"]));
            if matches!(*name, "label" | "piece" | "sops") {
                assert!(message.contains("***"), "{name}: the value is quoted, and masked: {message}");
            }
        }
        // A second pass compares with the masked condition and must not lengthen or change it.
        let before = cluster.get("Kustomization", "label").await.expect("there");
        push(&cluster, &[&files[..], &[("other/a.yaml", map(""))]].concat());
        revision(&cluster, "t1").await;
        tokio::time::sleep(std::time::Duration::from_secs(60)).await;
        let after = cluster.get("Kustomization", "label").await.expect("there");
        let text = |object: &Value| condition(object, "Ready")["message"].clone();
        assert_eq!(text(&before), text(&after));
        shown.push_str(&cluster.events().await.join("\n"));
        shown.push_str(&cluster.runtime.metrics().render());
        shown.push_str(&std::fs::read_to_string(log.path()).expect("the log"));
        assert!(shown.contains("dry-run failed"), "the log and the events were looked at");
        let encoded = STANDARD.encode(CANARY);
        for secret in [PART, DECRYPTED, &encoded, &STANDARD.encode(DECRYPTED)] {
            let line = shown.lines().find(|line| line.to_lowercase().contains(&secret.to_lowercase()));
            assert_eq!(line, None, "{secret} is shown");
        }
    });
}
