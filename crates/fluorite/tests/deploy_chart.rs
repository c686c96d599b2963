//! The Helm chart in `deploy/`: rendered by this project's engine with values people use, and every object applied to the
//! embedded API server, which checks it against the schemas of Kubernetes and of our own definitions.

mod server;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use server::Server;

fn deploy(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(path)
}

fn documents(text: &[u8]) -> Vec<Value> {
    let nodes = fl_yaml::parse_all(text, &fl_yaml::Options::sigs()).expect("YAML");
    let json = |n: &fl_yaml::Node| {
        fl_yaml::to_json(n, fl_yaml::Dialect::Sigs, fl_yaml::JsonStyle::default()).expect("JSON")
    };
    let values = nodes.iter().map(|n| serde_json::from_str::<Value>(&json(n)).expect("JSON"));
    values.filter(|v| !v.is_null()).collect()
}

fn template(sets: &[&str]) -> Result<Vec<Value>, String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fluorite"));
    command.args(["helm", "template", "fluorite"]).arg(deploy("chart/fluorite"));
    command.args(["--namespace", "gitops", "--kube-version", "1.34.0"]);
    for set in sets {
        command.args(["--set", set]);
    }
    let run = command.output().expect("the program runs");
    match run.status.success() {
        true => Ok(documents(&run.stdout)),
        false => Err(String::from_utf8_lossy(&run.stderr).into_owned()),
    }
}

fn find<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    objects
        .iter()
        .find(|o| o["kind"] == kind && o["metadata"]["name"] == name)
        .unwrap_or_else(|| panic!("no {kind}/{name}"))
}

fn arguments(objects: &[Value]) -> Vec<&str> {
    let deployment = objects.iter().find(|o| o["kind"] == "Deployment").expect("a Deployment");
    let args = deployment["spec"]["template"]["spec"]["containers"][0]["args"].as_array().expect("arguments");
    args.iter().map(|a| a.as_str().expect("a text")).collect()
}

/// The kinds of the Prometheus operator, as far as the chart uses them.
fn monitoring_definitions() -> Vec<Value> {
    let definition = |kind: &str, plural: &str, spec: Value| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.monitoring.coreos.com")},
            "spec": {
                "group": "monitoring.coreos.com",
                "names": {"kind": kind, "plural": plural},
                "scope": "Namespaced",
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                    "type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}}}],
            },
        })
    };
    let text = json!({"type": "string"});
    let texts = json!({"type": "object", "additionalProperties": text});
    let endpoints = json!({"type": "array", "items": {"type": "object",
        "properties": {"port": text, "path": text, "interval": text}}});
    let selector = json!({"type": "object", "properties": {"matchLabels": texts}});
    let rule = json!({"type": "object", "required": ["expr"], "properties":
        {"alert": text, "expr": text, "for": text, "labels": texts, "annotations": texts}});
    let group = json!({"type": "object", "required": ["name"],
        "properties": {"name": text, "rules": {"type": "array", "items": rule}}});
    vec![
        definition(
            "PodMonitor",
            "podmonitors",
            json!({"selector": selector, "podMetricsEndpoints": endpoints}),
        ),
        definition(
            "ServiceMonitor",
            "servicemonitors",
            json!({"selector": selector, "endpoints": endpoints}),
        ),
        definition("PrometheusRule", "prometheusrules", json!({"groups": {"type": "array", "items": group}})),
    ]
}

