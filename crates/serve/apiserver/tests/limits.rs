//! Quotas, resizing, certificate signing requests, and bodies without a type.

use bytes::Bytes;
use fl_apiserver::store::Store;
use fl_apiserver::{ApiServer, ConnectionInfo, Options, User};
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};

struct Client(ApiServer);

impl Client {
    async fn new() -> Self {
        Self(ApiServer::new(Store::in_memory(), Options::default()).await.expect("the server starts"))
    }

    async fn send(&self, method: &str, path: &str, media: &str, body: impl Into<Bytes>) -> (u16, Value) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost")
            .header("content-type", media)
            .body(Full::new(body.into()))
            .expect("a request");
        let response = self.0.handle(request, ConnectionInfo { user: Some(User::superuser("test")) }).await;
        let code = response.status().as_u16();
        let body = response.into_body().collect().await.expect("a body").to_bytes();
        (code, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }

    async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.send("POST", path, "application/json", body.to_string()).await
    }

    async fn patch(&self, path: &str, body: &Value) -> (u16, Value) {
        self.send("PATCH", path, "application/merge-patch+json", body.to_string()).await
    }
}

fn message(answer: &(u16, Value)) -> &str {
    answer.1["message"].as_str().unwrap_or_default()
}

const CORE: &str = "/api/v1/namespaces/default";

fn pod(name: &str, resources: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "app", "image": "i", "resources": resources}]}})
}

async fn quota(client: &Client, name: &str, spec: Value) {
    let quotas = format!("{CORE}/resourcequotas");
    let body = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}, "spec": spec});
    assert_eq!(client.post(&quotas, &body).await.0, 201);
    let hard = spec["hard"].clone();
    let used: Value = hard.as_object().expect("limits").keys().map(|k| (k.clone(), json!("0"))).collect();
    let status = json!({"status": {"hard": hard, "used": used}});
    assert_eq!(client.patch(&format!("{quotas}/{name}/status"), &status).await.0, 200);
}

#[tokio::test]
async fn quotas_are_charged_and_enforced() {
    let client = Client::new().await;
    quota(&client, "q", json!({"hard": {"pods": "2", "requests.cpu": "1", "configmaps": "1"}})).await;
    let pods = format!("{CORE}/pods");
    let refused = client.post(&pods, &pod("a", json!({}))).await;
    assert_eq!(
        message(&refused),
        "pods \"a\" is forbidden: failed quota: q: must specify requests.cpu for: app"
    );
    let asks = |cpu: &str| json!({"requests": {"cpu": cpu}});
    assert_eq!(client.post(&pods, &pod("a", asks("600m"))).await.0, 201);
    let refused = client.post(&pods, &pod("b", asks("500m"))).await;
    assert_eq!(
        message(&refused),
        "pods \"b\" is forbidden: exceeded quota: q, requested: requests.cpu=500m, used: requests.cpu=600m, limited: requests.cpu=1"
    );
    // A dry-run has no usage.
    assert_eq!(client.post(&format!("{pods}?dryRun=All"), &pod("b", asks("100m"))).await.0, 201);
    assert_eq!(client.post(&pods, &pod("a", asks("100m"))).await.0, 409);
    let (_, held) =
        client.send("GET", &format!("{CORE}/resourcequotas/q"), "application/json", Bytes::new()).await;
    assert_eq!(held["status"]["used"], json!({"pods": "1", "requests.cpu": "600m", "configmaps": "0"}));
}

#[tokio::test]
async fn services_count_when_they_change() {
    let client = Client::new().await;
    quota(&client, "q", json!({"hard": {"services": "2", "services.nodeports": "0"}})).await;
    let services = format!("{CORE}/services");
    let body = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    assert_eq!(client.post(&services, &body).await.0, 201);
    let refused = client.patch(&format!("{services}/s"), &json!({"spec": {"type": "NodePort"}})).await;
    assert_eq!(
        message(&refused),
        "services \"s\" is forbidden: exceeded quota: q, requested: services.nodeports=1, used: services.nodeports=0, limited: services.nodeports=0"
    );
}

