//! The exported manifests on a real API server.
#![cfg(feature = "oracles")]

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use fl_install::{Component, Options};
use fl_testkit::{Client, ControlPlane};
use serde_json::{Value, json};

/// What a user pipes to kubectl: through YAML and back.
fn exported() -> Vec<Value> {
    let mut options = Options::new("v0.0.0-test");
    options.components = BTreeSet::from(Component::ALL);
    let yaml = fl_install::to_yaml(&fl_install::manifests(&options).expect("manifests")).expect("YAML");
    let documents = fl_yaml::parse_all(yaml.as_bytes(), &fl_yaml::Options::sigs()).expect("YAML reads back");
    let json =
        |node| fl_yaml::to_json(node, fl_yaml::Dialect::Sigs, fl_yaml::JsonStyle::default()).expect("JSON");
    documents.iter().map(|node| serde_json::from_str(&json(node)).expect("JSON")).collect()
}

fn apply(client: &Client, object: &Value) {
    let answer = client.apply(object).expect("an answer");
    let (kind, name) = (&object["kind"], &object["metadata"]["name"]);
    assert!(answer.is_success(), "{kind} {name}: {} {}", answer.status, answer.message());
}

fn condition<'a>(crd: &'a Value, wanted: &str) -> Option<&'a Value> {
    crd["status"]["conditions"].as_array()?.iter().find(|c| c["type"] == wanted)
}

fn wait_established(client: &Client, names: &BTreeSet<String>) {
    let start = Instant::now();
    loop {
        let list =
            client.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").expect("an answer").json();
        let items = list["items"].as_array().cloned().unwrap_or_default();
        let established = items
            .iter()
            .filter(|c| condition(c, "Established").is_some_and(|c| c["status"] == "True"))
            .inspect(|c| assert!(condition(c, "NonStructuralSchema").is_none(), "{}", c["metadata"]["name"]))
            .filter_map(|c| c["metadata"]["name"].as_str().map(str::to_owned))
            .collect::<BTreeSet<_>>();
        if established.is_superset(names) {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "not established: {:?}", names - &established);
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn object(api_version: &str, kind: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": "flux-system"},
        "spec": spec,
    })
}

