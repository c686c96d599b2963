//! Built-in admission and its error messages, against a server in process. Messages and codes were recorded
//! from kube-apiserver 1.34 for the same requests.

mod client;

use client::send as ask;
use fl_apiserver::store::Store;
use fl_apiserver::{ApiServer, Options};
use serde_json::{Value, json};

struct Client(ApiServer);

struct Response {
    code: u16,
    warnings: Vec<String>,
    body: Value,
}

impl Client {
    async fn new() -> Self {
        Self(ApiServer::new(Store::in_memory(), Options::default()).await.expect("the server starts"))
    }

    async fn raw(&self, method: &str, path: &str, media: &str, body: &str) -> Response {
        let answer = ask(&self.0, method, path, media, body.to_owned()).await;
        let code = answer.status().as_u16();
        let warnings = answer.headers().get_all("warning").iter();
        let warnings = warnings.map(|w| w.to_str().unwrap_or_default().to_owned()).collect();
        Response { code, warnings, body: serde_json::from_slice(answer.body()).unwrap_or(Value::Null) }
    }

    async fn send(&self, method: &str, path: &str, body: &Value) -> Response {
        let media = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let text = if body.is_null() { String::new() } else { body.to_string() };
        self.raw(method, path, media, &text).await
    }

    async fn post(&self, path: &str, body: &Value) -> Response {
        self.send("POST", path, body).await
    }
}

impl Response {
    fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";
const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";

fn map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "a"}},
           "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}})
}

fn deployment(name: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {
        "selector": {"matchLabels": {"app": "a"}},
        "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    }})
}

fn claim(name: &str, size: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
           "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}})
}

#[tokio::test]
async fn pods_are_checked_against_pod_security() {
    let client = Client::new().await;
    let namespace = "/api/v1/namespaces/default";
    let level = |level: &str| json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": level}}});
    assert_eq!(client.post(PODS, &pod("before")).await.code, 201);
    let said = client.send("PATCH", namespace, &level("restricted")).await;
    assert_eq!(said.code, 200);
    assert!(said.warnings.iter().any(|w| w.contains("violate the new PodSecurity enforce level")));
    let refused = client.post(PODS, &pod("after")).await;
    assert_eq!(refused.code, 403);
    assert!(
        refused.message().starts_with(
            "pods \"after\" is forbidden: violates PodSecurity \"restricted:latest\": allowPrivilegeEscalation != false (container \"c\" must set"
        ),
        "{}",
        refused.message()
    );
    let made = client.post("/apis/apps/v1/namespaces/default/deployments", &deployment("d")).await;
    assert_eq!(made.code, 201, "makers of pods are only warned about");
    assert!(made.warnings.iter().any(|w| w.contains("would violate PodSecurity")));
    assert_eq!(client.send("PATCH", namespace, &level("tight")).await.code, 422);
    assert_eq!(client.send("PATCH", namespace, &level("privileged")).await.code, 200);
    assert_eq!(client.post(PODS, &pod("after")).await.code, 201);
}

#[tokio::test]
async fn policies_deny_and_warn() {
    let client = Client::new().await;
    let group = "/apis/admissionregistration.k8s.io/v1";
    let policy = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
    "metadata": {"name": "p"}, "spec": {
    "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}]},
    "variables": [{"name": "limit", "expression": "1 + 1"}],
    "validations": [
        {"expression": "object.metadata.name != 'bad'", "message": "bad name"},
        {"expression": "!has(object.data) || object.data.size() <= variables.limit", "messageExpression": "'more than ' + string(variables.limit)", "reason": "Forbidden"}
    ]}});
    let binding = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}});
    assert_eq!(client.post(&format!("{group}/validatingadmissionpolicies"), &policy).await.code, 201);
    assert_eq!(
        client.post(MAPS, &map("bad", json!({}))).await.code,
        201,
        "without a binding it says nothing"
    );
    assert_eq!(client.post(&format!("{group}/validatingadmissionpolicybindings"), &binding).await.code, 201);
    assert_eq!(client.post(MAPS, &map("good", json!({"a": "1"}))).await.code, 201);
    let refused = client.send("PATCH", &format!("{MAPS}/bad"), &json!({"data": {"a": "1"}})).await;
    assert_eq!((refused.code, &refused.body["reason"]), (422, &json!("Invalid")));
    let why = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: bad name";
    assert_eq!(refused.message(), format!("configmaps \"bad\" is forbidden: {why}"));
    assert_eq!(refused.body["details"]["causes"], json!([{"message": why}]));
    let many = client.post(MAPS, &map("many", json!({"a": "1", "b": "2", "c": "3"}))).await;
    assert_eq!(many.code, 403);
    assert!(many.message().ends_with("more than 2"));
    let warn = json!({"spec": {"validationActions": ["Warn"]}});
    let path = format!("{group}/validatingadmissionpolicybindings/b");
    assert_eq!(client.send("PATCH", &path, &warn).await.code, 200);
    let warned = client.post(MAPS, &map("many", json!({"a": "1", "b": "2", "c": "3"}))).await;
    assert_eq!(warned.code, 201);
    assert!(
        warned.warnings.iter().any(|w| w.contains("Validation failed for ValidatingAdmissionPolicy 'p'"))
    );
}