#[tokio::test]
async fn every_object_is_accepted_by_the_api_server() {
    let everything = [
        "metrics.podMonitor.create=true",
        "metrics.serviceMonitor.create=true",
        "metrics.rules.create=true",
        "metrics.dashboards.create=true",
        "metrics.podMonitor.labels.team=platform",
        "storage.sizeLimit=2Gi",
        "multitenancy.enabled=true",
        "watchLabelSelector=sharding.fluxcd.io/key=one",
        "concurrent=10",
        "image.pullSecrets={mirror}",
        "tolerations[0].key=dedicated,tolerations[0].operator=Exists",
        "extraEnv[0].name=HTTPS_PROXY,extraEnv[0].value=http://proxy.example:3128",
        "extraArgs={--interval-jitter-percentage=10}",
    ];
    let least = [
        "components={kustomize}",
        "crds.install=false",
        "rbac.create=false",
        "serviceAccount.create=false",
        "networkPolicy.create=false",
        "criticalPodsQuota=false",
        "priorityClassName=",
        "metrics.scrapeAnnotations=false",
        "storage.existingClaim=artifacts",
    ];
    for sets in [&[][..], &everything[..], &least[..]] {
        let objects = template(sets).expect("the chart renders");
        let server = Server::start().await;
        server.take(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gitops"}})).await;
        for definition in monitoring_definitions() {
            server.take(&definition).await;
        }
        for object in &objects {
            server.take(object).await;
        }
    }
}

#[test]
fn manifest_and_chart_deploy_the_same_flags() {
    let manifest = documents(&std::fs::read(deploy("manifests/fluorite.yaml")).expect("the manifest"));
    let chart = template(&[]).expect("the chart renders");
    let pod = |objects: &[Value]| find(objects, "Deployment", "fluorite")["spec"]["template"]["spec"].clone();
    let (ours, theirs) = (pod(&chart), pod(&manifest));
    for field in ["securityContext", "readinessProbe", "livenessProbe", "resources", "image", "volumeMounts"]
    {
        assert_eq!(ours["containers"][0][field], theirs["containers"][0][field], "{field}");
    }
    assert_eq!(ours["volumes"], theirs["volumes"]);
    let names = |objects: &[Value]| {
        let crds = objects.iter().filter(|o| o["kind"] == "CustomResourceDefinition");
        let mut names: Vec<String> = crds.map(|o| o["metadata"]["name"].to_string()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&chart), names(&manifest), "the same definitions");
}

/// The flags the chart writes are flags that the engine has: `--help` is the last word on the command line, so that
/// everything before it is read and checked.
#[test]
fn chart_flags_exist() {
    for sets in [&[][..], &["multitenancy.enabled=true", "concurrent=3", "eventsAddress=http://n/"][..]] {
        let objects = template(sets).expect("the chart renders");
        let mut args = arguments(&objects);
        args.push("--help");
        let run =
            Command::new(env!("CARGO_BIN_EXE_fluorite")).args(&args).output().expect("the program runs");
        assert!(run.status.success(), "{args:?}: {}", String::from_utf8_lossy(&run.stderr));
    }
}

#[test]
fn values_have_their_effect() {
    let objects = template(&[]).expect("the chart renders");
    let args = arguments(&objects);
    assert!(args.contains(&"--components=source,kustomize,helm"), "{args:?}");
    assert!(args.contains(&"--storage-adv-addr=source-controller.gitops.svc.cluster.local."), "{args:?}");
    for crd in objects.iter().filter(|o| o["kind"] == "CustomResourceDefinition") {
        assert_eq!(crd["metadata"]["annotations"]["helm.sh/resource-policy"], "keep", "{}", crd["metadata"]);
    }
    let service = find(&objects, "Service", "source-controller");
    let pod = &find(&objects, "Deployment", "fluorite")["spec"]["template"];
    assert_eq!(service["spec"]["selector"]["app"], pod["metadata"]["labels"]["app"]);

    let objects = template(&["components={helm}", "image.digest=sha256:00ff", "serviceAccount.name=robot"])
        .expect("renders");
    assert!(!objects.iter().any(|o| o["kind"] == "Service"), "nothing is served without sources");
    let pod = &find(&objects, "Deployment", "fluorite")["spec"]["template"]["spec"];
    assert_eq!(pod["serviceAccountName"], "robot");
    assert!(pod["containers"][0]["image"].as_str().is_some_and(|i| i.ends_with("@sha256:00ff")));
}

#[test]
fn invalid_values_are_rejected() {
    for (set, word) in [
        ("replica=2", "replica"),
        ("components={}", "components"),
        ("components={notification}", "components"),
        ("logLevel=loud", "logLevel"),
        ("replicas=-1", "replicas"),
        ("image.digest=latest", "digest"),
    ] {
        let error = template(&[set]).expect_err(set);
        assert!(error.contains(word), "{set}: {error}");
    }
}
