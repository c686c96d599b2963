//! API semantics of a server in process.

mod client;

use bytes::Bytes;
use client::send as ask;
use fl_apiserver::store::Store;
use fl_apiserver::{ApiServer, ConnectionInfo, Options, SimulateOptions, User};
use http::{Request, StatusCode};
use http_body_util::Full;
use serde_json::{Value, json};

struct Client(ApiServer);

impl Client {
    async fn new(options: Options) -> Self {
        Self(ApiServer::new(Store::in_memory(), options).await.expect("the server starts"))
    }

    async fn send(&self, method: &str, path: &str, content_type: &str, body: &Value) -> (StatusCode, Value) {
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let answer = ask(&self.0, method, path, content_type, text).await;
        (answer.status(), serde_json::from_slice(answer.body()).unwrap_or(Value::Null))
    }

    async fn get(&self, path: &str) -> (StatusCode, Value) {
        self.send("GET", path, "application/json", &Value::Null).await
    }

    async fn post(&self, path: &str, body: &Value) -> (StatusCode, Value) {
        self.send("POST", path, "application/json", body).await
    }

    async fn until(&self, path: &str, done: impl Fn(StatusCode, &Value) -> bool) -> Value {
        for _ in 0..400 {
            let (code, body) = self.get(path).await;
            if done(code, &body) {
                return body;
            }
            tokio::time::sleep(std::time::Duration::from_millis(25)).await;
        }
        panic!("{path} never got there: {:?}", self.get(path).await);
    }
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str) -> Value {
    json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": {"k": "v"}})
}

#[tokio::test]
async fn objects_are_created_updated_and_deleted() {
    let client = Client::new(Options::default()).await;
    let (code, made) = client.post(MAPS, &map("a")).await;
    assert_eq!(code, 201);
    assert_eq!(made["metadata"]["managedFields"][0]["manager"], "test");
    assert_eq!(client.post(MAPS, &map("a")).await.0, 409);
    let patch = json!({"data": {"k": "w"}});
    let (code, patched) =
        client.send("PATCH", &format!("{MAPS}/a"), "application/merge-patch+json", &patch).await;
    assert_eq!((code, &patched["data"]["k"]), (StatusCode::OK, &json!("w")));
    let (_, same) = client.send("PATCH", &format!("{MAPS}/a"), "application/merge-patch+json", &patch).await;
    assert_eq!(
        same["metadata"]["resourceVersion"], patched["metadata"]["resourceVersion"],
        "a no-op is silent"
    );
    assert_eq!(client.send("DELETE", &format!("{MAPS}/a"), "application/json", &Value::Null).await.0, 200);
    assert_eq!(client.get(&format!("{MAPS}/a")).await.0, 404);
}

#[tokio::test]
async fn pages_show_one_revision() {
    let client = Client::new(Options::default()).await;
    for i in 0..5 {
        client.post(MAPS, &map(&format!("m{i}"))).await;
    }
    let (_, first) = client.get(&format!("{MAPS}?limit=2")).await;
    let token = first["metadata"]["continue"].as_str().expect("more to come");
    client.send("DELETE", &format!("{MAPS}/m3"), "application/json", &Value::Null).await;
    let (_, rest) = client.get(&format!("{MAPS}?limit=10&continue={token}")).await;
    let names: Vec<&str> = rest["items"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|o| o["metadata"]["name"].as_str())
        .collect();
    assert_eq!(names, ["m2", "m3", "m4"], "the page is of the view the list began with");
}

