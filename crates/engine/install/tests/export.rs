//! Objects of an installation.

use std::collections::BTreeSet;

use fl_install::{Component, Layout, NetworkPolicy, Options, Watch, crds, manifests, to_yaml};
use serde_json::Value;

fn options() -> Options {
    Options::new("v1.2.3")
}

fn build(options: &Options) -> Vec<Value> {
    manifests(options).expect("the options are valid")
}

/// `Kind/name` of all objects except CRDs.
fn index(objects: &[Value]) -> Vec<String> {
    let text = |v: &Value| v.as_str().expect("a text").to_owned();
    objects
        .iter()
        .filter(|o| o["kind"] != "CustomResourceDefinition")
        .map(|o| format!("{}/{}", text(&o["kind"]), text(&o["metadata"]["name"])))
        .collect()
}

fn find<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    objects
        .iter()
        .find(|o| o["kind"] == kind && o["metadata"]["name"] == name)
        .unwrap_or_else(|| panic!("no {kind}/{name}"))
}

#[test]
fn single_deployment_keeps_fluxs_names() {
    let objects = build(&options());
    assert_eq!(
        index(&objects),
        [
            "Namespace/flux-system",
            "ResourceQuota/critical-pods-flux-system",
            "NetworkPolicy/allow-egress",
            "NetworkPolicy/allow-scraping",
            "ServiceAccount/fluorite",
            "ServiceAccount/source-controller",
            "ServiceAccount/kustomize-controller",
            "ServiceAccount/helm-controller",
            "ServiceAccount/notification-controller",
            "ClusterRole/crd-controller-flux-system",
            "ClusterRole/flux-edit-flux-system",
            "ClusterRole/flux-view-flux-system",
            "ClusterRoleBinding/cluster-reconciler-flux-system",
            "ClusterRoleBinding/crd-controller-flux-system",
            "Service/source-controller",
            "Deployment/fluorite",
        ]
    );
    let pod = &find(&objects, "Deployment", "fluorite")["spec"]["template"];
    let (service, port) = ("source-controller", 9090);
    let spec = &find(&objects, "Service", service)["spec"];
    assert_eq!(spec["selector"]["app"], pod["metadata"]["labels"]["app"], "{service} selects the pod");
    assert_eq!(spec["ports"][0]["port"], 80);
    let target = &spec["ports"][0]["targetPort"];
    let ports = pod["spec"]["containers"][0]["ports"].as_array().expect("ports");
    let named = ports.iter().find(|p| p["name"] == *target).expect("the port exists");
    assert_eq!(named["containerPort"], port, "{service}");
}

/// Components without a controller in this release have neither Deployment nor Service.
#[test]
fn unavailable_components_are_not_deployed() {
    for layout in [Layout::Single, Layout::Split] {
        let mut options = options();
        options.layout = layout;
        options.components = BTreeSet::from(Component::ALL);
        let objects = build(&options);
        let names = index(&objects);
        for absent in options.absent() {
            assert!(!names.contains(&format!("Deployment/{absent}")), "{absent}");
            assert!(!names.contains(&format!("Service/{absent}")), "{absent}");
            // Objects can be created, and tenants' bindings find the account.
            assert!(names.contains(&format!("ServiceAccount/{absent}")), "{absent}");
        }
        assert!(!names.contains(&"Service/webhook-receiver".to_owned()));
        assert!(!names.contains(&"NetworkPolicy/allow-webhooks".to_owned()));
        for deployment in objects.iter().filter(|o| o["kind"] == "Deployment") {
            let container = &deployment["spec"]["template"]["spec"]["containers"][0];
            let text = container["args"].to_string();
            assert!(!text.contains("notification") && !text.contains("events-addr"), "{text}");
            assert!(!container["ports"].to_string().contains("webhook"), "{container}");
        }
        let crds = objects.iter().filter(|o| o["kind"] == "CustomResourceDefinition").count();
        assert_eq!(crds, 36);
    }
    let mut options = options();
    options.components = BTreeSet::from([Component::Notification]);
    let refused = manifests(&options).expect_err("nothing would run").to_string();
    assert_eq!(
        refused,
        "none of the chosen components (notification-controller) has a controller in this release"
    );
}

#[test]
fn split_layout_has_one_deployment_per_component() {
    let mut options = options();
    options.layout = Layout::Split;
    let objects = build(&options);
    let index = index(&objects);
    for component in options.running() {
        assert!(index.contains(&format!("Deployment/{component}")), "{component}");
        let pod = &find(&objects, "Deployment", component.name())["spec"]["template"]["spec"];
        assert_eq!(pod["serviceAccountName"], component.name());
    }
    assert!(!index.contains(&"Deployment/fluorite".to_owned()));
    let args = &find(&objects, "Deployment", "kustomize-controller")["spec"]["template"]["spec"]["containers"]
        [0]["args"];
    assert_eq!(
        args.as_array().expect("args")[..3],
        [
            Value::from("run"),
            Value::from("--components=kustomize-controller"),
            Value::from("--watch-all-namespaces=true"),
        ]
    );
    let source =
        &find(&objects, "Deployment", "source-controller")["spec"]["template"]["spec"]["containers"][0];
    assert!(
        source["args"]
            .to_string()
            .contains("--storage-adv-addr=source-controller.flux-system.svc.cluster.local.")
    );
}