#[tokio::test]
async fn resize_changes_only_resources() {
    let client = Client::new().await;
    let both = |cpu: &str| json!({"requests": {"cpu": cpu, "memory": "1Mi"}, "limits": {"cpu": cpu, "memory": "1Mi"}});
    assert_eq!(client.post(&format!("{CORE}/pods"), &pod("p", both("100m"))).await.0, 201);
    let resize = format!("{CORE}/pods/p/resize");
    let ask = |resources: Value| json!({"metadata": {"labels": {"x": "y"}}, "spec": {"containers": [{"name": "app", "image": "other", "resources": resources}]}});
    let (code, done) = client.patch(&resize, &ask(both("200m"))).await;
    assert_eq!((code, &done["spec"]["containers"][0]["resources"]), (200, &both("200m")));
    assert_eq!(done["spec"]["containers"][0]["image"], "i");
    assert!(done["metadata"]["labels"].is_null());
    let refused = client.patch(&resize, &ask(json!({"requests": {"cpu": "1"}}))).await;
    assert_eq!(refused.0, 422);
    assert!(message(&refused).contains("resource limits cannot be removed"), "{refused:?}");
    let refused = client.patch(&resize, &json!({"spec": {"containers": []}})).await;
    assert!(message(&refused).contains("containers may not be added or removed on resize"), "{refused:?}");
}

#[tokio::test]
async fn certificate_requests_name_the_requester_and_are_approved_once() {
    use base64::Engine as _;
    let pem = "-----BEGIN CERTIFICATE REQUEST-----\nAA==\n-----END CERTIFICATE REQUEST-----\n";
    let request = base64::engine::general_purpose::STANDARD.encode(pem);
    let all = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let client = Client::new().await;
    let body = |signer: &str| {
        json!({"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": "c"},
            "spec": {"request": request, "signerName": signer, "usages": ["client auth"], "username": "somebody"}})
    };
    assert_eq!(client.post(all, &body("nobody")).await.0, 422);
    let (code, made) = client.post(all, &body("example.com/s")).await;
    assert_eq!((code, &made["spec"]["username"]), (201, &json!("test")));
    let decide = |kind: &str| json!({"status": {"conditions": [{"type": kind, "status": "True", "reason": "r", "message": "m"}]}});
    let refused = client.patch(&format!("{all}/c/status"), &decide("Approved")).await;
    assert!(message(&refused).contains("updates may not add a condition of type"), "{refused:?}");
    let (code, decided) = client.patch(&format!("{all}/c/approval"), &decide("Approved")).await;
    assert_eq!(code, 200);
    assert!(decided["status"]["conditions"][0]["lastTransitionTime"].is_string());
    let refused = client.patch(&format!("{all}/c/approval"), &decide("Denied")).await;
    assert!(message(&refused).contains("updates may not remove a condition of type"), "{refused:?}");
}

#[tokio::test]
async fn custom_resources_need_kind_and_api_version() {
    let client = Client::new().await;
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "as.x.io"}, "spec": {"group": "x.io", "scope": "Namespaced",
        "names": {"plural": "as", "singular": "a", "kind": "A", "listKind": "AList"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object",
        "properties": {"spec": {"type": "object", "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true}}}}}]}});
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(client.post(definitions, &definition).await.0, 201);
    let path = "/apis/x.io/v1/namespaces/default/as";
    for _ in 0..200 {
        if client.send("GET", path, "application/json", Bytes::new()).await.0 == 200 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let cases = [
        (
            r#"{"metadata":{"name":"x"}}"#,
            r#"the object provided is unrecognized (must be of type A): Object 'Kind' is missing in '{"metadata":{"name":"x"}}' ({"metadata":{"name":"x"}})"#,
        ),
        (
            r#"{"kind":"A","metadata":{"name":"x"}}"#,
            "the API version in the data () does not match the expected API version (x.io/v1)",
        ),
        (
            "{",
            "the object provided is unrecognized (must be of type A): couldn't get version/kind; json parse error: unexpected end of JSON input ({)",
        ),
    ];
    for (body, said) in cases {
        let refused = client.send("POST", path, "application/json", body).await;
        assert_eq!((refused.0, message(&refused)), (400, said));
    }
    let embedded = json!({"apiVersion": "x.io/v1", "kind": "A", "metadata": {"name": "x"},
        "spec": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a/b", "labels": {"a b": "c"}}}});
    let refused = client.post(path, &embedded).await;
    assert_eq!(refused.0, 422);
    assert!(message(&refused).contains("spec.metadata.name: Invalid value: \"a/b\": may not contain '/'"));
    assert!(message(&refused).contains("spec.metadata.labels: Invalid value: \"a b\""));
}