/// I03: a watch from a compacted revision ends with 410, one from the future is rejected.
#[tokio::test]
async fn watch_revisions_are_checked() {
    let client = Client::new(Options::default()).await;
    let (_, made) = client.post(MAPS, &map("a")).await;
    let revision: u64 =
        made["metadata"]["resourceVersion"].as_str().expect("a revision").parse().expect("a number");
    client.post(MAPS, &map("b")).await;
    client.0.store().compact(client.0.revision());
    let (_, gone) = client.get(&format!("{MAPS}?watch=1&resourceVersion={revision}&timeoutSeconds=1")).await;
    assert_eq!((&gone["type"], &gone["object"]["code"]), (&json!("ERROR"), &json!(410)));
    let future = client.0.revision() + 1000;
    assert_eq!(client.get(&format!("{MAPS}?watch=1&resourceVersion={future}&timeoutSeconds=1")).await.0, 504);
}

/// I01: paths that try to escape their namespace or resource.
#[tokio::test]
async fn odd_paths_are_not_found() {
    let client = Client::new(Options::default()).await;
    client
        .post(
            "/api/v1/namespaces/kube-system/secrets",
            &json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "s"}}),
        )
        .await;
    for path in [
        "/api/v1/namespaces/default/../kube-system/secrets/s",
        "/api/v1/namespaces/default%2F..%2Fkube-system/secrets/s",
        "/api/v1/namespaces/default/secrets/..%2F..%2Fkube-system%2Fs",
        "/api/v1/namespaces/default/secrets/%252e%252e",
        "/api/v1/namespaces//secrets/s",
        "/api/v1/nodes/secrets/s",
    ] {
        let (code, _) = client.get(path).await;
        assert!(code.is_client_error(), "{path} answered {code}");
    }
}

/// I02: limits on the size of requests.
#[tokio::test]
async fn large_requests_are_rejected() {
    let client = Client::new(Options::default()).await;
    client.post(MAPS, &map("a")).await;
    let operations: Vec<Value> =
        (0..10_001).map(|_| json!({"op": "test", "path": "/data/k", "value": "v"})).collect();
    let (code, _) =
        client.send("PATCH", &format!("{MAPS}/a"), "application/json-patch+json", &json!(operations)).await;
    assert_eq!(code, 413);
    let big = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "big"}, "data": {"k": "x".repeat(4 << 20)}});
    assert_eq!(client.post(MAPS, &big).await.0, 413);
}

/// I04: requests without credentials are rejected, and RBAC authorizes the others.
#[tokio::test]
async fn requests_without_credentials_are_rejected() {
    let client = Client::new(Options { anonymous: false, ..Options::default() }).await;
    let request =
        Request::get(MAPS).header("host", "localhost").body(Full::new(Bytes::new())).expect("a request");
    assert_eq!(client.0.handle(request, ConnectionInfo::default()).await.status(), 401);
    let request =
        Request::get(MAPS).header("host", "evil.example").body(Full::new(Bytes::new())).expect("a request");
    assert_eq!(
        client.0.handle(request, ConnectionInfo { user: Some(User::superuser("x")) }).await.status(),
        403
    );
}

#[tokio::test]
async fn workloads_become_ready_or_fail() {
    let simulate = SimulateOptions { ready_after: std::time::Duration::from_millis(30), nodes: 2 };
    let client = Client::new(Options { simulate: Some(simulate), ..Options::default() }).await;
    let deployment = |name: &str, image: &str| {
        json!({"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": name},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": image}]}}}})
    };
    let path = "/apis/apps/v1/namespaces/default/deployments";
    assert_eq!(client.post(path, &deployment("good", "nginx:1")).await.0, 201);
    assert_eq!(client.post(path, &deployment("bad", "nginx:fail")).await.0, 201);
    let ready = client.until(&format!("{path}/good"), |_, d| d["status"]["readyReplicas"] == 2).await;
    assert_eq!(ready["status"]["observedGeneration"], ready["metadata"]["generation"]);
    let (_, bad) = client.get(&format!("{path}/bad")).await;
    assert!(bad["status"]["readyReplicas"].is_null());
    let job = json!({"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": "j"},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}});
    client.post("/apis/batch/v1/namespaces/default/jobs", &job).await;
    client.until("/apis/batch/v1/namespaces/default/jobs/j", |_, j| j["status"]["succeeded"] == 1).await;
}

