//! Managed fields after writes of every kind, as recorded from kube-apiserver.

mod client;

use client::send as ask;
use fl_apiserver::store::Store;
use fl_apiserver::{ApiServer, Options};
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";
const EVENTS: &str = "/api/v1/namespaces/default/events";
const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

struct Client(ApiServer);

impl Client {
    async fn new() -> Self {
        Self(ApiServer::new(Store::in_memory(), Options::default()).await.expect("the server starts"))
    }

    async fn text(&self, method: &str, path: &str, media: &str, body: &Value) -> (u16, String) {
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let answer = ask(&self.0, method, path, media, text).await;
        (answer.status().as_u16(), String::from_utf8_lossy(answer.body()).into_owned())
    }

    async fn send(&self, method: &str, path: &str, media: &str, body: Value) -> (u16, Value) {
        let (code, text) = self.text(method, path, media, &body).await;
        (code, serde_json::from_str(&text).unwrap_or(Value::Null))
    }

    async fn made(&self, path: &str, body: Value) -> Value {
        let (code, made) = self.send("POST", path, "application/json", body).await;
        assert_eq!(code, 201, "{made}");
        made
    }
}

/// The fields of a manager.
fn owned<'v>(object: &'v Value, manager: &str) -> &'v Value {
    let entries = object["metadata"]["managedFields"].as_array().map(Vec::as_slice).unwrap_or_default();
    entries.iter().find(|entry| entry["manager"] == manager).map_or(&Value::Null, |entry| &entry["fieldsV1"])
}

fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
           "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

#[tokio::test]
async fn metadata_sent_with_a_status_has_a_manager() {
    let client = Client::new().await;
    client.made(PODS, pod("p")).await;
    let owner = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "q", "uid": "u"}]);
    let meta = json!({"labels": {"x": "y"}, "finalizers": ["a.b/c"], "ownerReferences": owner});
    let sent = json!({"metadata": meta, "status": {"phase": "Running"}});
    let status = format!("{PODS}/p/status?fieldManager=k");
    let (_, got) = client.send("PATCH", &status, MERGE, sent.clone()).await;
    let fields = json!({"f:metadata": {"f:finalizers": {".": {}, "v:\"a.b/c\"": {}}, "f:labels": {".": {}, "f:x": {}}},
        "f:status": {"f:phase": {}}});
    assert_eq!(owned(&got, "k"), &fields, "a pod's status does not change who owns the pod");
    assert_eq!(got["metadata"].get("ownerReferences"), None);

    let attachments = "/apis/storage.k8s.io/v1/volumeattachments";
    let spec = json!({"attacher": "x", "nodeName": "n", "source": {"persistentVolumeName": "p"}});
    let attachment = json!({"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment",
        "metadata": {"name": "a"}, "spec": spec});
    client.made(attachments, attachment).await;
    let sent = json!({"metadata": {"labels": {"x": "y"}}, "status": {"attached": true}});
    let status = format!("{attachments}/a/status?fieldManager=k");
    let (_, got) = client.send("PATCH", &status, MERGE, sent).await;
    assert_eq!(owned(&got, "k"), &json!({"f:status": {"f:attached": {}}}));
    assert_eq!(got["metadata"].get("labels"), None, "nothing but the status is looked at");
}

#[tokio::test]
async fn managers_without_fields_are_removed() {
    let client = Client::new().await;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}});
    client.made(MAPS, map.clone()).await;
    let none = json!({"metadata": {"managedFields": []}});
    let (_, got) = client.send("PATCH", &format!("{MAPS}/a"), MERGE, none).await;
    assert_eq!(got["metadata"].get("managedFields"), None);
    let applied =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "w"}});
    let (code, got) = client.send("PATCH", &format!("{MAPS}/a?fieldManager=m"), APPLY, applied).await;
    assert_eq!(code, 409);
    let why = "Apply failed with 1 conflict: conflict with \"before-first-apply\" using v1: .data.k";
    assert_eq!(got["message"], why);
}