#[tokio::test]
async fn failed_policy_variable_fails_its_expressions() {
    let client = Client::new().await;
    let group = "/apis/admissionregistration.k8s.io/v1";
    let policy = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
    "metadata": {"name": "p"}, "spec": {
    "matchConstraints": {
        "resourceRules": [{"apiGroups": ["", "apps"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
            "resources": ["configmaps", "deployments/scale"]}],
        "excludeResourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"],
            "resources": ["configmaps"], "resourceNames": ["free"]}]},
    "matchConditions": [{"name": "some", "expression": "request.name != 'unasked'"}],
    "variables": [
        {"name": "first", "expression": "int(object.data.n)"},
        {"name": "second", "expression": "variables.first * 2"},
        {"name": "kind", "expression": "request.kind.kind"}],
    "validations": [
        {"expression": "variables.kind == 'ConfigMap'", "messageExpression": "'not a ' + variables.kind"},
        {"expression": "!has(object.data) || variables.second > 0"}
    ]}});
    let binding = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}});
    assert_eq!(client.post(&format!("{group}/validatingadmissionpolicies"), &policy).await.code, 201);
    assert_eq!(client.post(&format!("{group}/validatingadmissionpolicybindings"), &binding).await.code, 201);
    let told = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "untold"}});
    assert_eq!(client.post(MAPS, &told).await.code, 201, "the variable is not evaluated");
    assert_eq!(client.post(MAPS, &map("good", json!({"n": "1"}))).await.code, 201);
    assert_eq!(client.post(MAPS, &map("free", json!({"n": "x"}))).await.code, 201);
    assert_eq!(client.post(MAPS, &map("unasked", json!({"n": "x"}))).await.code, 201);
    let refused = client.post(MAPS, &map("bad", json!({"n": "x"}))).await;
    let why = "expression '!has(object.data) || variables.second > 0' resulted in error: composited variable \"second\" fails to evaluate: composited variable \"first\" fails to evaluate: type conversion error from 'string' to 'int'";
    assert!(refused.message().ends_with(why), "{}", refused.message());
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    assert_eq!(client.post(deployments, &deployment("d")).await.code, 201);
    let scaled =
        client.send("PATCH", &format!("{deployments}/d/scale"), &json!({"spec": {"replicas": 2}})).await;
    assert!(scaled.message().ends_with("denied request: not a Scale"), "{}", scaled.message());
}

#[tokio::test]
async fn claims_get_default_class_and_limits() {
    let client = Client::new().await;
    let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "x",
        "metadata": {"name": "fast", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}});
    assert_eq!(client.post("/apis/storage.k8s.io/v1/storageclasses", &class).await.code, 201);
    assert_eq!(client.post(CLAIMS, &claim("a", "1Gi")).await.body["spec"]["storageClassName"], "fast");
    let range = json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"},
        "spec": {"limits": [{"type": "PersistentVolumeClaim", "max": {"storage": "5Gi"}}]}});
    assert_eq!(client.post("/api/v1/namespaces/default/limitranges", &range).await.code, 201);
    let refused = client.post(CLAIMS, &claim("b", "10Gi")).await;
    assert_eq!(refused.code, 403);
    assert!(
        refused
            .message()
            .ends_with("maximum storage usage per PersistentVolumeClaim is 5Gi, but request is 10Gi")
    );
}

