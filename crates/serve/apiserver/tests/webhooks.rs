//! Webhooks for admission and conversion, called over TLS on loopback. Messages are those of kube-apiserver
//! 1.34.

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use fl_apiserver::{ApiServer, ConnectionInfo, Pki, User};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};

/// A webhook server; its response depends on the path.
struct Hooks {
    url: String,
    ca: String,
    asked: Arc<Mutex<Vec<(String, Value)>>>,
}

/// A JSON patch that counts in a field of the data how often it was applied.
fn count(response: &mut Value, review: &Value, field: &str) {
    let before =
        review["request"]["object"]["data"][field].as_str().and_then(|n| n.parse().ok()).unwrap_or(0);
    let patch = json!([{"op": "add", "path": format!("/data/{field}"), "value": (before + 1).to_string()}]);
    response["patchType"] = json!("JSONPatch");
    response["patch"] = json!(STANDARD.encode(patch.to_string()));
}

fn admission(path: &str, review: &Value) -> Value {
    let mut response = json!({"uid": review["request"]["uid"], "allowed": true});
    match path {
        "/deny" => {
            response["allowed"] = json!(false);
            response["status"] = json!({"message": "not today", "code": 403});
        }
        "/deny-silently" => response["allowed"] = json!(false),
        "/deny-with-reason" => {
            response["allowed"] = json!(false);
            response["status"] = json!({"reason": "Conflict", "code": 409});
        }
        "/a" => count(&mut response, review, "a"),
        "/b" => count(&mut response, review, "b"),
        "/warn" => response["warnings"] = json!(["mind the gap"]),
        "/wrong-uid" => response["uid"] = json!("other"),
        "/bad-patch" => {
            response["patchType"] = json!("JSONPatch");
            response["patch"] = json!(STANDARD.encode("nope"));
        }
        _ => {}
    }
    json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response})
}

/// v1 has `spec.host` ("name:port"), v2 has `spec.hostname` and `spec.port`.
fn conversion(path: &str, review: &Value) -> Value {
    let request = &review["request"];
    let to = request["desiredAPIVersion"].as_str().expect("a version");
    let mut objects = request["objects"].as_array().expect("objects").clone();
    for object in &mut objects {
        object["apiVersion"] = json!(to);
        let spec = object["spec"].as_object_mut().expect("a spec");
        if to.ends_with("/v2") {
            if let Some(host) = spec.remove("host") {
                let (name, port) = host.as_str().and_then(|h| h.split_once(':')).expect("a host");
                spec.insert("hostname".into(), json!(name));
                spec.insert("port".into(), json!(port));
            }
        } else if let Some(name) = spec.remove("hostname") {
            let port = spec.remove("port").unwrap_or_else(|| json!(""));
            let host = format!("{}:{}", name.as_str().expect("text"), port.as_str().expect("text"));
            spec.insert("host".into(), json!(host));
        }
        match path {
            "/convert-and-rename" => object["metadata"]["name"] = json!("other"),
            "/convert-and-label" => object["metadata"]["labels"] = json!({"converted": "yes"}),
            "/convert-to-nothing" => object["apiVersion"] = json!("wrong/v9"),
            _ => {}
        }
    }
    let mut response =
        json!({"uid": request["uid"], "convertedObjects": objects, "result": {"status": "Success"}});
    match path {
        "/convert-and-fail" => response["result"] = json!({"status": "Failed", "message": "cannot do"}),
        "/convert-few" => response["convertedObjects"] = json!([]),
        _ => {}
    }
    json!({"kind": "ConversionReview", "apiVersion": review["apiVersion"], "response": response})
}