/// Objects as repositories of earlier years hold them, with fields that only those versions had.
fn objects_of_older_versions() -> Vec<Value> {
    let source = "source.toolkit.fluxcd.io";
    let oci_repository = json!({
        "type": "oci", "url": "oci://registry.example/charts", "interval": "15m", "secretRef": {"name": "registry-pull"},
    });
    let git = json!({
        "url": "https://git.example/platform", "interval": "1m", "gitImplementation": "libgit2",
        "ref": {"branch": "main"}, "ignore": "/*\n!/clusters/shared\n!/platform\n",
        "accessFrom": {"namespaceSelectors": [{"matchLabels": {}}]},
    });
    let kustomization = json!({
        "interval": "5m", "path": "./clusters/shared", "prune": true, "wait": true, "timeout": "30m",
        "retryInterval": "1m", "validation": "client", "sourceRef": {"kind": "GitRepository", "name": "platform"},
        "postBuild": {"substitute": {"DOMAIN": "apps.example"}},
        "kubeConfig": {"secretRef": {"name": "tenant", "key": "config"}},
        "patchesStrategicMerge": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}],
        "patchesJson6902": [{
            "target": {"kind": "Deployment", "name": "web"},
            "patch": [{"op": "replace", "path": "/spec/replicas", "value": 2}],
        }],
    });
    let release = json!({
        "interval": "15m", "timeout": "15m", "releaseName": "cache", "targetNamespace": "cache",
        "chart": {"spec": {
            "chart": "cache", "version": "0.33.*", "valuesFile": "values-small.yaml",
            "sourceRef": {"kind": "HelmRepository", "name": "charts", "namespace": "flux-system"},
        }},
        "dependsOn": [{"name": "certificates"}],
        "install": {"disableWait": true, "remediation": {"retries": 3}},
        "upgrade": {"disableWait": true, "preserveValues": true, "remediation": {"retries": 3}},
        "values": {"replicas": 1},
        "postRenderers": [{"kustomize": {"patchesStrategicMerge": [{"kind": "Deployment"}]}}],
    });
    let flux_instance = json!({
        "distribution": {"version": "2.2.x", "registry": "registry.example/flux", "pullSecret": "flux-pull"},
        "components": ["source-controller", "kustomize-controller"],
        "cluster": {"type": "eks", "multitenant": true, "domain": "cluster.local", "networkPolicy": true},
        "shards": ["shard1", "shard2"],
        "storage": {"class": "standard", "size": "10Gi"},
        "kustomize": {"patches": [{
            "target": {"kind": "Deployment", "labelSelector": "app.kubernetes.io/component in (helm-controller)"},
            "patch": "- op: add\n  path: /spec/template/spec/containers/0/args/-\n  value: --concurrent=10\n",
        }]},
    });
    let mut instance = object("fluxcd.controlplane.io/v1alpha1", "FluxInstance", "flux", &flux_instance);
    instance["metadata"]["annotations"] = json!({"fluxcd.controlplane.io/reconcileEvery": "10m"});
    vec![
        object(&format!("{source}/v1beta2"), "HelmRepository", "charts", &oci_repository),
        object(
            &format!("{source}/v1beta1"),
            "HelmRepository",
            "plain",
            &json!({"url": "https://charts.example", "interval": "10m"}),
        ),
        object(&format!("{source}/v1beta2"), "GitRepository", "platform", &git),
        object(&format!("{source}/v1beta1"), "GitRepository", "older", &git),
        object(
            &format!("{source}/v1beta2"),
            "OCIRepository",
            "tenant",
            &json!({"url": "oci://registry.example/tenant", "interval": "1m"}),
        ),
        object(
            &format!("{source}/v1beta1"),
            "Bucket",
            "files",
            &json!({"bucketName": "files", "endpoint": "s3.example", "interval": "1m"}),
        ),
        object("kustomize.toolkit.fluxcd.io/v1beta2", "Kustomization", "shared", &kustomization),
        object("kustomize.toolkit.fluxcd.io/v1beta1", "Kustomization", "older", &kustomization),
        object("helm.toolkit.fluxcd.io/v2beta1", "HelmRelease", "cache", &release),
        object("helm.toolkit.fluxcd.io/v2beta2", "HelmRelease", "cache-2", &release),
        object(
            "notification.toolkit.fluxcd.io/v1beta1",
            "Provider",
            "chat",
            &json!({"type": "slack", "address": "https://chat.example/hook"}),
        ),
        object(
            "notification.toolkit.fluxcd.io/v1beta2",
            "Alert",
            "all",
            &json!({
                "providerRef": {"name": "chat"}, "eventSources": [{"kind": "FluxInstance", "name": "*"}], "summary": "staging",
            }),
        ),
        object(
            "notification.toolkit.fluxcd.io/v1beta1",
            "Receiver",
            "hook",
            &json!({
                "type": "github", "secretRef": {"name": "hook"}, "resources": [{"kind": "GitRepository", "name": "platform"}],
            }),
        ),
        object(
            "image.toolkit.fluxcd.io/v1beta1",
            "ImageRepository",
            "web",
            &json!({"image": "registry.example/web", "interval": "5m"}),
        ),
        object(
            "image.toolkit.fluxcd.io/v1beta1",
            "ImagePolicy",
            "web",
            &json!({
                "imageRepositoryRef": {"name": "web"}, "policy": {"semver": {"range": ">=1.0.0"}},
            }),
        ),
        instance,
    ]
}

/// Everything in `wanted` is in `got` with the same value.
fn assert_contains(got: &Value, wanted: &Value, path: &str) {
    match (got, wanted) {
        (Value::Object(got), Value::Object(wanted)) => {
            for (key, value) in wanted {
                let child = got.get(key).unwrap_or_else(|| panic!("{path}.{key} was dropped"));
                assert_contains(child, value, &format!("{path}.{key}"));
            }
        }
        (Value::Array(got), Value::Array(wanted)) => {
            assert_eq!(got.len(), wanted.len(), "{path}");
            for (at, (got, wanted)) in got.iter().zip(wanted).enumerate() {
                assert_contains(got, wanted, &format!("{path}[{at}]"));
            }
        }
        _ => assert_eq!(got, wanted, "{path}"),
    }
}

