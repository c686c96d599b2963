//! Objects that every cluster has: namespaces, roles and bindings, the Service of the API server.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::object;
use crate::server::{Inner, rfc3339};
use crate::status::{ApiError, ApiResult};
use crate::store::{Change, Precondition, StoreError};
use crate::verbs::managed_fields::{Conversions, Tracker, empty_object};
use crate::verbs::options::{FieldValidation, WriteOptions};

const RBAC: &str = "rbac.authorization.k8s.io";
const READ: [&str; 3] = ["get", "list", "watch"];
const WRITE: [&str; 5] = ["create", "delete", "deletecollection", "patch", "update"];

fn rule(groups: &[&str], resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": groups, "resources": resources, "verbs": verbs})
}

fn urls(paths: &[&str], verbs: &[&str]) -> Value {
    json!({"nonResourceURLs": paths, "verbs": verbs})
}

const DISCOVERY: [&str; 11] = [
    "/api",
    "/api/*",
    "/apis",
    "/apis/*",
    "/healthz",
    "/livez",
    "/openapi",
    "/openapi/*",
    "/readyz",
    "/version",
    "/version/",
];
const PUBLIC: [&str; 5] = ["/healthz", "/livez", "/readyz", "/version", "/version/"];

/// Read access in a namespace, without secrets and roles.
fn view_rules() -> Vec<Value> {
    vec![
        rule(
            &[""],
            &[
                "configmaps",
                "endpoints",
                "persistentvolumeclaims",
                "persistentvolumeclaims/status",
                "pods",
                "replicationcontrollers",
                "replicationcontrollers/scale",
                "serviceaccounts",
                "services",
                "services/status",
            ],
            &READ,
        ),
        rule(
            &[""],
            &[
                "bindings",
                "events",
                "limitranges",
                "namespaces/status",
                "pods/log",
                "pods/status",
                "replicationcontrollers/status",
                "resourcequotas",
                "resourcequotas/status",
                "namespaces",
            ],
            &READ,
        ),
        rule(&["discovery.k8s.io"], &["endpointslices"], &READ),
        rule(
            &["apps"],
            &[
                "controllerrevisions",
                "daemonsets",
                "daemonsets/status",
                "deployments",
                "deployments/scale",
                "deployments/status",
                "replicasets",
                "replicasets/scale",
                "replicasets/status",
                "statefulsets",
                "statefulsets/scale",
                "statefulsets/status",
            ],
            &READ,
        ),
        rule(&["autoscaling"], &["horizontalpodautoscalers", "horizontalpodautoscalers/status"], &READ),
        rule(&["batch"], &["cronjobs", "cronjobs/status", "jobs", "jobs/status"], &READ),
        rule(&["policy"], &["poddisruptionbudgets", "poddisruptionbudgets/status"], &READ),
        rule(&["networking.k8s.io"], &["ingresses", "ingresses/status", "networkpolicies"], &READ),
    ]
}

fn edit_rules() -> Vec<Value> {
    vec![
        rule(
            &[""],
            &["pods/attach", "pods/exec", "pods/portforward", "pods/proxy", "secrets", "services/proxy"],
            &READ,
        ),
        rule(&[""], &["serviceaccounts"], &["impersonate"]),
        rule(&[""], &["pods", "pods/attach", "pods/exec", "pods/portforward", "pods/proxy"], &WRITE),
        rule(&[""], &["pods/eviction"], &["create"]),
        rule(
            &[""],
            &[
                "configmaps",
                "events",
                "persistentvolumeclaims",
                "replicationcontrollers",
                "replicationcontrollers/scale",
                "secrets",
                "serviceaccounts",
                "services",
                "services/proxy",
            ],
            &WRITE,
        ),
        rule(&[""], &["serviceaccounts/token"], &["create"]),
        rule(
            &["apps"],
            &[
                "daemonsets",
                "deployments",
                "deployments/rollback",
                "deployments/scale",
                "replicasets",
                "replicasets/scale",
                "statefulsets",
                "statefulsets/scale",
            ],
            &WRITE,
        ),
        rule(&["autoscaling"], &["horizontalpodautoscalers"], &WRITE),
        rule(&["batch"], &["cronjobs", "jobs"], &WRITE),
        rule(&["policy"], &["poddisruptionbudgets"], &WRITE),
        rule(&["networking.k8s.io"], &["ingresses", "networkpolicies"], &WRITE),
        rule(
            &["coordination.k8s.io"],
            &["leases"],
            &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        ),
    ]
}

fn admin_rules() -> Vec<Value> {
    vec![
        rule(&["authorization.k8s.io"], &["localsubjectaccessreviews"], &["create"]),
        rule(
            &[RBAC],
            &["rolebindings", "roles"],
            &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        ),
    ]
}