impl Hooks {
    async fn start() -> Self {
        let pki = Pki::generate(&[[127, 0, 0, 1].into()]).expect("certificates");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let chain =
            vec![CertificateDer::from_pem_slice(pki.server.certificate.as_bytes()).expect("a certificate")];
        let key = PrivateKeyDer::from_pem_slice(pki.server.key.as_bytes()).expect("a key");
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .expect("a configuration");
        let tls = tokio_rustls::TlsAcceptor::from(Arc::new(config));
        let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a socket");
        let url = format!("https://{}", socket.local_addr().expect("an address"));
        let asked: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
        let seen = asked.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = socket.accept().await {
                let (tls, seen) = (tls.clone(), seen.clone());
                tokio::spawn(async move {
                    let Ok(stream) = tls.accept(stream).await else { return };
                    let service = hyper::service::service_fn(move |request| answer(request, seen.clone()));
                    let io = hyper_util::rt::TokioIo::new(stream);
                    let _ = hyper::server::conn::http1::Builder::new().serve_connection(io, service).await;
                });
            }
        });
        Self { url, ca: STANDARD.encode(pki.ca.certificate), asked }
    }

    /// The paths that were called since the last `take`.
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().expect("a lock")).into_iter().map(|(path, _)| path).collect()
    }

    /// One webhook on ConfigMaps, with fields that a test adds.
    fn hook(&self, name: &str, path: &str, more: &Value) -> Value {
        let mut hook = json!({
            "name": format!("{name}.example.com"), "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": {"url": format!("{}{path}", self.url), "caBundle": self.ca},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}]
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            hook[key] = value.clone();
        }
        hook
    }
}

async fn answer(
    request: Request<hyper::body::Incoming>,
    seen: Arc<Mutex<Vec<(String, Value)>>>,
) -> Result<Response<Full<Bytes>>, std::convert::Infallible> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.expect("a body").to_bytes();
    let review: Value = serde_json::from_slice(&body).expect("a review");
    if path == "/slow" {
        tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    }
    let text = if review["kind"] == "ConversionReview" {
        conversion(&path, &review).to_string()
    } else {
        admission(&path, &review).to_string()
    };
    seen.lock().expect("a lock").push((path.clone(), review));
    let mut response = Response::new(Full::new(Bytes::from(text)));
    if path == "/broken" {
        *response.status_mut() = http::StatusCode::INTERNAL_SERVER_ERROR;
    }
    Ok(response)
}

struct WebhookResponse {
    code: u16,
    body: Value,
    warnings: Vec<String>,
}

impl WebhookResponse {
    fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }
}

async fn send(
    server: &ApiServer,
    method: &str,
    path: &str,
    content_type: &str,
    body: &Value,
) -> WebhookResponse {
    let bytes = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "localhost")
        .header("user-agent", "tester/1")
        .header("content-type", content_type)
        .body(Full::new(bytes))
        .expect("a request");
    let response = server.handle(request, ConnectionInfo { user: Some(User::superuser("test")) }).await;
    let code = response.status().as_u16();
    let warnings = response.headers().get_all("warning").iter();
    let warnings = warnings.filter_map(|w| w.to_str().ok()).map(str::to_owned).collect();
    let bytes = response.into_body().collect().await.expect("a body").to_bytes();
    WebhookResponse { code, body: serde_json::from_slice(&bytes).unwrap_or(Value::Null), warnings }
}

async fn post(server: &ApiServer, path: &str, body: &Value) -> WebhookResponse {
    send(server, "POST", path, "application/json", body).await
}

async fn get(server: &ApiServer, path: &str) -> WebhookResponse {
    send(server, "GET", path, "application/json", &Value::Null).await
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

fn map(name: &str) -> Value {
    json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": {"k": "v"}})
}

/// A server with one configuration: `Validating` or `Mutating`.
async fn server_with(kind: &str, hooks: Vec<Value>) -> ApiServer {
    let server = ApiServer::in_memory().await.expect("the server starts");
    let configuration = json!({"kind": format!("{kind}WebhookConfiguration"),
        "apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": "hooks"}, "webhooks": hooks});
    let at = format!("/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations", kind.to_lowercase());
    let made = post(&server, &at, &configuration).await;
    assert_eq!(made.code, 201, "{}", made.body);
    server
}

