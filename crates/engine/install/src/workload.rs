//! Deployments and Services.

use serde_json::{Value, json};

use crate::component::Component;
use crate::metadata::{ENGINE, add_labels, labels, namespaced};
use crate::options::{Layout, Options, Watch};

/// A Deployment: its name and components.
struct Workload<'a> {
    name: &'a str,
    components: Vec<Component>,
}

impl Workload<'_> {
    fn has(&self, component: Component) -> bool {
        self.components.contains(&component)
    }

    fn stores(&self) -> bool {
        self.components.iter().any(|c| c.stores())
    }

    /// Events need a port of their own if the process also serves artifacts; Flux's pods have one server
    /// each.
    fn events_port(&self) -> u16 {
        if self.stores() { 9091 } else { 9090 }
    }

    fn component_label(&self) -> &str {
        match self.components[..] {
            [one] => one.name(),
            _ => self.name,
        }
    }
}

fn workloads(options: &Options) -> Vec<Workload<'static>> {
    match options.layout {
        Layout::Single => {
            vec![Workload { name: ENGINE, components: options.running().collect() }]
        }
        Layout::Split => {
            options.running().map(|c| Workload { name: c.name(), components: vec![c] }).collect()
        }
    }
}

fn service_host(options: &Options, service: &str) -> String {
    // The trailing dot keeps resolvers from trying every search domain first.
    format!("{service}.{}.svc.{}.", options.namespace, options.cluster_domain)
}

fn args(options: &Options, workload: &Workload<'_>) -> Vec<String> {
    let names = workload.components.iter().map(|c| c.name()).collect::<Vec<_>>().join(",");
    let mut args = vec!["run".to_owned(), format!("--components={names}")];
    if options.runs(Component::Notification) && !workload.has(Component::Notification) {
        args.push(format!("--events-addr=http://{}/", service_host(options, Component::Notification.name())));
    }
    args.push(format!("--watch-all-namespaces={}", options.watch == Watch::AllNamespaces));
    args.push(format!("--log-level={}", options.log_level.name()));
    args.push("--log-encoding=json".to_owned());
    args.push("--enable-leader-election".to_owned());
    if workload.stores() {
        args.push("--storage-path=/data".to_owned());
        // In a single process, source-controller's address is used for both stores.
        let service = match workload.has(Component::Source) {
            true => Component::Source.name(),
            false => Component::SourceWatcher.name(),
        };
        args.push(format!("--storage-adv-addr={}", service_host(options, service)));
    }
    args
}

fn ports(workload: &Workload<'_>) -> Vec<Value> {
    let port = |name: &str, number: u16| json!({"containerPort": number, "name": name, "protocol": "TCP"});
    let mut ports = Vec::new();
    if workload.stores() {
        ports.push(port("http", 9090));
    }
    if workload.has(Component::Notification) {
        ports.push(port("http-events", workload.events_port()));
        ports.push(port("http-webhook", 9292));
    }
    ports.extend([port("http-prom", 8080), port("healthz", 9440)]);
    ports
}

fn container(options: &Options, workload: &Workload<'_>) -> Value {
    let mut mounts = vec![json!({"mountPath": "/tmp", "name": "tmp"})];
    if workload.stores() {
        mounts.insert(0, json!({"mountPath": "/data", "name": "data"}));
    }
    json!({
        "name": "manager",
        "image": format!("{}/fluorite:{}", options.registry, options.version),
        "imagePullPolicy": "IfNotPresent",
        "args": args(options, workload),
        "env": [
            {"name": "RUNTIME_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
        ],
        "ports": ports(workload),
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "healthz"}},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "healthz"}},
        "resources": {
            "limits": {"cpu": "1000m", "memory": "1Gi"},
            "requests": {"cpu": "100m", "memory": "64Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": true,
            "runAsNonRoot": true,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": mounts,
    })
}

fn deployment(options: &Options, workload: &Workload<'_>) -> Value {
    let mut volumes = vec![json!({"name": "tmp", "emptyDir": {}})];
    if workload.stores() {
        volumes.insert(0, json!({"name": "data", "emptyDir": {}}));
    }
    let mut pod = json!({
        "containers": [container(options, workload)],
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "priorityClassName": "system-cluster-critical",
        "securityContext": {"fsGroup": 1337},
        "serviceAccountName": workload.name,
        // Flux's grace period for running Helm actions.
        "terminationGracePeriodSeconds": if workload.has(Component::Helm) { 600 } else { 60 },
        "volumes": volumes,
    });
    if let Some(secret) = &options.image_pull_secret {
        pod["imagePullSecrets"] = json!([{"name": secret}]);
    }
    if !options.toleration_keys.is_empty() {
        let tolerations = options.toleration_keys.iter().map(|key| json!({"key": key, "operator": "Exists"}));
        pod["tolerations"] = tolerations.collect::<Vec<_>>().into();
    }
    let mut pod_labels = labels(options, Some(workload.component_label()));
    pod_labels.insert("app".to_owned(), json!(workload.name));
    let mut deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": namespaced(options, workload.name, Some(workload.component_label())),
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": workload.name}},
            "template": {
                "metadata": {
                    "annotations": {"prometheus.io/port": "8080", "prometheus.io/scrape": "true"},
                    "labels": pod_labels,
                },
                "spec": pod,
            },
        },
    });
    // The old pod works until the new one is a standby for its lease: an engine that cannot start never takes
    // over. Each pod has its own store, so two of them do not conflict.
    let rolling = json!({"maxSurge": 1, "maxUnavailable": 0});
    deployment["spec"]["strategy"] = json!({"type": "RollingUpdate", "rollingUpdate": rolling});
    control_plane(&mut deployment);
    deployment
}

/// Label of Flux's controllers; `flux logs` and `flux check` select by it.
fn control_plane(object: &mut Value) {
    add_labels(object, [("control-plane".to_owned(), json!("controller"))].into_iter().collect());
}

/// All Deployments.
pub(crate) fn deployments(options: &Options) -> Vec<Value> {
    workloads(options).iter().map(|w| deployment(options, w)).collect()
}

/// The Services for artifact URLs, events and webhooks, with Flux's names and ports.
pub(crate) fn services(options: &Options) -> Vec<Value> {
    let mut services = Vec::new();
    let mut service = |name: &str, component: Component, target: &str| {
        let app = match options.layout {
            Layout::Single => ENGINE,
            Layout::Split => component.name(),
        };
        let mut service = json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": namespaced(options, name, Some(component.name())),
            "spec": {
                "type": "ClusterIP",
                "selector": {"app": app},
                "ports": [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": target}],
            },
        });
        control_plane(&mut service);
        services.push(service);
    };
    for component in options.running() {
        match component {
            Component::Source | Component::SourceWatcher => service(component.name(), component, "http"),
            Component::Notification => {
                service(component.name(), component, "http-events");
                service("webhook-receiver", component, "http-webhook");
            }
            _ => {}
        }
    }
    services
}