#[tokio::test]
async fn deployment_annotations_increment_generation() {
    let client = Client::new().await;
    let path = "/apis/apps/v1/namespaces/default/deployments";
    client.post(path, &deployment("d")).await;
    let path = format!("{path}/d");
    let labelled = client.send("PATCH", &path, &json!({"metadata": {"labels": {"a": "b"}}})).await;
    assert_eq!(labelled.body["metadata"]["generation"], 1);
    let noted = client.send("PATCH", &path, &json!({"metadata": {"annotations": {"a": "b"}}})).await;
    assert_eq!(noted.body["metadata"]["generation"], 2);
}

#[tokio::test]
async fn disruption_budget_blocks_eviction() {
    let client = Client::new().await;
    client.post(PODS, &pod("p")).await;
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}});
    client.post("/apis/policy/v1/namespaces/default/poddisruptionbudgets", &budget).await;
    let running = json!({"status": {"phase": "Running"}});
    assert_eq!(client.send("PATCH", &format!("{PODS}/p/status"), &running).await.code, 200);
    let eviction =
        |name: &str| json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
    let evict = format!("{PODS}/p/eviction");
    assert_eq!(client.post(&evict, &eviction("q")).await.code, 400);
    let refused = client.post(&evict, &eviction("p")).await;
    assert_eq!((refused.code, &refused.body["details"]["retryAfterSeconds"]), (429, &json!(10)));
    let status = json!({"status": {"observedGeneration": 1, "disruptionsAllowed": 1}});
    let path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/b/status";
    assert_eq!(client.send("PATCH", path, &status).await.code, 200);
    assert_eq!(client.post(&evict, &eviction("p")).await.code, 201);
}

#[tokio::test]
async fn malformed_requests_have_distinct_errors() {
    let client = Client::new().await;
    client.post(MAPS, &map("a", json!({"x": "1"}))).await;
    let one = format!("{MAPS}/a");
    let nameless = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}});
    let said = client.send("PUT", &one, &nameless).await;
    assert_eq!(
        (said.code, said.message()),
        (400, "the name of the object (a based on URL) was undeterminable: name must be provided")
    );
    let both =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "generateName": "a-"}});
    let said = client.post(MAPS, &both).await;
    assert!(said.message().ends_with("the server was not able to generate a unique name for the object"));
    for (media, body, message) in [
        (
            "application/json-patch+json",
            "{}",
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
        ),
        (
            "application/strategic-merge-patch+json",
            "[]",
            "json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
        ("application/strategic-merge-patch+json", "", "unexpected end of JSON input"),
    ] {
        assert_eq!(client.raw("PATCH", &one, media, body).await.message(), message);
    }
    for (body, message) in [
        ("", "couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)"),
        (
            "apiVersion: v1",
            "couldn't get version/kind; json parse error: invalid character 'a' looking for beginning of value (61706956657273696f6e3a207631)",
        ),
        (
            "{\"apiVersion\":1}",
            "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .apiVersion of type string ({\"apiVersion\":1})",
        ),
    ] {
        let said = client.raw("POST", MAPS, "application/json", body).await;
        let start = "the object provided is unrecognized (must be of type ConfigMap): ";
        assert_eq!(said.message(), format!("{start}{message}"));
    }
    let twice = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: yy\ndata:\n  a: b\n  a: c\n";
    let said = client.raw("POST", MAPS, "application/yaml", twice).await;
    assert_eq!(said.code, 201);
    assert!(said.warnings.iter().any(|w| w.contains("line 7: key \\\"a\\\" already set in map")));
    let path = format!("{one}?fieldValidation=Strict");
    let said = client
        .raw("PATCH", &path, "application/merge-patch+json", "{\"data\":{\"a\":\"1\",\"a\":\"2\"}}")
        .await;
    assert!(
        said.message().ends_with("strict decoding error: duplicate field \"data.a\""),
        "{}",
        said.message()
    );
}

