//! Defaults of the core group.

use serde_json::{Map, Value, json};

use super::{Object, child, put, put_pointer, text};

pub(super) fn apply(ty: &str, map: &mut Object) {
    match ty {
        "v1.Pod" => pod(map),
        "v1.PodSpec" => pod_spec(map),
        "v1.PodStatus" => crate::pod_strategy::pod_addresses(map),
        "v1.Container" | "v1.EphemeralContainer" => container(map),
        "v1.Probe" => {
            for (key, value) in [
                ("timeoutSeconds", 1),
                ("periodSeconds", 10),
                ("successThreshold", 1),
                ("failureThreshold", 3),
            ] {
                put(map, key, value);
            }
        }
        "v1.HTTPGetAction" => {
            put(map, "path", "/");
            put(map, "scheme", "HTTP");
        }
        "v1.GRPCAction" => put_pointer(map, "service", ""),
        "v1.ObjectFieldSelector" => put(map, "apiVersion", "v1"),
        "v1.Volume" => volume(map),
        "v1.NodeSpec" => crate::prepare::sync_pod_cidrs(map),
        "v1.SecretVolumeSource"
        | "v1.ConfigMapVolumeSource"
        | "v1.DownwardAPIVolumeSource"
        | "v1.ProjectedVolumeSource" => put_pointer(map, "defaultMode", 0o644),
        "v1.ServiceAccountTokenProjection" => put_pointer(map, "expirationSeconds", 3600),
        "v1.HostPathVolumeSource" => put_pointer(map, "type", ""),
        "v1.ResourceRequirements"
        | "v1.VolumeResourceRequirements"
        | "v1.NodeStatus"
        | "v1.ResourceQuotaSpec" => {
            round_resources(map);
            if ty == "v1.NodeStatus"
                && !map.contains_key("allocatable")
                && let Some(capacity) = map.get("capacity").cloned()
            {
                map.insert("allocatable".to_owned(), capacity);
            }
        }
        "v1.Service" => service(map),
        "v1.Secret" => put(map, "type", "Opaque"),
        "v1.PersistentVolume" => {
            put(child(map, "status"), "phase", "Pending");
            let spec = child(map, "spec");
            put(spec, "persistentVolumeReclaimPolicy", "Retain");
            put_pointer(spec, "volumeMode", "Filesystem");
        }
        "v1.PersistentVolumeClaim" => put(child(map, "status"), "phase", "Pending"),
        "v1.PersistentVolumeClaimSpec" => put_pointer(map, "volumeMode", "Filesystem"),
        "v1.EndpointPort" => put(map, "protocol", "TCP"),
        "v1.Namespace" => namespace(map),
        "v1.NamespaceStatus" => put(map, "phase", "Active"),
        "v1.LimitRangeItem" => limit_range_item(map),
        "v1.ReplicationController" => replication_controller(map),
        _ => {}
    }
}

fn pod(map: &mut Object) {
    let spec = child(map, "spec");
    for list in ["containers", "initContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let Some(resources) = container.get_mut("resources").and_then(Value::as_object_mut) else {
                continue;
            };
            let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else { continue };
            let requests = child(resources, "requests");
            for (name, amount) in limits {
                requests.entry(name).or_insert(amount);
            }
        }
    }
    put_pointer(spec, "enableServiceLinks", true);
    if spec.get("hostNetwork") == Some(&Value::Bool(true)) {
        for list in ["containers", "initContainers"] {
            host_network_ports(spec, list);
        }
    }
}

fn host_network_ports(spec: &mut Object, list: &str) {
    let containers = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
    let ports = containers.filter_map(|c| c.get_mut("ports")?.as_array_mut()).flatten();
    for port in ports.filter_map(Value::as_object_mut) {
        let number = port.get("containerPort").cloned().unwrap_or_default();
        put(port, "hostPort", number);
    }
}

fn pod_spec(map: &mut Object) {
    put(map, "dnsPolicy", "ClusterFirst");
    put(map, "restartPolicy", "Always");
    put_pointer(map, "securityContext", json!({}));
    put_pointer(map, "terminationGracePeriodSeconds", 30);
    let negative = map.get("terminationGracePeriodSeconds").and_then(Value::as_i64).is_some_and(|s| s < 0);
    if negative {
        map.insert("terminationGracePeriodSeconds".to_owned(), json!(1));
    }
    put(map, "schedulerName", "default-scheduler");
    // The deprecated field follows the new one.
    match map.get("serviceAccountName").cloned() {
        Some(name) => {
            map.insert("serviceAccount".to_owned(), name);
        }
        None => {
            if let Some(name) = map.get("serviceAccount").cloned() {
                map.insert("serviceAccountName".to_owned(), name);
            }
        }
    }
}

fn container(map: &mut Object) {
    let policy = if image_tag(text(map, "image")) == "latest" { "Always" } else { "IfNotPresent" };
    put(map, "imagePullPolicy", policy);
    put(map, "terminationMessagePath", "/dev/termination-log");
    put(map, "terminationMessagePolicy", "File");
}