fn cluster_role(name: &str, rules: &[Value]) -> Value {
    json!({
        "kind": "ClusterRole", "apiVersion": "rbac.authorization.k8s.io/v1",
        "metadata": {
            "name": name, "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
            "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"}
        },
        "rules": rules
    })
}

fn roles() -> Vec<Value> {
    let aggregate = |name: &str| json!({"clusterRoleSelectors": [{"matchLabels": {format!("{RBAC_LABEL}{name}"): "true"}}]});
    let labelled = |mut role: Value, to: &str| {
        role["metadata"]["labels"][format!("{RBAC_LABEL}{to}")] = json!("true");
        role
    };
    let mut aggregated = Vec::new();
    for (name, parent, rules) in [
        ("admin", None, [admin_rules(), edit_rules(), view_rules()].concat()),
        ("edit", Some("admin"), [edit_rules(), view_rules()].concat()),
        ("view", Some("edit"), view_rules()),
    ] {
        let mut role = cluster_role(name, &rules);
        role["aggregationRule"] = aggregate(name);
        aggregated.push(parent.map_or(role.clone(), |p| labelled(role, p)));
    }
    let mut out = vec![
        cluster_role("cluster-admin", &[rule(&["*"], &["*"], &["*"]), urls(&["*"], &["*"])]),
        cluster_role("system:discovery", &[urls(&DISCOVERY, &["get"])]),
        cluster_role("system:public-info-viewer", &[urls(&PUBLIC, &["get"])]),
        cluster_role(
            "system:monitoring",
            &[urls(
                &[
                    "/healthz",
                    "/healthz/*",
                    "/livez",
                    "/livez/*",
                    "/metrics",
                    "/metrics/slis",
                    "/readyz",
                    "/readyz/*",
                ],
                &["get"],
            )],
        ),
        cluster_role(
            "system:basic-user",
            &[
                rule(
                    &["authorization.k8s.io"],
                    &["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
                    &["create"],
                ),
                rule(&["authentication.k8s.io"], &["selfsubjectreviews"], &["create"]),
            ],
        ),
        cluster_role(
            "system:auth-delegator",
            &[
                rule(&["authentication.k8s.io"], &["tokenreviews"], &["create"]),
                rule(&["authorization.k8s.io"], &["subjectaccessreviews"], &["create"]),
            ],
        ),
        cluster_role(
            "system:service-account-issuer-discovery",
            &[urls(
                &[
                    "/.well-known/openid-configuration",
                    "/.well-known/openid-configuration/",
                    "/openid/v1/jwks",
                    "/openid/v1/jwks/",
                ],
                &["get"],
            )],
        ),
        labelled(cluster_role("system:aggregate-to-admin", &admin_rules()), "admin"),
        labelled(cluster_role("system:aggregate-to-edit", &edit_rules()), "edit"),
        labelled(cluster_role("system:aggregate-to-view", &view_rules()), "view"),
    ];
    out.extend(aggregated);
    out
}

const RBAC_LABEL: &str = "rbac.authorization.k8s.io/aggregate-to-";

fn bindings() -> Vec<Value> {
    let group = |name: &str| json!({"kind": "Group", "apiGroup": RBAC, "name": name});
    let both = [group("system:authenticated"), group("system:unauthenticated")];
    [
        ("cluster-admin", "cluster-admin", vec![group("system:masters")]),
        ("system:discovery", "system:discovery", vec![group("system:authenticated")]),
        ("system:public-info-viewer", "system:public-info-viewer", both.to_vec()),
        ("system:basic-user", "system:basic-user", vec![group("system:authenticated")]),
        ("system:monitoring", "system:monitoring", vec![group("system:monitoring")]),
        (
            "system:service-account-issuer-discovery",
            "system:service-account-issuer-discovery",
            vec![group("system:serviceaccounts")],
        ),
    ]
    .into_iter()
    .map(|(name, role, subjects)| {
        json!({
            "kind": "ClusterRoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1",
            "metadata": {
                "name": name, "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
                "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"}
            },
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
            "subjects": subjects
        })
    })
    .collect()
}

fn namespace(name: &str) -> Value {
    json!({
        "kind": "Namespace", "apiVersion": "v1",
        "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
        "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}
    })
}

fn kubernetes_service(inner: &Inner) -> Value {
    let ip = inner.addresses.service_of_the_api();
    json!({
        "kind": "Service", "apiVersion": "v1",
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {
            "clusterIP": ip, "clusterIPs": [ip], "internalTrafficPolicy": "Cluster", "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack", "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
            "sessionAffinity": "None", "type": "ClusterIP"
        },
        "status": {"loadBalancer": {}}
    })
}

