//! Fields that the server sets, keeps or removes when an object is written (`PrepareForCreate`,
//! `PrepareForUpdate`).

use serde_json::{Map, Value, json};

use crate::field::{list, map_mut, text};
use crate::strategy::{StrategyContext, copy_field, remove_status};

pub(crate) fn namespace_create(_cx: StrategyContext<'_>, object: &mut Value) {
    remove_status(object);
    let Some(spec) = map_mut(object, "spec") else { return };
    let finalizers = spec.entry("finalizers").or_insert_with(|| json!([]));
    if let Some(finalizers) = finalizers.as_array_mut()
        && !finalizers.iter().any(|f| f == "kubernetes")
    {
        finalizers.push(json!("kubernetes"));
    }
}

pub(crate) fn namespace_update(cx: StrategyContext<'_>, object: &mut Value, old: &Value) {
    if cx.subresource != "finalize" {
        let finalizers = old["spec"]["finalizers"].clone();
        if let Some(spec) = map_mut(object, "spec") {
            spec.insert("finalizers".to_owned(), finalizers);
        }
    }
    copy_field(object, old, "status");
    let name = text(&object["metadata"], "name").to_owned();
    if let Some(labels) = object.get_mut("metadata").and_then(|m| map_mut(m, "labels")) {
        labels.insert("kubernetes.io/metadata.name".to_owned(), json!(name));
    }
}

/// Merges `stringData` into `data`; it is never stored.
pub(crate) fn secret_string_data(object: &mut Value) {
    let Some(texts) = object.as_object_mut().and_then(|o| o.remove("stringData")) else { return };
    let Some(texts) = texts.as_object().filter(|t| !t.is_empty()) else { return };
    let Some(data) = map_mut(object, "data") else { return };
    for (key, value) in texts {
        use base64::Engine as _;
        let bytes = value.as_str().unwrap_or_default();
        data.insert(key.clone(), json!(base64::engine::general_purpose::STANDARD.encode(bytes)));
    }
}

pub(crate) fn secret_update(_cx: StrategyContext<'_>, object: &mut Value, old: &Value) {
    if text(object, "type").is_empty() {
        copy_field(object, old, "type");
    }
}

/// Keeps only the names of secret references.
fn clean_secret_references(object: &mut Value) {
    for secret in object.get_mut("secrets").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(name) = secret.get("name").cloned() {
            *secret = json!({"name": name});
        }
    }
}

pub(crate) fn service_account_create(_cx: StrategyContext<'_>, object: &mut Value) {
    clean_secret_references(object);
}

pub(crate) fn service_account_update(_cx: StrategyContext<'_>, object: &mut Value, _old: &Value) {
    clean_secret_references(object);
}

/// Sets the selector and the labels of the pod template from the job's UID, unless `manualSelector` is set.
pub(crate) fn job_create(_cx: StrategyContext<'_>, object: &mut Value) {
    remove_status(object);
    if object["spec"]["manualSelector"] == true {
        return;
    }
    let name = text(&object["metadata"], "name").to_owned();
    let uid = text(&object["metadata"], "uid").to_owned();
    let Some(template) = object.get_mut("spec").and_then(|s| map_mut(s, "template")) else { return };
    let metadata = template.entry("metadata").or_insert_with(|| json!({}));
    let Some(labels) = map_mut(metadata, "labels") else { return };
    let owned = [
        ("controller-uid", &uid),
        ("batch.kubernetes.io/controller-uid", &uid),
        ("job-name", &name),
        ("batch.kubernetes.io/job-name", &name),
    ];
    for (key, value) in owned {
        // Labels of the request are kept, so that validation can reject them.
        labels.entry(key).or_insert_with(|| json!(value));
    }
    let Some(spec) = map_mut(object, "spec") else { return };
    let selector = spec.entry("selector").or_insert_with(|| json!({}));
    if let Some(labels) = map_mut(selector, "matchLabels") {
        labels.entry("batch.kubernetes.io/controller-uid").or_insert_with(|| json!(uid));
    }
}

pub(crate) fn daemon_set_create(_cx: StrategyContext<'_>, object: &mut Value) {
    remove_status(object);
    set_template_generation(object, 1);
}

/// The annotation with the generation of the pod template.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

fn set_template_generation(object: &mut Value, generation: i64) {
    if let Some(annotations) = object.get_mut("metadata").and_then(|m| map_mut(m, "annotations")) {
        annotations.insert(TEMPLATE_GENERATION.to_owned(), json!(generation.to_string()));
    }
}