/// The tag of an image reference: `latest` without tag and digest, empty with a digest only, and empty for an
/// invalid reference.
fn image_tag(image: &str) -> &str {
    let (name, digest) = match image.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (image, None),
    };
    let last = name.rfind('/').map_or(0, |at| at + 1);
    let (path, tag) = match name[last..].find(':') {
        Some(at) => (&name[..last + at], &name[last + at + 1..]),
        None => (name, ""),
    };
    // A name that is too long or looks like a digest is invalid.
    let digest_like = image.len() == 64 && image.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if !is_repository(path) || path.len() > 255 || digest_like {
        return "";
    }
    if tag.is_empty() && digest.is_none() { "latest" } else { tag }
}

fn is_repository(path: &str) -> bool {
    let ok = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-');
    let mut parts = path.split('/').peekable();
    let mut first = true;
    while let Some(part) = parts.next() {
        // The first part may be a host with a port and upper case letters.
        let host = first
            && parts.peek().is_some()
            && part.chars().all(|c| c.is_ascii_alphanumeric() || ".-:[]".contains(c));
        if part.is_empty() || !(host || part.chars().all(ok)) {
            return false;
        }
        first = false;
    }
    true
}

fn volume(map: &mut Object) {
    let has_source = map.iter().any(|(key, value)| key != "name" && !value.is_null());
    if !has_source {
        map.insert("emptyDir".to_owned(), json!({}));
    }
}

/// Rounds resource quantities up to milli units.
fn round_resources(map: &mut Object) {
    for key in ["limits", "requests", "capacity", "allocatable", "hard"] {
        for amount in map.get_mut(key).and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut) {
            let Some(quantity) = amount.as_str().and_then(|t| t.parse::<fl_types::Quantity>().ok()) else {
                continue;
            };
            if let Some(rounded) = quantity.milli_value().filter(|_| is_finer_than_milli(amount)) {
                *amount = json!(
                    format!("{rounded}m")
                        .parse::<fl_types::Quantity>()
                        .map_or_else(|_| String::new(), |q| q.to_string())
                );
            }
        }
    }
}

fn is_finer_than_milli(amount: &Value) -> bool {
    amount.as_str().is_some_and(|t| t.ends_with('n') || t.ends_with('u'))
}

fn service(map: &mut Object) {
    let spec = child(map, "spec");
    put(spec, "sessionAffinity", "None");
    match text(spec, "sessionAffinity") {
        "None" => {
            spec.remove("sessionAffinityConfig");
        }
        "ClientIP" => {
            let set = spec
                .get("sessionAffinityConfig")
                .is_some_and(|c| c["clientIP"]["timeoutSeconds"].is_number());
            if !set {
                spec.insert(
                    "sessionAffinityConfig".to_owned(),
                    json!({"clientIP": {"timeoutSeconds": 10800}}),
                );
            }
        }
        _ => {}
    }
    put(spec, "type", "ClusterIP");
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(port) = port.as_object_mut() else { continue };
        put(port, "protocol", "TCP");
        let number = port.get("port").cloned().unwrap_or(json!(0));
        put(port, "targetPort", number);
    }
    let kind = text(spec, "type").to_owned();
    let external = spec.get("externalIPs").and_then(Value::as_array).is_some_and(|ips| !ips.is_empty());
    if kind == "NodePort" || kind == "LoadBalancer" || (kind == "ClusterIP" && external) {
        put(spec, "externalTrafficPolicy", "Cluster");
    }
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer" | "ClusterIP") {
        put_pointer(spec, "internalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        put_pointer(spec, "allocateLoadBalancerNodePorts", true);
        let status = child(child(map, "status"), "loadBalancer");
        for ingress in status.get_mut("ingress").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(ingress) = ingress.as_object_mut().filter(|i| i.contains_key("ip")) {
                put_pointer(ingress, "ipMode", "VIP");
            }
        }
    }
}

fn namespace(map: &mut Object) {
    let metadata = child(map, "metadata");
    let name = text(metadata, "name").to_owned();
    if !name.is_empty() {
        child(metadata, "labels").insert("kubernetes.io/metadata.name".to_owned(), json!(name));
    }
}

fn limit_range_item(map: &mut Object) {
    if text(map, "type") != "Container" {
        return;
    }
    for (from, to) in [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")] {
        let amounts = map.get(from).and_then(Value::as_object).cloned().unwrap_or_default();
        let target = child(map, to);
        for (name, amount) in amounts {
            target.entry(name).or_insert(amount);
        }
    }
}

fn replication_controller(map: &mut Object) {
    let spec = child(map, "spec");
    put_pointer(spec, "replicas", 1);
    let labels = spec.get("template").map(|t| t["metadata"]["labels"].clone()).filter(Value::is_object);
    let Some(labels) = labels else { return };
    if spec.get("selector").and_then(Value::as_object).is_none_or(Map::is_empty) {
        spec.insert("selector".to_owned(), labels.clone());
    }
    let metadata = child(map, "metadata");
    if metadata.get("labels").and_then(Value::as_object).is_none_or(Map::is_empty) {
        metadata.insert("labels".to_owned(), labels);
    }
}

#[cfg(test)]
mod tests {
    use super::image_tag;

    #[test]
    fn image_tags() {
        for (image, tag) in [
            ("nginx", "latest"),
            ("nginx:1.25", "1.25"),
            ("localhost:5000/a/b", "latest"),
            ("localhost:5000/a/b:v1", "v1"),
            ("nginx@sha256:0123", ""),
            ("nginx:1@sha256:0123", "1"),
            ("Bad Image", ""),
            ("", ""),
        ] {
            assert_eq!(image_tag(image), tag, "{image}");
        }
    }
}