#[tokio::test]
async fn invalid_quantities_and_times_are_rejected() {
    let client = Client::new().await;
    let mut wrong = pod("w");
    wrong["spec"]["containers"][0]["resources"] = json!({"limits": {"cpu": "1x"}});
    assert!(client.post(PODS, &wrong).await.message().starts_with(
        "Pod in version \"v1\" cannot be handled as a Pod: quantities must match the regular expression"
    ));
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"},
        "spec": {"renewTime": "2024-01-01T00:00:00Z"}});
    let said = client.post("/apis/coordination.k8s.io/v1/namespaces/default/leases", &lease).await;
    assert!(said.message().ends_with("cannot parse \"Z\" as \".000000\""), "{}", said.message());
}

#[tokio::test]
async fn list_at_version_zero_ignores_limit() {
    let client = Client::new().await;
    for name in ["a", "b", "c"] {
        client.post(MAPS, &map(name, json!({}))).await;
    }
    let cut = client.send("GET", &format!("{MAPS}?limit=2"), &Value::Null).await;
    assert_eq!(cut.body["items"].as_array().map(Vec::len), Some(2));
    let whole = client.send("GET", &format!("{MAPS}?limit=2&resourceVersion=0"), &Value::Null).await;
    assert_eq!(whole.body["items"].as_array().map(Vec::len), Some(3));
}

#[tokio::test]
async fn empty_list_has_a_field_manager() {
    let client = Client::new().await;
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"}, "rules": []});
    let made = client.post("/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles", &role).await;
    assert_eq!(made.body["metadata"]["managedFields"][0]["fieldsV1"], json!({"f:rules": {}}));
    assert_eq!(made.body["rules"], Value::Null, "storage does not tell it from none");
}

#[tokio::test]
async fn patch_cannot_change_the_kind() {
    let client = Client::new().await;
    let (all, one) = ("/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/configmaps/typed");
    let body = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"typed"}}"#;
    assert_eq!(client.raw("POST", all, "application/json", body).await.code, 201);
    let merge = "application/merge-patch+json";
    assert_eq!(client.raw("PATCH", one, merge, r#"{"kind":null}"#).await.code, 200);
    let said = client.raw("PATCH", one, merge, r#"{"apiVersion":null}"#).await;
    assert_eq!(said.code, 400);
    assert_eq!(
        said.body["message"],
        "the name of the object (typed based on URL) was undeterminable: name must be provided"
    );
    // Applying to an existing object does not need its name.
    let nameless = "apiVersion: v1\nkind: ConfigMap\ndata: {a: b}\n";
    let apply = "application/apply-patch+yaml";
    let applied = client.raw("PATCH", &format!("{one}?fieldManager=m"), apply, nameless).await;
    assert_eq!((applied.code, &applied.body["data"]["a"]), (200, &json!("b")));
    let missing = client.raw("PATCH", &format!("{all}/none?fieldManager=m"), apply, nameless).await;
    assert_eq!(missing.code, 400);
}

#[tokio::test]
async fn unsupported_accept_headers_are_rejected() {
    let client = Client::new().await;
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let said = client.raw("POST", path, "application/json", r#"{"spec":{"user":"x"}}"#).await;
    assert_eq!(said.code, 422);
    assert_eq!(said.body["details"]["causes"][0]["field"], "spec.resourceAttributes");
    let bindings = client.raw("GET", "/api/v1/bindings", "application/json", "").await;
    assert_eq!(bindings.code, 404);
}

/// Recorded from kube-apiserver: strings that are not quantities, times or base64, and numbers out of range.
#[tokio::test]
async fn applied_values_must_match_the_type() {
    let client = Client::new().await;
    let rows: Vec<Value> = serde_json::from_str(include_str!("golden/applied/values.json")).expect("a list");
    assert!(rows.len() > 30);
    for row in rows {
        let path =
            format!("{}?fieldManager=flux&force=true&dryRun=All", row["path"].as_str().expect("a path"));
        let text = row["applied"].to_string();
        let said = client.raw("PATCH", &path, "application/apply-patch+yaml", &text).await;
        assert_eq!(
            (Value::from(said.code), said.message()),
            (row["code"].clone(), row["message"].as_str().expect("a text")),
            "{text}"
        );
    }
}