pub(crate) fn daemon_set_update(_cx: StrategyContext<'_>, object: &mut Value, old: &Value) {
    copy_field(object, old, "status");
    let before = text(&old["metadata"]["annotations"], TEMPLATE_GENERATION).parse::<i64>().unwrap_or(0);
    let changed = object["spec"]["template"] != old["spec"]["template"];
    set_template_generation(object, before + i64::from(changed));
}

/// Deployments keep their labels on status updates.
pub(crate) fn deployment_status(_cx: StrategyContext<'_>, object: &mut Value, old: &Value) {
    copy_field(object, old, "spec");
    if let (Some(metadata), old) = (object.get_mut("metadata"), &old["metadata"]) {
        copy_field(metadata, old, "labels");
    }
}

/// Adds the finalizer that keeps a volume or claim while it is in use.
fn add_protection_finalizer(object: &mut Value, finalizer: &str) {
    let Some(metadata) = map_mut(object, "metadata") else { return };
    let finalizers = metadata.entry("finalizers").or_insert_with(|| json!([]));
    if let Some(finalizers) = finalizers.as_array_mut()
        && !finalizers.iter().any(|f| f == finalizer)
    {
        finalizers.push(json!(finalizer));
    }
}

pub(crate) fn volume_create(cx: StrategyContext<'_>, object: &mut Value) {
    add_protection_finalizer(object, "kubernetes.io/pv-protection");
    object["status"] = json!({"phase": "Pending", "lastPhaseTransitionTime": cx.now});
}

pub(crate) fn volume_status(cx: StrategyContext<'_>, object: &mut Value, old: &Value) {
    copy_field(object, old, "spec");
    let same_phase = object["status"]["phase"] == old["status"]["phase"];
    let (new_time, old_time) =
        (object["status"]["lastPhaseTransitionTime"].clone(), &old["status"]["lastPhaseTransitionTime"]);
    let time = match same_phase {
        true if new_time.is_null() => old_time.clone(),
        false if new_time.is_null() || new_time == *old_time => json!(cx.now),
        _ => return,
    };
    if let Some(status) = object["status"].as_object_mut() {
        status.insert("lastPhaseTransitionTime".to_owned(), time);
    }
}

/// Keeps `dataSource` and `dataSourceRef` of a claim consistent. A reference to another namespace has no
/// counterpart.
pub(crate) fn claim_data_sources(object: &mut Value) {
    let spec = &object["spec"];
    let (source, reference) = (spec["dataSource"].clone(), spec["dataSourceRef"].clone());
    let Some(spec) = object["spec"].as_object_mut() else { return };
    if source.is_object() && reference.is_null() {
        spec.insert("dataSourceRef".to_owned(), source);
    } else if reference.is_object() && source.is_null() && text(&reference, "namespace").is_empty() {
        let mirrored: Map<String, Value> = reference
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(key, _)| key.as_str() != "namespace")
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        spec.insert("dataSource".to_owned(), Value::Object(mirrored));
    }
}

pub(crate) fn claim_create(_cx: StrategyContext<'_>, object: &mut Value) {
    add_protection_finalizer(object, "kubernetes.io/pvc-protection");
    remove_status(object);
    let group = text(&object["spec"]["dataSource"], "apiGroup").to_owned();
    let kind = text(&object["spec"]["dataSource"], "kind").to_owned();
    let known = matches!(
        (group.as_str(), kind.as_str()),
        ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
    );
    if object["spec"]["dataSource"].is_object() && !known && object["spec"]["dataSourceRef"].is_null() {
        // Unknown sources are removed without an error, as before `dataSourceRef` existed.
        if let Some(spec) = object["spec"].as_object_mut() {
            spec.remove("dataSource");
        }
    }
    claim_data_sources(object);
}

pub(crate) fn claim_update(_cx: StrategyContext<'_>, object: &mut Value, old: &Value) {
    copy_field(object, old, "status");
    claim_data_sources(object);
}

pub(crate) fn signing_request_update(cx: StrategyContext<'_>, object: &mut Value, old: &Value) {
    let conditions = object["status"]["conditions"].take();
    copy_field(object, old, "spec");
    copy_field(object, old, "status");
    if cx.subresource == "approval" {
        if let Some(status) = map_mut(object, "status") {
            status.insert("conditions".to_owned(), conditions);
        }
        set_condition_times(object, old, cx.now);
    }
}

pub(crate) fn signing_request_status(cx: StrategyContext<'_>, object: &mut Value, old: &Value) {
    copy_field(object, old, "spec");
    set_condition_times(object, old, cx.now);
}