#[tokio::test]
async fn webhook_denies_and_warns() {
    let hooks = Hooks::start().await;
    for (path, code, message) in [
        ("/deny", 403, "admission webhook \"h.example.com\" denied the request: not today"),
        ("/deny-silently", 400, "admission webhook \"h.example.com\" denied the request without explanation"),
        ("/deny-with-reason", 409, "admission webhook \"h.example.com\" denied the request: Conflict"),
    ] {
        let server = server_with("Validating", vec![hooks.hook("h", path, &json!({}))]).await;
        let refused = post(&server, MAPS, &map("a")).await;
        assert_eq!((refused.code, refused.message()), (code, message));
    }
    let server = server_with("Validating", vec![hooks.hook("h", "/warn", &json!({}))]).await;
    let made = post(&server, MAPS, &map("a")).await;
    assert_eq!((made.code, made.warnings), (201, vec!["299 - \"mind the gap\"".to_owned()]));
}

#[tokio::test]
async fn webhook_failures_fail_the_request_unless_ignored() {
    let hooks = Hooks::start().await;
    let gone = json!({"clientConfig": {"url": "https://127.0.0.1:1/gone"}});
    let service =
        json!({"clientConfig": {"service": {"namespace": "default", "name": "hook", "path": "/ok"}}});
    let stranger = json!({"clientConfig": {"url": format!("{}/ok", hooks.url)}});
    let slow_url = format!("{}/slow?timeout=1s", hooks.url);
    let called = "failed to call webhook: ";
    for (kind, path, more, why) in [
        ("Validating", "/slow", json!({"timeoutSeconds": 1}), format!("{called}Post {slow_url:?}: context deadline exceeded")),
        ("Validating", "", gone, format!("{called}Post \"https://127.0.0.1:1/gone?timeout=10s\": dial tcp 127.0.0.1:1: connect: connection refused")),
        ("Validating", "", service, format!("{called}Post \"https://hook.default.svc:443/ok?timeout=10s\": service \"hook\" not found")),
        ("Validating", "", stranger, format!("{called}Post \"{}/ok?timeout=10s\": tls: failed to verify certificate: x509: certificate signed by unknown authority", hooks.url)),
        ("Validating", "/broken", json!({}), format!("{called}an error on the server (\"unknown\") has prevented the request from succeeding")),
        ("Validating", "/a", json!({}), "received invalid webhook response: validating webhook may not return response.patch".to_owned()),
        ("Mutating", "/bad-patch", json!({}), "received undecodable patch in webhook response: invalid character 'o' in literal null (expecting 'u')".to_owned()),
    ] {
        let server = server_with(kind, vec![hooks.hook("h", path, &more)]).await;
        let failed = post(&server, MAPS, &map("a")).await;
        let wanted = format!("Internal error occurred: failed calling webhook \"h.example.com\": {why}");
        assert_eq!((failed.code, failed.message()), (500, wanted.as_str()));
        let mut lenient = more;
        lenient["failurePolicy"] = json!("Ignore");
        let server = server_with(kind, vec![hooks.hook("h", path, &lenient)]).await;
        assert_eq!(post(&server, MAPS, &map("a")).await.code, 201, "{path} ignored");
    }
    let server = server_with("Validating", vec![hooks.hook("h", "/wrong-uid", &json!({}))]).await;
    let failed = post(&server, MAPS, &map("a")).await;
    assert!(failed.message().contains("received invalid webhook response: expected response.uid=\""));
}