/// Priority classes of system pods.
fn priority_classes() -> Vec<Value> {
    [
        (
            "system-cluster-critical",
            2_000_000_000_i64,
            "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
        ),
        (
            "system-node-critical",
            2_000_001_000,
            "Used for system critical pods that must not be moved from their current node.",
        ),
    ]
    .into_iter()
    .map(|(name, value, description)| {
        json!({
            "kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1", "metadata": {"name": name, "generation": 1},
            "value": value, "description": description, "preemptionPolicy": "PreemptLowerPriority"
        })
    })
    .collect()
}

/// Group, version and the two priorities of an APIService.
const API_SERVICES: &[(&str, &str, u32, u32)] = &[
    ("", "v1", 18000, 1),
    ("admissionregistration.k8s.io", "v1", 16700, 15),
    ("apiextensions.k8s.io", "v1", 16700, 15),
    ("apps", "v1", 17800, 15),
    ("authentication.k8s.io", "v1", 17700, 15),
    ("authorization.k8s.io", "v1", 17600, 15),
    ("autoscaling", "v1", 17500, 15),
    ("autoscaling", "v2", 17500, 30),
    ("batch", "v1", 17400, 15),
    ("certificates.k8s.io", "v1", 17300, 15),
    ("coordination.k8s.io", "v1", 16500, 15),
    ("discovery.k8s.io", "v1", 16200, 15),
    ("events.k8s.io", "v1", 17750, 15),
    ("flowcontrol.apiserver.k8s.io", "v1", 16100, 21),
    ("networking.k8s.io", "v1", 17200, 15),
    ("node.k8s.io", "v1", 16300, 15),
    ("policy", "v1", 17100, 15),
    ("rbac.authorization.k8s.io", "v1", 17000, 15),
    ("resource.k8s.io", "v1", 16200, 21),
    ("scheduling.k8s.io", "v1", 16600, 15),
    ("storage.k8s.io", "v1", 16800, 15),
];

/// APIServices of the built-in groups.
fn api_services(now: &str) -> Vec<Value> {
    API_SERVICES
        .iter()
        .map(|(group, version, minimum, priority)| {
            let mut spec =
                json!({"version": version, "groupPriorityMinimum": minimum, "versionPriority": priority});
            if !group.is_empty() {
                spec["group"] = json!(group);
            }
            json!({
                "kind": "APIService", "apiVersion": "apiregistration.k8s.io/v1",
                "metadata": {
                    "name": format!("{version}.{group}"),
                    "labels": {"kube-aggregator.kubernetes.io/automanaged": "onstart"}
                },
                "spec": spec,
                "status": {"conditions": [{
                    "type": "Available", "status": "True", "reason": "Local",
                    "message": "Local APIServices are always available", "lastTransitionTime": now
                }]}
            })
        })
        .collect()
}

/// Makes the server the field manager of an object.
fn own(inner: &Inner, table: &str, object: &mut Value, now: &str) {
    let registry = inner.registry();
    let found =
        registry.iter().find(|t| t.storage.prefix == table && t.api_version() == object::api_version(object));
    let Some(rt) = found else { return };
    let options = WriteOptions {
        dry_run: false,
        manager: "kube-apiserver".to_owned(),
        validation: FieldValidation::Ignore,
        force: false,
    };
    let conversions = &Conversions::default();
    let tracker = Tracker { registry: &registry, rt, options: &options, subresource: "", now, conversions };
    tracker.track_now(&empty_object(rt), object);
}

/// Creates missing objects, concurrently so that the writes share a sync.
pub(crate) async fn write(inner: &Arc<Inner>) -> ApiResult<()> {
    let now = rfc3339(inner.now());
    let mut all: Vec<(&str, Value)> = Vec::new();
    for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        all.push(("/namespaces", namespace(name)));
    }
    all.extend(roles().into_iter().map(|r| ("rbac.authorization.k8s.io/clusterroles", r)));
    all.extend(bindings().into_iter().map(|b| ("rbac.authorization.k8s.io/clusterrolebindings", b)));
    all.extend(priority_classes().into_iter().map(|c| ("scheduling.k8s.io/priorityclasses", c)));
    all.extend(api_services(&now).into_iter().map(|s| ("apiregistration.k8s.io/apiservices", s)));
    all.push(("/services", kubernetes_service(inner)));
    for (table, object) in &mut all {
        own(inner, table, object, &now);
    }
    let writes = all.into_iter().map(|(table, mut object)| {
        object::set_meta(&mut object, "uid", uuid::Uuid::new_v4().to_string());
        object::set_meta(&mut object, "creationTimestamp", now.as_str());
        let key = object::key(object::namespace(&object), object::name(&object));
        async move {
            match inner.store.commit(table, &key, Precondition::Absent, Change::Put(object)).await {
                Ok(_) | Err(StoreError::Conflict) => Ok(()),
                Err(other) => Err(ApiError::from(other)),
            }
        }
    });
    futures::future::try_join_all(writes).await.map(|_| ())
}