/// Sets the missing times of conditions; an unchanged condition keeps its transition time.
fn set_condition_times(object: &mut Value, old: &Value, now: &str) {
    for condition in
        object.pointer_mut("/status/conditions").and_then(Value::as_array_mut).into_iter().flatten()
    {
        let before = list(&old["status"], "conditions").iter().find(|c| {
            text(c, "type") == text(condition, "type") && text(c, "status") == text(condition, "status")
        });
        if text(condition, "lastTransitionTime").is_empty() {
            let since = before.map_or_else(|| json!(now), |c| c["lastTransitionTime"].clone());
            condition["lastTransitionTime"] = since;
        }
        if text(condition, "lastUpdateTime").is_empty() {
            condition["lastUpdateTime"] = json!(now);
        }
    }
}

/// Keeps `clusterIP` and `clusterIPs` consistent.
pub(crate) fn service_create(_cx: StrategyContext<'_>, object: &mut Value) {
    remove_status(object);
    let first = object["spec"]["clusterIP"].clone();
    if let Some(spec) = object["spec"].as_object_mut()
        && first.as_str().is_some_and(|ip| !ip.is_empty())
        && !spec.contains_key("clusterIPs")
    {
        spec.insert("clusterIPs".to_owned(), json!([first]));
    }
}

/// Applies a change of `clusterIP` or `clusterIPs` by a client that knows only one of them to both.
fn sync_cluster_ips(spec: &mut Map<String, Value>, old: &Value) {
    let ip = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let (before, now) = (ip(old.get("clusterIP")), ip(spec.get("clusterIP")));
    let same_list = spec.get("clusterIPs") == old.get("clusterIPs");
    if before == now || !same_list {
        return;
    }
    if now.is_empty() {
        spec.remove("clusterIPs");
    } else if let Some(first) = spec.get_mut("clusterIPs").and_then(|ips| ips.get_mut(0)) {
        *first = json!(now);
    } else {
        spec.insert("clusterIPs".to_owned(), json!([now]));
    }
}

/// Removes what the new type of a service cannot have, unless the request sets it again.
pub(crate) fn service_update(_cx: StrategyContext<'_>, object: &mut Value, old: &Value) {
    copy_field(object, old, "status");
    let needs_ip = |spec: &Value| text(spec, "type") != "ExternalName";
    // A load balancer that no longer allocates node ports keeps those it has.
    let needs_node_port = |spec: &Value| matches!(text(spec, "type"), "NodePort" | "LoadBalancer");
    let needs_health_check =
        |spec: &Value| text(spec, "type") == "LoadBalancer" && text(spec, "externalTrafficPolicy") == "Local";
    let (old_spec, new_spec) = (old["spec"].clone(), object["spec"].clone());
    let external = |spec: &Value| {
        let addressed = || !list(spec, "externalIPs").is_empty();
        matches!(text(spec, "type"), "NodePort" | "LoadBalancer")
            || (text(spec, "type") == "ClusterIP" && addressed())
    };
    let Some(spec) = object["spec"].as_object_mut() else { return };
    sync_cluster_ips(spec, &old_spec);
    let new_spec =
        if new_spec["clusterIPs"] == old_spec["clusterIPs"] { new_spec } else { Value::Object(spec.clone()) };
    let mut drop_same = |keys: &[&str]| {
        if keys.iter().all(|key| old_spec[*key] == new_spec[*key]) {
            for key in keys {
                spec.remove(*key);
            }
        }
    };
    if needs_ip(&old_spec) && !needs_ip(&new_spec) {
        drop_same(&["clusterIP", "clusterIPs"]);
        drop_same(&["ipFamilies", "ipFamilyPolicy"]);
        drop_same(&["internalTrafficPolicy"]);
    }
    let no_balancer = text(&old_spec, "type") == "LoadBalancer" && text(&new_spec, "type") != "LoadBalancer";
    if no_balancer {
        drop_same(&["allocateLoadBalancerNodePorts"]);
        drop_same(&["loadBalancerClass"]);
    }
    if external(&old_spec) && !external(&new_spec) {
        drop_same(&["externalTrafficPolicy"]);
    }
    if needs_health_check(&old_spec) && !needs_health_check(&new_spec) {
        drop_same(&["healthCheckNodePort"]);
    }
    if needs_node_port(&old_spec) && !needs_node_port(&new_spec) {
        let old_ports: Vec<(i64, String, i64)> = list(&old_spec, "ports").iter().map(port_key).collect();
        for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
            if old_ports.iter().any(|(_, _, node)| *node == port["nodePort"].as_i64().unwrap_or(0))
                && let Some(port) = port.as_object_mut()
            {
                port.remove("nodePort");
            }
        }
    }
    if no_balancer {
        object["status"] = json!({"loadBalancer": {}});
    }
}

fn port_key(port: &Value) -> (i64, String, i64) {
    (
        port["port"].as_i64().unwrap_or(0),
        text(port, "protocol").to_owned(),
        port["nodePort"].as_i64().unwrap_or(0),
    )
}