#[test]
fn every_option_changes_the_manifests() {
    let mut options = options();
    options.namespace = "gitops".to_owned();
    options.registry = "registry.example/mirror".to_owned();
    options.image_pull_secret = Some("pull".to_owned());
    options.network_policy = NetworkPolicy::Omit;
    options.watch = Watch::OwnNamespace;
    options.cluster_domain = "corp.internal".to_owned();
    options.toleration_keys = vec!["node.example/dedicated".to_owned()];
    let objects = build(&options);
    assert!(!index(&objects).iter().any(|n| n.starts_with("NetworkPolicy/")));
    let pod = &find(&objects, "Deployment", "fluorite")["spec"]["template"]["spec"];
    assert_eq!(pod["containers"][0]["image"], "registry.example/mirror/fluorite:v1.2.3");
    assert_eq!(pod["imagePullSecrets"][0]["name"], "pull");
    assert_eq!(pod["tolerations"][0]["key"], "node.example/dedicated");
    let args = pod["containers"][0]["args"].to_string();
    assert!(args.contains("--watch-all-namespaces=false"), "{args}");
    assert!(args.contains("source-controller.gitops.svc.corp.internal."), "{args}");
    for object in &objects {
        if !object["metadata"]["namespace"].is_null() {
            assert_eq!(object["metadata"]["namespace"], "gitops", "{object}");
        }
        assert_eq!(object["metadata"]["labels"]["app.kubernetes.io/instance"], "gitops", "{object}");
        assert_eq!(object["metadata"]["labels"]["app.kubernetes.io/part-of"], "flux", "{object}");
    }
}

#[test]
fn invalid_options_are_rejected() {
    type Change = fn(&mut Options);
    let table: [(Change, &str); 6] = [
        (|o| o.namespace = "Flux".to_owned(), "namespace \"Flux\" is not valid"),
        (|o| o.cluster_domain = "a b".to_owned(), "cluster domain \"a b\" is not valid"),
        (|o| o.image_pull_secret = Some("-".to_owned()), "image pull secret \"-\" is not valid"),
        (|o| o.toleration_keys = vec!["a/b/c".to_owned()], "toleration key \"a/b/c\" is not valid"),
        (|o| o.components.clear(), "no components are chosen, name at least one"),
        (
            |o| o.registry = "https://x".to_owned(),
            "registry \"https://x\" is not valid, give a host and a path without scheme, tag or blanks",
        ),
    ];
    for (change, message) in table {
        let mut options = options();
        change(&mut options);
        assert_eq!(manifests(&options).expect_err(message).to_string(), message);
    }
    let unknown = "nope".parse::<Component>().expect_err("no such component").to_string();
    assert!(
        unknown.starts_with("component nope is not available, choose from source-controller,"),
        "{unknown}"
    );
}

#[test]
fn export_is_stable_and_parses() {
    let mut options = options();
    options.components = BTreeSet::from(Component::ALL);
    let objects = build(&options);
    let yaml = to_yaml(&objects).expect("YAML");
    assert_eq!(yaml, to_yaml(&build(&options)).expect("YAML"), "two runs give the same bytes");
    let read = fl_yaml::parse_all(yaml.as_bytes(), &fl_yaml::Options::sigs()).expect("reads back");
    assert_eq!(read.len(), objects.len());
    for (node, object) in read.iter().zip(&objects) {
        let json =
            fl_yaml::to_json(node, fl_yaml::Dialect::Sigs, fl_yaml::JsonStyle::default()).expect("JSON");
        assert_eq!(&serde_json::from_str::<Value>(&json).expect("JSON"), object);
    }
    assert_eq!(crds(&options.components).len(), 36);
}

/// The manifests without CRDs, byte for byte. After an intended change, record them by running the test with
/// `RECORD=1` and review the diff.
#[test]
fn export_matches_the_golden_file() {
    let objects = build(&options()).into_iter().filter(|o| o["kind"] != "CustomResourceDefinition");
    let yaml = to_yaml(&objects.collect::<Vec<_>>()).expect("YAML");
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/single.yaml");
    if std::env::var_os("RECORD").is_some() {
        std::fs::write(file, &yaml).expect("the golden file can be written");
    }
    let golden = std::fs::read_to_string(file).expect("the golden file exists");
    assert!(yaml == golden, "the export changed:\n{yaml}");
}
