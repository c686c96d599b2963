//! Validation errors recorded from kube-apiserver (`golden/validation_errors/rows.json`).
//!
//! A row has the collection, the object, and for an update the patch; its response is the code with the
//! causes or, without any, the message, or null for success.

use bytes::Bytes;
use fl_apiserver::store::Store;
use fl_apiserver::{ApiServer, ConnectionInfo, Options, User};
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};

async fn send(server: &ApiServer, method: &str, path: &str, media: &str, body: &Value) -> (u16, Value) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "localhost")
        .header("content-type", media)
        .body(Full::new(Bytes::from(body.to_string())))
        .expect("a request");
    let response = server.handle(request, ConnectionInfo { user: Some(User::superuser("test")) }).await;
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    (code, serde_json::from_slice(&body).unwrap_or(Value::Null))
}

/// The sorted causes of an error, its message if it has none, or null.
fn said(code: u16, body: &Value) -> Value {
    if code < 300 {
        return Value::Null;
    }
    let causes = body["details"]["causes"].as_array().cloned().unwrap_or_default();
    if causes.is_empty() {
        return json!({"code": code, "message": body["message"]});
    }
    let text = |cause: &Value, key: &str| cause[key].as_str().unwrap_or_default().to_owned();
    let mut causes: Vec<[String; 2]> =
        causes.iter().map(|cause| [text(cause, "field"), text(cause, "message")]).collect();
    causes.sort();
    json!({"code": code, "causes": causes})
}

#[tokio::test]
async fn validation_errors_match_kube_apiserver() {
    let rows: Vec<Value> =
        serde_json::from_str(include_str!("golden/validation_errors/rows.json")).expect("rows");
    let mut wrong = Vec::new();
    for row in &rows {
        let server = ApiServer::new(Store::in_memory(), Options::default()).await.expect("the server starts");
        let path = row["path"].as_str().expect("a path");
        let name = row["object"]["metadata"]["name"].as_str().expect("a name");
        let (code, body) = if row["patch"].is_null() {
            send(&server, "POST", path, "application/json", &row["object"]).await
        } else {
            let (code, made) = send(&server, "POST", path, "application/json", &row["object"]).await;
            assert_eq!(code, 201, "{path}: {made}");
            send(&server, "PATCH", &format!("{path}/{name}"), "application/merge-patch+json", &row["patch"])
                .await
        };
        let got = said(code, &body);
        if got != row["answer"] {
            let change = if row["patch"].is_null() { &row["object"] } else { &row["patch"] };
            wrong.push(format!("{path} {change}\n  want {}\n  got  {got}", row["answer"]));
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

const MERGE: &str = "application/merge-patch+json";
const CORE: &str = "/api/v1/namespaces/default";

async fn server() -> ApiServer {
    ApiServer::new(Store::in_memory(), Options::default()).await.expect("the server starts")
}

fn message(answer: &(u16, Value)) -> &str {
    answer.1["message"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn patched_scale_is_decoded_as_scale() {
    let server = server().await;
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {
        "replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    assert_eq!(send(&server, "POST", deployments, "application/json", &deployment).await.0, 201);
    let scale = format!("{deployments}/d/scale");
    let refused = send(&server, "PATCH", &scale, MERGE, &json!({"spec": {"replicas": "x"}})).await;
    assert_eq!(refused.0, 422);
    let why = "json: cannot unmarshal string into Go struct field ScaleSpec.spec.replicas of type int32";
    assert!(message(&refused).ends_with(why), "{}", message(&refused));
    let kept = send(&server, "PATCH", &scale, MERGE, &json!({"spec": {"foo": 1}})).await;
    assert_eq!((kept.0, &kept.1["spec"]["replicas"]), (200, &json!(3)), "{}", kept.1);
    assert_eq!(send(&server, "PATCH", &scale, MERGE, &json!({"spec": {"replicas": 5}})).await.0, 200);
}

#[tokio::test]
async fn ephemeral_containers_are_added_and_immutable() {
    let server = server().await;
    let pods = format!("{CORE}/pods");
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [
        {"name": "c", "image": "i"}]}});
    assert_eq!(send(&server, "POST", &pods, "application/json", &pod).await.0, 201);
    let path = format!("{pods}/p/ephemeralcontainers");
    let patch = |container: Value| json!({"spec": {"ephemeralContainers": [container]}});
    let strategic = "application/strategic-merge-patch+json";
    for (container, why) in [
        (json!({"name": "c", "image": "b"}), "spec.ephemeralContainers[0].name: Duplicate value: \"c\""),
        (
            json!({"name": "d", "image": "b", "ports": [{"containerPort": 1}]}),
            "spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container",
        ),
        (
            json!({"name": "d", "image": "b", "targetContainerName": "z"}),
            "spec.ephemeralContainers[0].targetContainerName: Not found: \"z\"",
        ),
    ] {
        let refused = send(&server, "PATCH", &path, strategic, &patch(container)).await;
        assert_eq!((refused.0, message(&refused)), (422, format!("Pod \"p\" is invalid: {why}").as_str()));
    }
    let added = patch(json!({"name": "d", "image": "b", "targetContainerName": "c"}));
    assert_eq!(send(&server, "PATCH", &path, strategic, &added).await.0, 200);
    let changed = send(&server, "PATCH", &path, strategic, &patch(json!({"name": "d", "image": "z"}))).await;
    assert!(
        message(&changed).contains("existing ephemeral containers \"d\" may not be changed\n@@ -1,6 +1,6 @@")
    );
    let removed = send(&server, "PATCH", &path, MERGE, &json!({"spec": {"ephemeralContainers": null}})).await;
    assert!(message(&removed).contains("existing ephemeral containers \"d\" may not be removed"));
}

#[tokio::test]
async fn binding_needs_an_existing_pod() {
    let server = server().await;
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"kind": "Node",
        "name": "n"}});
    let refused = send(&server, "POST", &format!("{CORE}/bindings"), "application/json", &binding).await;
    assert_eq!((refused.0, message(&refused)), (404, "pods \"p\" not found"));
}