/// Taints a new node until it is ready.
pub(crate) fn node_create(_cx: StrategyContext<'_>, object: &mut Value) {
    const NOT_READY: &str = "node.kubernetes.io/not-ready";
    let Some(spec) = map_mut(object, "spec") else { return };
    // A removed feature: its field is not stored.
    spec.remove("configSource");
    let taints = spec.entry("taints").or_insert_with(|| json!([]));
    if let Some(taints) = taints.as_array_mut()
        && !taints.iter().any(|t| text(t, "key") == NOT_READY && text(t, "effect") == "NoSchedule")
    {
        taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
    }
}

/// Keeps `podCIDR` and the first of `podCIDRs` consistent; `podCIDR` wins.
pub(crate) fn sync_pod_cidrs(spec: &mut Map<String, Value>) {
    let first = |spec: &Map<String, Value>| spec.get("podCIDRs").and_then(|all| all.get(0)).cloned();
    match spec.get("podCIDR").filter(|one| one.as_str().is_some_and(|one| !one.is_empty())).cloned() {
        Some(one) if first(spec).as_ref() != Some(&one) => {
            spec.insert("podCIDRs".to_owned(), json!([one]));
        }
        Some(_) => {}
        None => {
            if let Some(first) = first(spec) {
                spec.insert("podCIDR".to_owned(), first);
            }
        }
    }
}

pub(crate) fn attributes_class_create(_cx: StrategyContext<'_>, object: &mut Value) {
    add_protection_finalizer(object, "kubernetes.io/vac-protection");
}

/// JSON pointer of the pod spec in an object of a kind.
fn pod_spec_path(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "Pod" => "/spec",
        "PodTemplate" => "/template/spec",
        "CronJob" => "/spec/jobTemplate/spec/template/spec",
        "Deployment" | "DaemonSet" | "StatefulSet" | "ReplicaSet" | "ReplicationController" | "Job" => {
            "/spec/template/spec"
        }
        _ => return None,
    })
}

/// The pod spec in an object of a kind.
fn pod_spec<'a>(kind: &str, object: &'a mut Value) -> Option<&'a mut Map<String, Value>> {
    object.pointer_mut(pod_spec_path(kind)?).and_then(Value::as_object_mut)
}

/// Removes image volumes and their mounts: the feature gate is off by default.
fn drop_image_volumes(spec: &mut Map<String, Value>) {
    let Some(volumes) = spec.get_mut("volumes").and_then(Value::as_array_mut) else { return };
    let is_image = |volume: &Value| volume["image"].is_object();
    let gone: Vec<String> =
        volumes.iter().filter(|v| is_image(v)).map(|v| text(v, "name").to_owned()).collect();
    if gone.is_empty() {
        return;
    }
    volumes.retain(|volume| !is_image(volume));
    if volumes.is_empty() {
        spec.remove("volumes");
    }
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let Some(container) = container.as_object_mut() else { continue };
            let Some(mounts) = container.get_mut("volumeMounts").and_then(Value::as_array_mut) else {
                continue;
            };
            mounts.retain(|mount| !gone.iter().any(|name| name == text(mount, "name")));
            if mounts.is_empty() {
                container.remove("volumeMounts");
            }
        }
    }
}

/// Whether a kind has fields of features that are off by default.
pub(crate) fn has_disabled_fields(kind: &str) -> bool {
    matches!(kind, "StatefulSet" | "Lease") || pod_spec_path(kind).is_some()
}

/// Removes the fields of features that are off by default.
pub(crate) fn drop_disabled_fields(kind: &str, object: &mut Value) {
    if kind == "StatefulSet"
        && let Some(rolling) = object.pointer_mut("/spec/updateStrategy/rollingUpdate")
        && let Some(rolling) = rolling.as_object_mut()
    {
        rolling.remove("maxUnavailable");
    }
    if kind == "Lease"
        && let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut)
    {
        spec.remove("strategy");
        spec.remove("preferredHolder");
    }
    if kind == "CSIDriver"
        && let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut)
    {
        spec.remove("nodeAllocatableUpdatePeriodSeconds");
    }
    let Some(spec) = pod_spec(kind, object) else { return };
    spec.remove("hostnameOverride");
    drop_image_volumes(spec);
    for (list, only_always) in [("containers", false), ("initContainers", true)] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let Some(container) = container.as_object_mut() else { continue };
            container.remove("restartPolicyRules");
            if let Some(lifecycle) = container.get_mut("lifecycle").and_then(Value::as_object_mut) {
                lifecycle.remove("stopSignal");
            }
            if !(only_always && container.get("restartPolicy").is_some_and(|p| p == "Always")) {
                container.remove("restartPolicy");
            }
        }
    }
}