#[tokio::test]
async fn selectors_and_conditions_decide_which_webhooks_are_called() {
    let hooks = Hooks::start().await;
    let selected = json!({"objectSelector": {"matchLabels": {"ask": "me"}}});
    let server = server_with("Validating", vec![hooks.hook("h", "/deny", &selected)]).await;
    assert_eq!(post(&server, MAPS, &map("a")).await.code, 201);
    let mut labelled = map("b");
    labelled["metadata"]["labels"] = json!({"ask": "me"});
    assert_eq!(post(&server, MAPS, &labelled).await.code, 403);
    // The new labels count as well as the old ones.
    let patch = json!({"metadata": {"labels": {"ask": "me"}}});
    assert_eq!(send(&server, "PATCH", &format!("{MAPS}/a"), MERGE, &patch).await.code, 403);

    let namespace =
        |team: &str| json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": team}}});
    for (name, code) in [("default", 403), ("other", 201)] {
        let server = server_with("Validating", vec![hooks.hook("h", "/deny", &namespace(name))]).await;
        assert_eq!(post(&server, MAPS, &map("a")).await.code, code);
    }

    let condition = |text: &str| json!({"matchConditions": [{"name": "c", "expression": text}]});
    let named = condition("object.metadata.name == 'asked'");
    let server = server_with("Validating", vec![hooks.hook("h", "/deny", &named)]).await;
    assert_eq!(post(&server, MAPS, &map("a")).await.code, 201);
    assert_eq!(post(&server, MAPS, &map("asked")).await.code, 403);

    let mut failing = condition("object.metadata.nosuch == 'x'");
    let server = server_with("Validating", vec![hooks.hook("h", "/deny", &failing)]).await;
    let refused = post(&server, MAPS, &map("a")).await;
    assert_eq!(
        (refused.code, refused.message()),
        (
            403,
            "configmaps \"a\" is forbidden: expression 'object.metadata.nosuch == 'x'' resulted in error: no such key: nosuch"
        )
    );
    failing["failurePolicy"] = json!("Ignore");
    let server = server_with("Validating", vec![hooks.hook("h", "/deny", &failing)]).await;
    assert_eq!(post(&server, MAPS, &map("a")).await.code, 201);
}

#[tokio::test]
async fn webhooks_mutate_objects_and_are_reinvoked() {
    let hooks = Hooks::start().await;
    let again = json!({"reinvocationPolicy": "IfNeeded"});
    for (first, second, asked, data) in [
        (json!({}), json!({}), vec!["/a", "/b"], json!({"k": "v", "a": "1", "b": "1"})),
        (again.clone(), json!({}), vec!["/a", "/b", "/a"], json!({"k": "v", "a": "2", "b": "1"})),
        (again.clone(), again, vec!["/a", "/b", "/a", "/b"], json!({"k": "v", "a": "2", "b": "2"})),
    ] {
        let list = vec![hooks.hook("h1", "/a", &first), hooks.hook("h2", "/b", &second)];
        let server = server_with("Mutating", list).await;
        let made = post(&server, MAPS, &map("m")).await;
        assert_eq!((made.code, &made.body["data"]), (201, &data));
        assert_eq!(hooks.take(), asked);
        // Changes by a webhook have no field manager.
        assert!(!made.body["metadata"]["managedFields"].to_string().contains("f:b"));
    }
}