#[tokio::test]
async fn dependents_and_namespace_content_are_deleted() {
    let client = Client::new(Options::default()).await;
    let (_, owner) = client.post(MAPS, &map("owner")).await;
    let mut dependent = map("dependent");
    dependent["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}]);
    client.post(MAPS, &dependent).await;
    client.send("DELETE", &format!("{MAPS}/owner"), "application/json", &Value::Null).await;
    client.until(&format!("{MAPS}/dependent"), |code, _| code == 404).await;
    client
        .post(
            "/api/v1/namespaces",
            &json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "n"}}),
        )
        .await;
    client.post("/api/v1/namespaces/n/configmaps", &map("a")).await;
    client.send("DELETE", "/api/v1/namespaces/n", "application/json", &Value::Null).await;
    client.until("/api/v1/namespaces/n", |code, _| code == 404).await;
}

/// A CRD with a schema of several hundred kilobytes, as large as the largest ones in use.
fn large_crd() -> Value {
    fn below(depth: usize) -> Value {
        let text = "What this field is for, at the length such texts have in definitions that people really install. "
            .repeat(2);
        let mut properties = serde_json::Map::new();
        for i in 0..5 {
            properties.insert(
                format!("text{i}"),
                json!({"type": "string", "maxLength": 64, "description": text, "pattern": "^[a-z0-9-]*$"}),
            );
        }
        properties.insert("count".into(), json!({"type": "integer", "minimum": 0, "default": 1}));
        let labels =
            json!({"type": "object", "additionalProperties": {"type": "string"}, "description": text});
        properties.insert("labels".into(), labels);
        if depth > 0 {
            for i in 0..3 {
                properties.insert(format!("part{i}"), below(depth - 1));
            }
            let mut item = below(depth - 1);
            item["required"] = json!(["text0"]);
            properties.insert(
                "items".into(),
                json!({"type": "array", "maxItems": 16, "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["text0"]}),
            );
        }
        json!({"type": "object", "description": text, "properties": properties,
            "required": if depth == 0 { json!(["text0"]) } else { json!([]) }})
    }
    json!({"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1", "metadata": {"name": "issuers.large.example.com"},
        "spec": {"group": "large.example.com", "scope": "Namespaced",
        "names": {"plural": "issuers", "singular": "issuer", "kind": "Issuer", "listKind": "IssuerList"},
        "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": below(4), "status": {"type": "object"}}}}}]}})
}

#[tokio::test]
async fn large_crds_install_and_validate() {
    let client = Client::new(Options::default()).await;
    let definition = large_crd();
    let size = definition.to_string().len();
    assert!((400_000..1_400_000).contains(&size), "{size} bytes");
    let started = std::time::Instant::now();
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?fieldManager=me";
    let (code, made) = client
        .send(
            "PATCH",
            &path.replace('?', "/issuers.large.example.com?"),
            "application/apply-patch+yaml",
            &definition,
        )
        .await;
    assert_eq!(code, 201, "{}", made["message"]);
    let issuers = "/apis/large.example.com/v1/namespaces/default/issuers";
    client.until(issuers, |code, _| code == 200).await;
    let issuer = |name: &str, spec: Value| json!({"kind": "Issuer", "apiVersion": "large.example.com/v1", "metadata": {"name": name}, "spec": spec});
    let leaf = json!({"part0": {"part1": {"part2": {"items": [{"text0": "a"}]}}}});
    let (code, made) = client.post(issuers, &issuer("good", leaf)).await;
    assert_eq!(code, 201, "{}", made["message"]);
    let at = "/spec/part0/part1/part2/items/0/count";
    assert_eq!(made.pointer(at), Some(&json!(1)), "defaults reach the leaves");
    let bad = json!({"part0": {"part1": {"part2": {"part0": {"text1": "UPPER"}}}}});
    let (code, refused) = client.post(issuers, &issuer("bad", bad)).await;
    assert_eq!(code, 422);
    let message = refused["message"].as_str().expect("a message");
    assert!(message.contains("spec.part0.part1.part2.part0.text0: Required value"), "{message}");
    assert!(message.contains("spec.part0.part1.part2.part0.text1: Invalid value: \"UPPER\""), "{message}");
    println!("{size} bytes of definition, installed and used in {:?}", started.elapsed());
}