/// The same object in the version the server stores.
fn stored_version(client: &Client, object: &Value) -> Value {
    let kind = object["kind"].as_str().expect("a kind");
    let stored = Component::ALL
        .iter()
        .flat_map(|c| fl_api::definitions(c.crds()))
        .find(|d| d.kind() == kind)
        .map(|d| format!("{}/{}", d.group(), d.versions()[0]))
        .expect("a definition");
    let mut newer = object.clone();
    newer["apiVersion"] = json!(stored);
    client.get(&client.path_of(&newer).expect("a path")).expect("an answer").json()
}

fn bad_objects() -> Vec<(Value, &'static str)> {
    let git = |spec: Value| object("source.toolkit.fluxcd.io/v1", "GitRepository", "bad", &spec);
    let kustomization = |source: Value| {
        let spec = json!({"interval": "1m", "prune": true, "sourceRef": source});
        object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "bad", &spec)
    };
    vec![
        (git(json!({"url": "https://a.example", "interval": "1 hour"})), "spec.interval"),
        (git(json!({"url": "ftp://a.example", "interval": "1m"})), "spec.url"),
        (git(json!({"url": "https://a.example"})), "spec.interval"),
        (git(json!({"url": "https://a.example", "interval": "1m", "provider": "nimbus"})), "spec.provider"),
        (git(json!({"url": "https://a.example", "interval": "1m", "unknown": 1})), "spec.unknown"),
        (kustomization(json!({"kind": "GitRepositry", "name": "a"})), "needs an apiVersion"),
        (kustomization(json!({"kind": "GitRepository"})), "spec.sourceRef.name"),
        (
            object("helm.toolkit.fluxcd.io/v2", "HelmRelease", "bad", &json!({"interval": "1m"})),
            "either chart or chartRef must be set",
        ),
        (
            object("source.toolkit.fluxcd.io/v1beta2", "HelmRepository", "bad", &json!({"url": "git://a"})),
            "spec.url",
        ),
    ]
}

#[test]
fn export_applies_twice_and_serves_all_versions() {
    let mut plane = ControlPlane::start().expect("a control plane; `cargo xtask oracles` builds its tools");
    let client = plane.client().clone();
    let objects = exported();
    let crds = objects.iter().filter(|o| o["kind"] == "CustomResourceDefinition");
    let crds =
        crds.filter_map(|o| o["metadata"]["name"].as_str().map(str::to_owned)).collect::<BTreeSet<_>>();

    objects.iter().for_each(|o| apply(&client, o));
    wait_established(&client, &crds);
    let versions = |client: &Client| {
        let read = |o| client.get(&client.path_of(o).expect("a path")).expect("an answer").json();
        objects.iter().map(|o| read(o)["metadata"]["resourceVersion"].clone()).collect::<Vec<_>>()
    };
    let before = versions(&client);
    objects.iter().for_each(|o| apply(&client, o));
    assert_eq!(versions(&client), before, "applying again changes nothing");

    for old in objects_of_older_versions() {
        let answer = client.apply(&old).expect("an answer");
        let name = format!("{} {} {}", old["apiVersion"], old["kind"], old["metadata"]["name"]);
        assert!(answer.is_success(), "{name}: {}", answer.message());
        assert!(answer.warnings.iter().any(|w| w.contains("is deprecated, upgrade to")), "{name} warns");
        assert_contains(&answer.json()["spec"], &old["spec"], "spec");
        assert_contains(&stored_version(&client, &old)["spec"], &old["spec"], "spec");
    }

    let foreign = json!({"apiVersion": "sources.example/v1", "kind": "Feed", "name": "a"});
    let spec = json!({"interval": "1m", "prune": true, "sourceRef": foreign});
    apply(&client, &object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "foreign", &spec));

    for (bad, wanted) in bad_objects() {
        let answer = client.apply(&bad).expect("an answer");
        assert!(!answer.is_success(), "accepted: {bad}");
        assert!(answer.message().contains(wanted), "{wanted} is not in {}", answer.message());
    }
    plane.check().expect("all processes still run");
}