#[tokio::test]
async fn webhooks_are_called_for_deletions() {
    let hooks = Hooks::start().await;
    let rules = json!({"rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["DELETE"], "resources": ["*"]}]});
    let server = server_with("Validating", vec![hooks.hook("h", "/deny", &rules)]).await;
    assert_eq!(post(&server, MAPS, &map("a")).await.code, 201);
    let refused = send(&server, "DELETE", &format!("{MAPS}/a"), "application/json", &Value::Null).await;
    assert_eq!(refused.code, 403);
    let asked = hooks.asked.lock().expect("a lock").pop().expect("asked").1;
    assert_eq!(asked["request"]["object"], Value::Null);
    assert_eq!(asked["request"]["oldObject"]["metadata"]["name"], "a");

    let server = server_with("Mutating", vec![hooks.hook("h", "/a", &rules)]).await;
    assert_eq!(post(&server, MAPS, &map("a")).await.code, 201);
    let refused = send(&server, "DELETE", &format!("{MAPS}/a"), "application/json", &Value::Null).await;
    assert_eq!(
        (refused.code, refused.message()),
        (
            500,
            "Internal error occurred: admission webhook \"h.example.com\" attempted to modify the object, which is not supported for this operation"
        )
    );
}

#[tokio::test]
async fn dry_runs_call_only_webhooks_without_side_effects() {
    let hooks = Hooks::start().await;
    let server = server_with("Mutating", vec![hooks.hook("h", "/a", &json!({}))]).await;
    let shown = post(&server, &format!("{MAPS}?dryRun=All&fieldManager=me"), &map("a")).await;
    assert_eq!(shown.body["data"]["a"], "1");
    assert_eq!(get(&server, &format!("{MAPS}/a")).await.code, 404);
    let asked = hooks.asked.lock().expect("a lock").pop().expect("asked").1;
    let wanted = json!({"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "dryRun": ["All"], "fieldManager": "me"});
    assert_eq!((&asked["request"]["dryRun"], &asked["request"]["options"]), (&json!(true), &wanted));
}

/// A rule on one version of a resource matches all of them; the webhook gets the version of its rule.
#[tokio::test]
async fn equivalent_versions_are_converted() {
    let hooks = Hooks::start().await;
    let rules = json!([{"apiGroups": ["autoscaling"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["horizontalpodautoscalers"]}]);
    let scaler = json!({"kind": "HorizontalPodAutoscaler", "apiVersion": "autoscaling/v2", "metadata": {"name": "h"},
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "apiVersion": "apps/v1", "name": "d"}}});
    let path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
    let server = server_with("Validating", vec![hooks.hook("h", "/deny", &json!({"rules": rules}))]).await;
    assert_eq!(post(&server, path, &scaler).await.code, 403);
    let request = hooks.asked.lock().expect("a lock").pop().expect("asked").1["request"].take();
    assert_eq!(request["object"]["apiVersion"], "autoscaling/v1");
    assert_eq!(
        (&request["kind"]["version"], &request["requestKind"]["version"]),
        (&json!("v1"), &json!("v2"))
    );
    let exact = json!({"rules": rules, "matchPolicy": "Exact"});
    let server = server_with("Validating", vec![hooks.hook("h", "/deny", &exact)]).await;
    assert_eq!(post(&server, path, &scaler).await.code, 201);
}

/// A server with a CRD in two versions that a webhook converts.
async fn server_with_conversion(hooks: &Hooks, path: &str) -> ApiServer {
    let schema = |properties: Value| {
        json!({"openAPIV3Schema": {"type": "object", "properties": {
        "spec": {"type": "object", "properties": properties}, "status": {"type": "object", "properties": {"n": {"type": "integer"}}}}}})
    };
    let text = json!({"type": "string"});
    let definition = json!({"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1",
    "metadata": {"name": "hosts.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
    "names": {"plural": "hosts", "singular": "host", "kind": "Host", "listKind": "HostList"},
    "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
        "clientConfig": {"url": format!("{}{path}", hooks.url), "caBundle": hooks.ca}}},
    "versions": [
        {"name": "v1", "served": true, "storage": true, "schema": schema(json!({"host": text})), "subresources": {"status": {}}},
        {"name": "v2", "served": true, "storage": false, "schema": schema(json!({"hostname": text, "port": text})), "subresources": {"status": {}}}
    ]}});
    let server = ApiServer::in_memory().await.expect("the server starts");
    let made = post(&server, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await;
    assert_eq!(made.code, 201, "{}", made.body);
    while get(&server, "/apis/example.com/v1/hosts").await.code != 200 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    server
}

const V1: &str = "/apis/example.com/v1/namespaces/default/hosts";
const V2: &str = "/apis/example.com/v2/namespaces/default/hosts";

fn host(version: &str, name: &str, spec: Value) -> Value {
    json!({"kind": "Host", "apiVersion": format!("example.com/{version}"), "metadata": {"name": name}, "spec": spec})
}

#[tokio::test]
async fn versions_are_converted_both_ways() {
    let hooks = Hooks::start().await;
    let server = server_with_conversion(&hooks, "/convert").await;
    assert_eq!(post(&server, V1, &host("v1", "a", json!({"host": "h:1"}))).await.code, 201);
    let read = get(&server, &format!("{V2}/a")).await;
    assert_eq!(read.body["spec"], json!({"hostname": "h", "port": "1"}), "{}", read.body);
    let made = post(&server, V2, &host("v2", "b", json!({"hostname": "g", "port": "2"}))).await;
    assert_eq!((made.code, &made.body["spec"]), (201, &json!({"hostname": "g", "port": "2"})));
    assert_eq!(get(&server, &format!("{V1}/b")).await.body["spec"], json!({"host": "g:2"}));
    hooks.take();
    let list = get(&server, V2).await;
    let names: Vec<&Value> =
        list.body["items"].as_array().expect("items").iter().map(|o| &o["spec"]["hostname"]).collect();
    assert_eq!(names, ["h", "g"]);
    assert!(hooks.take().is_empty(), "what was converted before is not converted again");

    let patched = send(&server, "PATCH", &format!("{V2}/a"), MERGE, &json!({"spec": {"port": "9"}})).await;
    assert_eq!((patched.code, &patched.body["spec"]), (200, &json!({"hostname": "h", "port": "9"})));
    assert_eq!(get(&server, &format!("{V1}/a")).await.body["spec"]["host"], "h:9");
    // Managed fields keep the version in which they were set, and are compared in it.
    let applied = host("v1", "a", json!({"host": "zz:1"}));
    let refused = send(&server, "PATCH", &format!("{V1}/a?fieldManager=other"), APPLY, &applied).await;
    assert_eq!(refused.code, 409);
    assert!(
        refused.message().contains("conflict with \"tester\" using example.com/v2: .spec.port"),
        "{}",
        refused.message()
    );

    let status = send(&server, "PATCH", &format!("{V2}/a/status"), MERGE, &json!({"status": {"n": 3}})).await;
    assert_eq!((status.code, &status.body["status"]["n"]), (200, &json!(3)));
    let gone = send(&server, "DELETE", &format!("{V2}/a"), "application/json", &Value::Null).await;
    assert_eq!(gone.code, 200, "{}", gone.body);
    assert_eq!(get(&server, &format!("{V1}/a")).await.code, 404);
}

#[tokio::test]
async fn watch_converts_to_its_version() {
    let hooks = Hooks::start().await;
    let server = server_with_conversion(&hooks, "/convert").await;
    post(&server, V1, &host("v1", "a", json!({"host": "h:1"}))).await;
    let seen = get(&server, &format!("{V2}?watch=1&resourceVersion=0&timeoutSeconds=1")).await;
    assert_eq!(
        (&seen.body["type"], &seen.body["object"]["spec"]["hostname"]),
        (&json!("ADDED"), &json!("h"))
    );
}

#[tokio::test]
async fn failed_conversions_are_reported() {
    let hooks = Hooks::start().await;
    for (path, why) in [
        ("/convert-and-fail", "conversion webhook for example.com/v1, Kind=Host failed: cannot do"),
        ("/convert-few", "conversion webhook for example.com/v1, Kind=Host returned 0 objects, expected 1"),
        (
            "/convert-and-rename",
            "conversion webhook for example.com/v1, Kind=Host returned invalid object: must have the same name: a != other",
        ),
        (
            "/convert-to-nothing",
            "conversion webhook for example.com/v1, Kind=Host returned invalid object at index 0: invalid groupVersion (expected example.com/v2, received wrong/v9)",
        ),
        (
            "/broken",
            "conversion webhook for example.com/v1, Kind=Host failed: an error on the server (\"unknown\") has prevented the request from succeeding",
        ),
    ] {
        let server = server_with_conversion(&hooks, path).await;
        assert_eq!(post(&server, V1, &host("v1", "a", json!({"host": "h:1"}))).await.code, 201);
        let failed = get(&server, &format!("{V2}/a")).await;
        assert_eq!((failed.code, failed.message()), (500, why));
        assert_eq!(
            get(&server, &format!("{V1}/a")).await.code,
            200,
            "the stored version needs no conversion"
        );
    }
    let server = server_with_conversion(&hooks, "/convert-and-label").await;
    post(&server, V1, &host("v1", "a", json!({"host": "h:1"}))).await;
    let read = get(&server, &format!("{V2}/a")).await;
    assert_eq!(read.body["metadata"]["labels"], json!({"converted": "yes"}));
}