#[tokio::test]
async fn undeclared_fields_of_another_version_fail_the_update() {
    let client = Client::new().await;
    let version = |name: &str, own: &str, storage: bool| {
        let spec =
            json!({"type": "object", "properties": {"a": {"type": "string"}, own: {"type": "string"}}});
        let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
        json!({"name": name, "served": true, "storage": storage, "schema": schema})
    };
    let names =
        json!({"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.e.com"}, "spec": {"group": "e.com", "scope": "Namespaced", "names": names,
            "versions": [version("v1", "old", true), version("v2", "new", false)]}});
    client.made("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
    let at = |version: &str| format!("/apis/e.com/{version}/namespaces/default/widgets");
    for _ in 0..400 {
        if client.send("GET", &at("v2"), "", Value::Null).await.0 == 200 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    let widget = |version: &str, spec: Value| json!({"apiVersion": format!("e.com/{version}"), "kind": "Widget", "metadata": {"name": "w"}, "spec": spec});
    let first = widget("v1", json!({"a": "1"}));
    let (code, _) = client.send("PATCH", &format!("{}/w?fieldManager=m1", at("v1")), APPLY, first).await;
    assert_eq!(code, 201);
    let second = widget("v2", json!({"a": "1", "new": "n"}));
    let (code, got) = client.send("PATCH", &format!("{}/w?fieldManager=m2", at("v2")), APPLY, second).await;
    let why = "failed to convert new object: .spec.new: field not declared in schema";
    assert_eq!((code, &got["message"]), (500, &json!(why)));
    let (code, got) = client
        .send("PATCH", &format!("{}/w?fieldManager=m3", at("v2")), MERGE, json!({"spec": {"new": "n"}}))
        .await;
    assert_eq!(code, 200, "other writes go on");
    assert_eq!(
        got["metadata"].get("managedFields"),
        None,
        "managed fields that cannot be decoded are dropped"
    );
}

#[tokio::test]
async fn fields_written_through_another_group_are_not_tracked() {
    let client = Client::new().await;
    let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "reason": "R", "type": "Normal",
        "message": "m", "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"}});
    client.made(EVENTS, event).await;
    let series = json!({"series": {"count": 3, "lastObservedTime": "2024-01-01T00:00:00.000000Z"}});
    let path = "/apis/events.k8s.io/v1/namespaces/default/events/e";
    let (code, got) = client.send("PATCH", path, MERGE, series).await;
    assert_eq!(code, 200, "{got}");
    let entries = got["metadata"]["managedFields"].as_array().expect("managers");
    assert_eq!(entries.len(), 1, "{entries:?}");
    assert_eq!(entries[0]["apiVersion"], "events.k8s.io/v1");
}

#[tokio::test]
async fn pods_get_a_deletion_timestamp_before_deletion() {
    let client = Client::new().await;
    let made = client.made(PODS, pod("p")).await;
    let from = made["metadata"]["resourceVersion"].as_str().expect("a revision").to_owned();
    client.send("DELETE", &format!("{PODS}/p?gracePeriodSeconds=0"), "", Value::Null).await;
    let watch = format!("{PODS}?watch=1&resourceVersion={from}&timeoutSeconds=1");
    let (_, seen) = client.text("GET", &watch, "", &Value::Null).await;
    let seen: Vec<Value> = seen.lines().map(|line| serde_json::from_str(line).expect("an event")).collect();
    let types: Vec<&str> = seen.iter().filter_map(|event| event["type"].as_str()).collect();
    assert_eq!(types, ["MODIFIED", "DELETED"]);
    assert_eq!(seen[0]["object"]["metadata"]["deletionGracePeriodSeconds"], 0);
}

#[tokio::test]
async fn grace_period_is_shortened_only_on_request() {
    let client = Client::new().await;
    let mut running = pod("p");
    running["spec"]["nodeName"] = json!("n");
    client.made(PODS, running).await;
    let delete = |query: &'static str| client.send("DELETE", query, "", Value::Null);
    let grace = |answer: &(u16, Value)| answer.1["metadata"]["deletionGracePeriodSeconds"].clone();
    assert_eq!(grace(&delete("/api/v1/namespaces/default/pods/p?gracePeriodSeconds=10").await), 10);
    let ended = json!({"status": {"phase": "Succeeded"}});
    client.send("PATCH", &format!("{PODS}/p/status"), MERGE, ended).await;
    assert_eq!(grace(&delete("/api/v1/namespaces/default/pods/p").await), 10);
    assert_eq!(grace(&delete("/api/v1/namespaces/default/pods/p?gracePeriodSeconds=20").await), 10);
    assert_eq!(grace(&delete("/api/v1/namespaces/default/pods/p?gracePeriodSeconds=0").await), 0);
    assert_eq!(client.send("GET", &format!("{PODS}/p"), "", Value::Null).await.0, 404);
}
