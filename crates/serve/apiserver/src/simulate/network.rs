//! Endpoints and EndpointSlices of services, and addresses of load balancers.

use serde_json::{Value, json};

use super::client::{Client, is_ready};
use crate::object;
use crate::selector::LabelSelector;

pub(super) async fn run(client: &mut Client<'_>) {
    for service in client.list("/services", "") {
        if object::is_deleting(&service) {
            continue;
        }
        if service.pointer("/spec/type") == Some(&json!("LoadBalancer"))
            && service.pointer("/status/loadBalancer/ingress").is_none()
        {
            client
                .set_status(
                    "/services",
                    &service,
                    json!({"loadBalancer": {"ingress": [{"ip": "127.0.0.1", "ipMode": "VIP"}]}}),
                )
                .await;
        }
        let selector =
            service.pointer("/spec/selector").filter(|s| s.as_object().is_some_and(|m| !m.is_empty()));
        if let Some(selector) = selector {
            endpoints(client, &service, selector).await;
        }
    }
}

async fn endpoints(client: &Client<'_>, service: &Value, selector: &Value) {
    let Some(selector) = LabelSelector::from_object(&json!({"matchLabels": selector})) else { return };
    let (namespace, name) = (object::namespace(service), object::name(service));
    let mut pods = client.list("/pods", namespace);
    pods.retain(|p| {
        selector.matches(p.pointer("/metadata/labels"))
            && p.pointer("/status/podIP").is_some()
            && !object::is_deleting(p)
    });
    let port_of = |p: &Value| {
        let number = p
            .get("targetPort")
            .and_then(Value::as_i64)
            .or_else(|| p.get("port").and_then(Value::as_i64))
            .unwrap_or(0);
        let mut port =
            json!({"port": number, "protocol": p.get("protocol").cloned().unwrap_or_else(|| json!("TCP"))});
        if let Some(name) = p.get("name") {
            port["name"] = name.clone();
        }
        port
    };
    let ports: Vec<Value> =
        service.pointer("/spec/ports").and_then(Value::as_array).into_iter().flatten().map(port_of).collect();
    let reference = |p: &Value| json!({"kind": "Pod", "namespace": namespace, "name": object::name(p), "uid": object::uid(p)});
    let addresses = |ready: bool| -> Vec<Value> {
        pods.iter()
            .filter(|p| is_ready(p) == ready)
            .map(|p| json!({"ip": p["status"]["podIP"], "nodeName": p["spec"]["nodeName"], "targetRef": reference(p)}))
            .collect()
    };
    let mut subset = json!({"ports": ports});
    for (field, list) in [("addresses", addresses(true)), ("notReadyAddresses", addresses(false))] {
        if !list.is_empty() {
            subset[field] = json!(list);
        }
    }
    let subsets = if pods.is_empty() { json!([]) } else { json!([subset]) };
    let meta = json!({"name": name, "namespace": namespace});
    create_or_update(
        client,
        "/endpoints",
        json!({"kind": "Endpoints", "apiVersion": "v1", "metadata": meta, "subsets": subsets}),
        "subsets",
    )
    .await;
    let members: Vec<Value> = pods
        .iter()
        .map(|p| {
            let ready = is_ready(p);
            json!({"addresses": [p["status"]["podIP"]], "conditions": {"ready": ready, "serving": ready, "terminating": false},
                "nodeName": p["spec"]["nodeName"], "targetRef": reference(p)})
        })
        .collect();
    let meta = json!({
        "name": format!("{name}-sim"), "namespace": namespace, "labels": {"kubernetes.io/service-name": name,
        "endpointslice.kubernetes.io/managed-by": "fluorite"}, "ownerReferences": super::client::controlled_by(service, "v1", "Service")
    });
    // A port of a slice always has a name, if only an empty one; clients rely on it.
    let named = |port: &Value| {
        let mut port = port.clone();
        if port.get("name").is_none() {
            port["name"] = json!("");
        }
        port
    };
    let ports: Vec<Value> = ports.iter().map(named).collect();
    let slice = json!({"kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1", "metadata": meta, "addressType": "IPv4",
        "endpoints": members, "ports": ports});
    create_or_update(client, "discovery.k8s.io/endpointslices", slice, "endpoints").await;
}

/// Creates an object, or updates its field `field`.
async fn create_or_update(client: &Client<'_>, table: &str, object: Value, field: &str) {
    let key = object::key(object::namespace(&object), object::name(&object));
    match client.inner.store.latest(table, &key) {
        None => client.create(table, object).await,
        Some(entry) if entry.value().get(field) == object.get(field) => {}
        Some(entry) => client.change(table, &entry.value(), |o| o[field] = object[field].clone()).await,
    }
}
