//! Kinds that are served before their CustomResourceDefinition exists.

mod client;

use client::send as ask;
use fl_apiserver::store::{Store, Sync};
use fl_apiserver::{ApiServer, Options, ProvisionalKind};
use serde_json::{Value, json};

async fn send(server: &ApiServer, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let text = if body.is_null() { String::new() } else { body.to_string() };
    let kind = if method == "PATCH" { "application/apply-patch+yaml" } else { "application/json" };
    let answer = ask(server, method, path, kind, text).await;
    (answer.status().as_u16(), serde_json::from_slice(answer.body()).unwrap_or(Value::Null))
}

async fn until(server: &ApiServer, path: &str, done: impl Fn(u16, &Value) -> bool) -> Value {
    for _ in 0..400 {
        let (code, body) = send(server, "GET", path, &Value::Null).await;
        if done(code, &body) {
            return body;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("{path}: {:?}", send(server, "GET", path, &Value::Null).await);
}

fn kind(version: &str, namespaced: bool) -> ProvisionalKind {
    let (group, kind) = ("external-secrets.io".to_owned(), "ExternalSecret".to_owned());
    ProvisionalKind { group, version: version.to_owned(), kind, namespaced }
}

fn secret(version: &str, name: &str) -> Value {
    json!({"apiVersion": format!("external-secrets.io/{version}"), "kind": "ExternalSecret",
        "metadata": {"name": name}, "spec": {"data": [{"secretKey": "a"}], "anything": {"at": ["all"]}}})
}

/// A CRD with a schema that differs from the provisional kind.
fn real(plural: &str, scope: &str) -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "data": {"type": "array", "items": {"type": "object", "properties": {"secretKey": {"type": "string"}}}}}}}}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.external-secrets.io")},
        "spec": {"group": "external-secrets.io", "scope": scope,
            "names": {"plural": plural, "kind": "ExternalSecret", "listKind": "ExternalSecretList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]}})
}

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const BETA: &str = "/apis/external-secrets.io/v1beta1/namespaces/default/externalsecrets";

#[tokio::test]
async fn provisional_kinds_accept_any_content_and_list_no_crd() {
    let server = ApiServer::in_memory().await.expect("a server");
    assert_eq!(send(&server, "POST", BETA, &secret("v1beta1", "a")).await.0, 404);
    assert!(server.serve_provisionally(&kind("v1beta1", true)).await.expect("stored"));
    assert!(!server.serve_provisionally(&kind("v1beta1", true)).await.expect("stored"), "told twice");
    let (code, made) = send(&server, "POST", BETA, &secret("v1beta1", "a")).await;
    assert_eq!((code, &made["spec"]["anything"]["at"][0]), (201, &json!("all")), "{made}");
    // Another version of the same kind serves the same objects.
    assert!(server.serve_provisionally(&kind("v1", true)).await.expect("stored"));
    let v1 = "/apis/external-secrets.io/v1/namespaces/default/externalsecrets/a";
    assert_eq!(send(&server, "GET", v1, &Value::Null).await.1["apiVersion"], "external-secrets.io/v1");
    let crds = send(&server, "GET", CRDS, &Value::Null).await.1;
    assert_eq!(crds["items"], json!([]));
    let map = ProvisionalKind {
        group: String::new(),
        version: "v1".into(),
        kind: "ConfigMap".into(),
        namespaced: true,
    };
    assert!(!server.serve_provisionally(&map).await.expect("stored"), "a built-in kind");
    let deployment =
        ProvisionalKind { group: "apps".into(), version: "v2".into(), kind: "Deployment".into(), ..map };
    assert!(!server.serve_provisionally(&deployment).await.expect("stored"), "a version of a built-in kind");
}

/// The later CRD has other versions, another plural or another scope: the objects stay, with their UIDs.
#[tokio::test]
async fn later_crd_takes_over_all_objects() {
    let cases = [
        ("externalsecrets", "Namespaced", "/apis/external-secrets.io/v1/namespaces/default/externalsecrets"),
        ("extsecrets", "Namespaced", "/apis/external-secrets.io/v1/namespaces/default/extsecrets"),
        ("externalsecrets", "Cluster", "/apis/external-secrets.io/v1/externalsecrets"),
    ];
    for (plural, scope, path) in cases {
        let server = ApiServer::in_memory().await.expect("a server");
        server.serve_provisionally(&kind("v1beta1", true)).await.expect("stored");
        let mut uids = Vec::new();
        for name in ["a", "b", "c"] {
            let (code, made) = send(&server, "POST", BETA, &secret("v1beta1", name)).await;
            assert_eq!(code, 201, "{made}");
            uids.push(made["metadata"]["uid"].clone());
        }
        let definition = real(plural, scope);
        let place = format!("{CRDS}/{plural}.external-secrets.io?fieldManager=flux&force=true");
        assert_eq!(send(&server, "PATCH", &format!("{place}&dryRun=All"), &definition).await.0, 201);
        assert_eq!(send(&server, "PATCH", &place, &definition).await.0, 201);
        let list = until(&server, path, |code, list| {
            code == 200 && list["items"].as_array().is_some_and(|items| items.len() == 3)
        })
        .await;
        let found: Vec<Value> =
            list["items"].as_array().into_iter().flatten().map(|o| o["metadata"]["uid"].clone()).collect();
        assert_eq!(found, uids, "{plural} {scope}");
        // The schema of the CRD applies to new writes, and old objects can be changed.
        let changed = format!("{path}/a?fieldManager=flux&force=true");
        let refused = send(&server, "PATCH", &changed, &secret("v1", "a")).await.1;
        assert!(
            refused["message"].as_str().is_some_and(|m| m.contains("not declared in schema")),
            "{refused}"
        );
        let mut valid = secret("v1", "a");
        valid["spec"] = json!({"data": [{"secretKey": "b"}]});
        let (code, body) = send(&server, "PATCH", &changed, &valid).await;
        assert_eq!((code, &body["spec"]["anything"]), (200, &Value::Null), "{body}");
        let beta = format!("{BETA}/a");
        until(&server, &beta, |code, _| code == 404).await;
        assert!(
            !server.serve_provisionally(&kind("v1beta1", true)).await.expect("stored"),
            "it has a definition now"
        );
    }
}

#[tokio::test]
async fn provisional_kinds_and_interrupted_handover_survive_a_restart() {
    let dir = tempfile::tempdir().expect("a folder");
    let start = async || {
        // Background tasks of the last server hold the store until they have ended.
        for _ in 0..400 {
            if let Ok(store) = Store::open(dir.path(), Sync::Always) {
                return ApiServer::new(store, Options::default()).await.expect("a server");
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("the store stays locked");
    };
    let server = start().await;
    server.serve_provisionally(&kind("v1", true)).await.expect("stored");
    let path = BETA.replace("v1beta1", "v1");
    assert_eq!(send(&server, "POST", &path, &secret("v1", "a")).await.0, 201);
    drop(server);
    let server = start().await;
    assert_eq!(send(&server, "GET", &format!("{path}/a"), &Value::Null).await.0, 200);
    assert_eq!(send(&server, "POST", CRDS, &real("externalsecrets", "Namespaced")).await.0, 201);
    until(&server, CRDS, |_, list| list["items"][0]["status"]["acceptedNames"]["kind"] == "ExternalSecret")
        .await;
    drop(server);
    let server = start().await;
    until(&server, &format!("{path}/a"), |code, _| code == 200).await;
}