/// I02: an object above etcd's limit.
#[tokio::test]
async fn object_size_is_limited() {
    let client = Client::new(Options::default()).await;
    let secret = |name: &str, size: usize| json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": name}, "data": {"k": "AAAA".repeat(size / 4)}});
    let path = "/api/v1/namespaces/default/secrets";
    let (code, refused) = client.post(path, &secret("a", 2 << 20)).await;
    assert_eq!(code, 422, "secrets have a limit of their own: {}", refused["message"]);
    // The limit of the store holds for every kind.
    let events = "/api/v1/namespaces/default/replicationcontrollers";
    let labels: serde_json::Map<String, Value> =
        (0..110_000).map(|i| (format!("l{i}"), json!("v"))).collect();
    let large = json!({"kind": "ReplicationController", "apiVersion": "v1", "metadata": {"name": "a", "labels": labels},
        "spec": {"selector": {"a": "b"}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    let (code, refused) = client.post(events, &large).await;
    assert_eq!((code.as_u16(), &refused["message"]), (500, &json!("etcdserver: request is too large")));
}

/// CronJobs create Jobs on schedule and keep the configured number of them.
#[tokio::test]
async fn cron_jobs_start_jobs() {
    use std::sync::atomic::{AtomicI64, Ordering};
    let simulate = SimulateOptions { ready_after: std::time::Duration::from_millis(10), nodes: 1 };
    let start: i64 = 1_767_225_570;
    let offset = std::sync::Arc::new(AtomicI64::new(0));
    let (shared, began) = (offset.clone(), std::time::Instant::now());
    let clock = std::sync::Arc::new(move || {
        let base = jiff::Timestamp::from_second(start + shared.load(Ordering::SeqCst)).expect("a time");
        base.saturating_add(jiff::SignedDuration::try_from(began.elapsed()).expect("short")).expect("a time")
    });
    let client = Client::new(Options { simulate: Some(simulate), clock, ..Options::default() }).await;
    let cron = json!({"kind": "CronJob", "apiVersion": "batch/v1", "metadata": {"name": "c"}, "spec": {
        "schedule": "* * * * *", "successfulJobsHistoryLimit": 1, "jobTemplate": {"spec": {"template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}}});
    let path = "/apis/batch/v1/namespaces/default/cronjobs";
    assert_eq!(client.post(path, &cron).await.0, 201);
    let jobs = "/apis/batch/v1/namespaces/default/jobs";
    for minute in 1..=3 {
        offset.store(minute * 60, Ordering::SeqCst);
        // Any change makes the simulation check its clock.
        client.post(MAPS, &map(&format!("tick{minute}"))).await;
        let touch = json!({"metadata": {"annotations": {"tick": minute.to_string()}}});
        client.send("PATCH", &format!("{path}/c"), "application/merge-patch+json", &touch).await;
        let name = format!("{jobs}/c-{}", (start + minute * 60) / 60);
        let job = client.until(&name, |_, job| job["status"]["succeeded"] == 1).await;
        assert_eq!(job["metadata"]["ownerReferences"][0]["kind"], "CronJob");
        assert!(job["spec"]["selector"]["matchLabels"].is_object(), "a job like any other");
    }
    let done = client.until(jobs, |_, list| list["items"].as_array().is_some_and(|l| l.len() == 1)).await;
    assert!(done["items"][0]["metadata"]["name"].as_str().is_some_and(|n| n.starts_with("c-")));
    client.until(&format!("{path}/c"), |_, c| c["status"]["lastSuccessfulTime"].is_string()).await;
}

#[tokio::test]
async fn foreground_deletion_waits_for_blocking_dependents() {
    let client = Client::new(Options::default()).await;
    let owner = client.post(MAPS, &map("owner")).await.1;
    let uid = owner["metadata"]["uid"].clone();
    for (name, blocks, finalizers) in [
        ("quick", true, json!([])),
        ("held", true, json!(["example.com/f"])),
        ("beside", false, json!(["example.com/f"])),
    ] {
        let mut dependent = map(name);
        dependent["metadata"]["finalizers"] = finalizers;
        dependent["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "ConfigMap",
            "name": "owner", "uid": uid, "blockOwnerDeletion": blocks}]);
        assert_eq!(client.post(MAPS, &dependent).await.0, 201);
    }
    let path = format!("{MAPS}/owner?propagationPolicy=Foreground");
    assert_eq!(client.send("DELETE", &path, "application/json", &Value::Null).await.0, 200);
    client.until(&format!("{MAPS}/quick"), |code, _| code == 404).await;
    let going = |_, object: &Value| object["metadata"]["deletionTimestamp"].is_string();
    client.until(&format!("{MAPS}/held"), going).await;
    assert_eq!(client.get(&format!("{MAPS}/owner")).await.0, 200);
    let free = json!({"metadata": {"finalizers": null}});
    client.send("PATCH", &format!("{MAPS}/held"), "application/merge-patch+json", &free).await;
    client.until(&format!("{MAPS}/owner"), |code, _| code == 404).await;
    client.until(&format!("{MAPS}/beside"), going).await;
}

#[tokio::test]
async fn dependent_with_another_owner_is_kept() {
    let client = Client::new(Options::default()).await;
    let mut references = Vec::new();
    for name in ["one", "two"] {
        let owner = client.post(MAPS, &map(name)).await.1;
        references.push(json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name,
            "uid": owner["metadata"]["uid"], "blockOwnerDeletion": true}));
    }
    let mut dependent = map("shared");
    dependent["metadata"]["ownerReferences"] = json!(references);
    assert_eq!(client.post(MAPS, &dependent).await.0, 201);
    let path = format!("{MAPS}/one?propagationPolicy=Foreground");
    assert_eq!(client.send("DELETE", &path, "application/json", &Value::Null).await.0, 200);
    client.until(&format!("{MAPS}/one"), |code, _| code == 404).await;
    let kept = client.get(&format!("{MAPS}/shared")).await.1;
    assert_eq!(kept["metadata"]["ownerReferences"], json!([references[1]]));
}

#[tokio::test]
async fn updated_terminating_namespace_still_waits_for_its_content() {
    let client = Client::new(Options::default()).await;
    let namespaces = "/api/v1/namespaces";
    let body = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "going"}});
    assert_eq!(client.post(namespaces, &body).await.0, 201);
    let mut held = map("held");
    held["metadata"]["finalizers"] = json!(["example.com/f"]);
    assert_eq!(client.post(&format!("{namespaces}/going/configmaps"), &held).await.0, 201);
    let path = format!("{namespaces}/going");
    assert_eq!(client.send("DELETE", &path, "application/json", &Value::Null).await.0, 200);
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    let (code, _) = client.send("PATCH", &path, "application/merge-patch+json", &labels).await;
    assert_eq!((code, client.get(&path).await.0), (StatusCode::OK, StatusCode::OK));
    let free = json!({"metadata": {"finalizers": null}});
    let inside = format!("{namespaces}/going/configmaps/held");
    client.send("PATCH", &inside, "application/merge-patch+json", &free).await;
    client.until(&path, |code, _| code == 404).await;
}

/// The status of quotas next to simulated workloads, as the quota controller writes it.
#[tokio::test(start_paused = true)]
async fn quota_usage_is_counted_with_simulated_workloads() {
    let simulate = SimulateOptions { ready_after: std::time::Duration::from_millis(10), nodes: 1 };
    let client = Client::new(Options { simulate: Some(simulate), ..Options::default() }).await;
    client.post(MAPS, &map("early")).await;
    let quotas = "/api/v1/namespaces/default/resourcequotas";
    let quota = |name: &str, spec: Value| json!({"kind": "ResourceQuota", "apiVersion": "v1", "metadata": {"name": name}, "spec": spec});
    let hard = json!({"configmaps": "2", "pods": "9", "cpu": "2000m", "count/widgets.example.com": "1"});
    assert_eq!(client.post(quotas, &quota("q", json!({"hard": hard}))).await.0, 201);
    let scoped = json!({"hard": {"pods": "1"}, "scopes": ["Terminating"]});
    assert_eq!(client.post(quotas, &quota("t", scoped)).await.0, 201);
    let path = format!("{quotas}/q");
    let counted = client.until(&path, |_, q| q["status"]["used"]["configmaps"] == "1").await;
    // A type that is not registered has no usage.
    assert_eq!(counted["status"]["used"], json!({"configmaps": "1", "pods": "0", "cpu": "0"}));
    assert_eq!(counted["status"]["hard"], counted["spec"]["hard"]);

    // Pods of a controller count like others; one that exceeds the quota is created when there is room.
    let job = |name: &str| {
        json!({"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": name},
        "spec": {"template": {"metadata": {"annotations": {"fluorite.dev/simulate": "pending"}}, "spec": {
        "restartPolicy": "Never", "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "300m"}}}]}}}})
    };
    let jobs = "/apis/batch/v1/namespaces/default/jobs";
    client.post(jobs, &job("a")).await;
    client
        .until(&path, |_, q| q["status"]["used"]["cpu"] == "300m" && q["status"]["used"]["pods"] == "1")
        .await;
    client
        .send("DELETE", &format!("{jobs}/a?propagationPolicy=Background"), "application/json", &Value::Null)
        .await;
    client.until(&path, |_, q| q["status"]["used"]["cpu"] == "0").await;

    assert_eq!(client.post(MAPS, &map("second")).await.0, 201);
    assert_eq!(client.post(MAPS, &map("third")).await.0, 403);
    client.send("DELETE", &format!("{MAPS}/early"), "application/json", &Value::Null).await;
    client.until(&path, |_, q| q["status"]["used"]["configmaps"] == "1").await;
    assert_eq!(client.post(MAPS, &map("third")).await.0, 201);
    let less = json!({"spec": {"hard": {"cpu": null}}});
    client.send("PATCH", &path, "application/merge-patch+json", &less).await;
    let fewer = client.until(&path, |_, q| q["status"]["hard"].get("cpu").is_none()).await;
    assert_eq!(fewer["status"]["used"], json!({"configmaps": "2", "pods": "0"}));
    assert_eq!(client.get(&format!("{quotas}/t")).await.1["status"]["used"], json!({"pods": "0"}));

    client
        .send("PATCH", &path, "application/merge-patch+json", &json!({"spec": {"hard": {"pods": "1"}}}))
        .await;
    client.until(&path, |_, q| q["status"]["hard"]["pods"] == "1").await;
    let deployment = json!({"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "d"}, "spec": {
        "replicas": 2, "selector": {"matchLabels": {"app": "d"}}, "template": {"metadata": {"labels": {"app": "d"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    client.post(deployments, &deployment).await;
    let one = client.until(&format!("{deployments}/d"), |_, d| d["status"]["readyReplicas"].is_u64()).await;
    assert_eq!(one["status"]["readyReplicas"], 1, "there is no room for two");
    client
        .send("PATCH", &path, "application/merge-patch+json", &json!({"spec": {"hard": {"pods": "5"}}}))
        .await;
    client.until(&format!("{deployments}/d"), |_, d| d["status"]["readyReplicas"] == 2).await;
    client.until(&path, |_, q| q["status"]["used"]["pods"] == "2").await;
}
