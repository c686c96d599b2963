//! Network policies.

use serde_json::{Value, json};

use crate::component::Component;
use crate::metadata::{ENGINE, namespaced};
use crate::options::{Layout, Options};

fn policy(options: &Options, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": namespaced(options, name, None),
        "spec": spec,
    })
}

/// Flux's policies: pods of the namespace may connect to each other and to the outside; metrics and, if there
/// is a receiver, webhooks are open to all clients.
pub(crate) fn policies(options: &Options) -> Vec<Value> {
    let from_anywhere = |port: u16| json!([{"from": [{"namespaceSelector": {}}], "ports": [{"port": port, "protocol": "TCP"}]}]);
    let mut policies = vec![
        policy(
            options,
            "allow-egress",
            &json!({
                "podSelector": {},
                "policyTypes": ["Ingress", "Egress"],
                "ingress": [{"from": [{"podSelector": {}}]}],
                "egress": [{}],
            }),
        ),
        policy(
            options,
            "allow-scraping",
            &json!({"podSelector": {}, "policyTypes": ["Ingress"], "ingress": from_anywhere(8080)}),
        ),
    ];
    if options.runs(Component::Notification) {
        let app = match options.layout {
            Layout::Single => ENGINE,
            Layout::Split => Component::Notification.name(),
        };
        policies.push(policy(
            options,
            "allow-webhooks",
            &json!({
                "podSelector": {"matchLabels": {"app": app}},
                "policyTypes": ["Ingress"],
                "ingress": from_anywhere(9292),
            }),
        ));
    }
    policies
}