#[tokio::test]
async fn watch_validates_its_limit() {
    let server = server().await;
    let path = format!("{CORE}/configmaps?watch=true&limit=x");
    let refused = send(&server, "GET", &path, "application/json", &Value::Null).await;
    assert_eq!((refused.0, message(&refused)), (400, "strconv.ParseInt: parsing \"x\": invalid syntax"));
}

/// A manager that removes its last label leaves no empty map, as in the metadata of a built-in type.
#[tokio::test]
async fn applied_custom_resources_have_no_empty_labels() {
    let server = server().await;
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object",
        "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}]}});
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(send(&server, "POST", definitions, "application/json", &definition).await.0, 201);
    let path = "/apis/example.com/v1/namespaces/default/widgets/w?fieldManager=m";
    let widget = |labels: Value| {
        json!({"apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": "w", "labels": labels}, "spec": {"a": {}, "b": null}})
    };
    let apply = "application/apply-patch+yaml";
    for _ in 0..200 {
        if send(&server, "PATCH", path, apply, &widget(json!({"a": "b"}))).await.0 == 201 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    for labels in [json!({}), Value::Null] {
        let (code, applied) = send(&server, "PATCH", path, apply, &widget(labels)).await;
        assert_eq!(code, 200, "{applied}");
        assert_eq!(applied["metadata"].get("labels"), None);
        assert_eq!(applied["spec"]["a"], json!({}), "the rest stays as it was applied");
    }
    let other = path.replace("/w?", "/x?");
    let mut bare = widget(json!({}));
    bare["metadata"]["name"] = json!("x");
    let (code, applied) = send(&server, "PATCH", &other, apply, &bare).await;
    assert_eq!((code, applied["metadata"].get("labels")), (201, None));
}
