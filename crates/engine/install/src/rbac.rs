//! Service accounts, roles and bindings, with Flux's names.

use serde_json::{Value, json};

use crate::component::Component;
use crate::metadata::{ENGINE, cluster_wide, labels, namespaced};
use crate::options::{Layout, Options};

const FLUX_GROUPS: [&str; 6] = [
    "source.toolkit.fluxcd.io",
    "kustomize.toolkit.fluxcd.io",
    "helm.toolkit.fluxcd.io",
    "notification.toolkit.fluxcd.io",
    "image.toolkit.fluxcd.io",
    "source.extensions.fluxcd.io",
];

/// Additional API groups of the selected components beyond Flux's own.
fn extra_groups(options: &Options) -> Vec<&'static str> {
    let mut groups = Vec::new();
    if options.has(Component::FluxOperator) {
        groups.push("fluxcd.controlplane.io");
    }
    if options.has(Component::OpenFlux) {
        groups.extend(["openfluxcd.ocm.software", "openfluxcd.openfluxcd"]);
    }
    if options.has(Component::OpenMcp) {
        groups.extend([
            "clusters.openmcp.cloud",
            "core.open-control-plane.io",
            "flux.services.open-control-plane.io",
            "helm.open-control-plane.io",
            "openmcp.cloud",
        ]);
    }
    if options.has(Component::Flagger) {
        groups.push("flagger.app");
    }
    groups
}

fn all_groups(options: &Options) -> Vec<&'static str> {
    FLUX_GROUPS.into_iter().chain(extra_groups(options)).collect()
}

/// One account per component, even if one process runs them all: tenants and cloud bindings name these
/// accounts.
pub(crate) fn service_accounts(options: &Options) -> Vec<Value> {
    let account = |name: &str, component: Option<&str>| {
        json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": namespaced(options, name, component),
        })
    };
    let mut accounts = Vec::new();
    if options.layout == Layout::Single {
        accounts.push(account(ENGINE, None));
    }
    accounts.extend(options.components.iter().map(|c| account(c.name(), Some(c.name()))));
    accounts
}

fn subjects(options: &Options, chosen: impl Fn(Component) -> bool) -> Vec<Value> {
    let engine = (options.layout == Layout::Single).then_some(ENGINE);
    let components = options.components.iter().filter(|c| chosen(**c)).map(|c| c.name());
    let subject =
        |name: &str| json!({"kind": "ServiceAccount", "name": name, "namespace": options.namespace});
    engine.into_iter().chain(components).map(subject).collect()
}

fn binding(options: &Options, name: &str, role: &str, subjects: &[Value]) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": cluster_wide(options, name),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": subjects,
    })
}

/// Permissions of a controller itself: its own kinds, configuration, events, leases, tokens.
fn controller_role(options: &Options) -> Value {
    let rule = |groups: &[&str], resources: &[&str], verbs: &[&str]| json!({"apiGroups": groups, "resources": resources, "verbs": verbs});
    let all = ["get", "list", "watch", "create", "update", "patch", "delete"];
    let mut rules = all_groups(options).into_iter().map(|g| rule(&[g], &["*"], &["*"])).collect::<Vec<_>>();
    rules.extend([
        rule(&[""], &["namespaces", "secrets", "configmaps", "serviceaccounts"], &["get", "list", "watch"]),
        rule(&[""], &["events"], &["create", "patch"]),
        rule(&[""], &["configmaps"], &all),
        rule(&[""], &["configmaps/status"], &["get", "update", "patch"]),
        rule(&["coordination.k8s.io"], &["leases"], &all),
        rule(&[""], &["serviceaccounts/token"], &["create"]),
        json!({"nonResourceURLs": ["/livez/ping"], "verbs": ["head"]}),
    ]);
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": cluster_wide(options, "crd-controller"),
        "rules": rules,
    })
}

/// A role that Kubernetes aggregates to its own `view`, `edit` and `admin`.
fn user_role(options: &Options, name: &str, aggregate_to: &[&str], verbs: &[&str]) -> Value {
    let mut all = labels(options, None);
    for role in aggregate_to {
        all.insert(format!("rbac.authorization.k8s.io/aggregate-to-{role}"), json!("true"));
    }
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": format!("{name}-{}", options.namespace), "labels": all},
        "rules": [{"apiGroups": all_groups(options), "resources": ["*"], "verbs": verbs}],
    })
}

/// Roles and bindings.
pub(crate) fn roles(options: &Options) -> Vec<Value> {
    let suffixed = format!("crd-controller-{}", options.namespace);
    let mut roles = vec![
        controller_role(options),
        user_role(
            options,
            "flux-edit",
            &["admin", "edit"],
            &["create", "delete", "deletecollection", "patch", "update"],
        ),
        user_role(options, "flux-view", &["admin", "edit", "view"], &["get", "list", "watch"]),
        binding(options, "crd-controller", &suffixed, &subjects(options, |_| true)),
    ];
    if options.components.iter().any(|c| c.applies()) {
        let reconcilers = subjects(options, Component::applies);
        roles.insert(3, binding(options, "cluster-reconciler", "cluster-admin", &reconcilers));
    }
    roles
}

/// Allows pods of the critical priority class, which some clusters only permit by quota.
pub(crate) fn resource_quota(options: &Options) -> Value {
    let name = format!("critical-pods-{}", options.namespace);
    json!({
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": namespaced(options, &name, None),
        "spec": {
            "hard": {"pods": "1000"},
            "scopeSelector": {"matchExpressions": [{
                "operator": "In",
                "scopeName": "PriorityClass",
                "values": ["system-node-critical", "system-cluster-critical"],
            }]},
        },
    })
}
