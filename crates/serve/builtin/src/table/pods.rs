//! Tables of the core group's small kinds and of pods.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Printer, age, containers, int, labels, name, or, seconds, since};
use crate::field::{entries, is_set, list, text};

pub(super) fn printer(kind: &str) -> Option<&'static Printer> {
    Some(match kind {
        "Pod" => &Printer {
            columns: "Name@|Ready|Status|Restarts|Age|+IP|+Node|+Nominated Node|+Readiness Gates",
            cells: pod,
        },
        "PodTemplate" => &Printer { columns: "Name@|Containers|Images|Pod Labels", cells: pod_template },
        "Node" => &Printer {
            columns: "Name@|Status|Roles|Age|Version|+Internal-IP|+External-IP|+OS-Image|+Kernel-Version|+Container-Runtime",
            cells: node,
        },
        "Namespace" => &Printer {
            columns: "Name@|Status|Age",
            cells: |o, now| vec![name(o), json!(text(&o["status"], "phase")), age(o, now)],
        },
        "Secret" => &Printer {
            columns: "Name@|Type|Data|Age",
            cells: |o, now| {
                vec![name(o), json!(text(o, "type")), json!(entries(o, "data").len()), age(o, now)]
            },
        },
        "ConfigMap" => &Printer {
            columns: "Name@|Data|Age",
            cells: |o, now| {
                vec![name(o), json!(entries(o, "data").len() + entries(o, "binaryData").len()), age(o, now)]
            },
        },
        "ServiceAccount" => &Printer {
            columns: "Name@|Secrets|Age",
            cells: |o, now| vec![name(o), json!(list(o, "secrets").len()), age(o, now)],
        },
        "ResourceQuota" => &Printer { columns: "Name@|Request|Limit|Age", cells: resource_quota },
        "PersistentVolume" => &Printer {
            columns: "Name@|Capacity|Access Modes|Reclaim Policy|Status|Claim|StorageClass|VolumeAttributesClass|Reason|Age|+VolumeMode",
            cells: volume,
        },
        "PersistentVolumeClaim" => &Printer {
            columns: "Name@|Status|Volume|Capacity|Access Modes|StorageClass|VolumeAttributesClass|Age|+VolumeMode",
            cells: claim,
        },
        "ComponentStatus" => &Printer {
            columns: "Name@|Status|Message|Error",
            cells: |o, _| {
                let healthy = list(o, "conditions").iter().find(|c| c["type"] == "Healthy");
                let status = match healthy.map(|c| text(c, "status")) {
                    Some("True") => "Healthy",
                    Some("False") => "Unhealthy",
                    _ => "Unknown",
                };
                let part = |key: &str| json!(healthy.map_or("", |c| text(c, key)));
                vec![name(o), json!(status), part("message"), part("error")]
            },
        },
        _ => return None,
    })
}

/// State of the pod summary while container states are read.
#[derive(Default)]
struct PodState {
    reason: String,
    restarts: i64,
    last_restart: Option<i64>,
    ready: usize,
}

fn restarted_at(status: &Value) -> Option<i64> {
    seconds(&status["lastState"]["terminated"]["finishedAt"])
}

fn exit_reason(terminated: &Value) -> String {
    match (text(terminated, "reason"), terminated["signal"].as_i64().unwrap_or(0)) {
        ("", 0) => format!("ExitCode:{}", terminated["exitCode"].as_i64().unwrap_or(0)),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

fn condition_is_true(status: &Value, kind: &str) -> bool {
    list(status, "conditions").iter().any(|c| c["type"] == kind && c["status"] == "True")
}

/// Reads the init containers in order; returns true while they are not done. Sidecars (restart policy Always)
/// count as containers.
fn read_init(pod: &Value, state: &mut PodState, sidecars: &mut PodState) -> bool {
    let specs = list(&pod["spec"], "initContainers");
    let is_sidecar =
        |name: &str| specs.iter().any(|c| text(c, "name") == name && text(c, "restartPolicy") == "Always");
    for (at, container) in list(&pod["status"], "initContainerStatuses").iter().enumerate() {
        let restarts = container["restartCount"].as_i64().unwrap_or(0);
        state.restarts += restarts;
        state.last_restart = state.last_restart.max(restarted_at(container));
        let sidecar = is_sidecar(text(container, "name"));
        if sidecar {
            sidecars.restarts += restarts;
            sidecars.last_restart = sidecars.last_restart.max(restarted_at(container));
        }
        let (terminated, waiting) = (&container["state"]["terminated"], &container["state"]["waiting"]);
        if terminated.is_object() && terminated["exitCode"].as_i64().unwrap_or(0) == 0 {
            continue;
        }
        if sidecar && container["started"] == true {
            state.ready += usize::from(container["ready"] == true);
            continue;
        }
        state.reason = if terminated.is_object() {
            format!("Init:{}", exit_reason(terminated))
        } else if !text(waiting, "reason").is_empty() && text(waiting, "reason") != "PodInitializing" {
            format!("Init:{}", text(waiting, "reason"))
        } else {
            format!("Init:{at}/{}", specs.len())
        };
        return true;
    }
    false
}

fn read_containers(pod: &Value, state: &mut PodState) {
    let mut running = false;
    for container in list(&pod["status"], "containerStatuses").iter().rev() {
        state.restarts += container["restartCount"].as_i64().unwrap_or(0);
        state.last_restart = state.last_restart.max(restarted_at(container));
        let (terminated, waiting) = (&container["state"]["terminated"], &container["state"]["waiting"]);
        if !text(waiting, "reason").is_empty() {
            state.reason = text(waiting, "reason").to_owned();
        } else if terminated.is_object() {
            state.reason = exit_reason(terminated);
        } else if container["ready"] == true && container["state"]["running"].is_object() {
            running = true;
            state.ready += 1;
        }
    }
    if state.reason == "Completed" && running {
        let ready = condition_is_true(&pod["status"], "Ready");
        state.reason = if ready { "Running" } else { "NotReady" }.to_owned();
    }
}

fn pod(pod: &Value, now: i64) -> Vec<Value> {
    let (spec, status) = (&pod["spec"], &pod["status"]);
    let phase = text(status, "phase");
    let mut state = PodState { reason: phase.to_owned(), ..PodState::default() };
    if !text(status, "reason").is_empty() {
        state.reason = text(status, "reason").to_owned();
    }
    if list(status, "conditions")
        .iter()
        .any(|c| c["type"] == "PodScheduled" && c["reason"] == "SchedulingGated")
    {
        state.reason = "SchedulingGated".to_owned();
    }
    let mut sidecars = PodState::default();
    let initializing = read_init(pod, &mut state, &mut sidecars);
    if !initializing || condition_is_true(status, "Initialized") {
        (state.restarts, state.last_restart) = (sidecars.restarts, sidecars.last_restart);
        read_containers(pod, &mut state);
    }
    if is_set(&pod["metadata"], "deletionTimestamp") {
        if text(status, "reason") == "NodeLost" {
            state.reason = "Unknown".to_owned();
        } else if !matches!(phase, "Succeeded" | "Failed") {
            state.reason = "Terminating".to_owned();
        }
    }
    let total = list(spec, "containers").len()
        + list(spec, "initContainers").iter().filter(|c| c["restartPolicy"] == "Always").count();
    let restarts = match state.last_restart {
        Some(at) if state.restarts != 0 => {
            format!("{} ({} ago)", state.restarts, super::human_duration(now - at))
        }
        _ => state.restarts.to_string(),
    };
    let gates = list(spec, "readinessGates");
    let met = gates.iter().filter(|g| condition_is_true(status, text(g, "conditionType"))).count();
    let gates = if gates.is_empty() { "<none>".to_owned() } else { format!("{met}/{}", gates.len()) };
    vec![
        name(pod),
        json!(format!("{}/{total}", state.ready)),
        json!(state.reason),
        json!(restarts),
        age(pod, now),
        or(&status["podIPs"][0]["ip"], "<none>"),
        or(&spec["nodeName"], "<none>"),
        or(&status["nominatedNodeName"], "<none>"),
        json!(gates),
    ]
}

fn pod_template(o: &Value, _now: i64) -> Vec<Value> {
    let [names, images] = containers(&o["template"]["spec"]);
    vec![name(o), names, images, labels(&o["template"]["metadata"], "labels")]
}

fn node(node: &Value, now: i64) -> Vec<Value> {
    let status = &node["status"];
    let ready = list(status, "conditions").iter().rfind(|c| c["type"] == "Ready");
    let mut state = match ready.map(|c| text(c, "status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if node["spec"]["unschedulable"] == true {
        state.push_str(",SchedulingDisabled");
    }
    let mut roles = BTreeSet::new();
    for (key, value) in entries(&node["metadata"], "labels") {
        match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) if !role.is_empty() => {
                roles.insert(role);
            }
            _ if key == "kubernetes.io/role" => {
                roles.extend(value.as_str().filter(|v| !v.is_empty()));
            }
            _ => {}
        }
    }
    let roles = roles.into_iter().collect::<Vec<_>>().join(",");
    let address = |kind: &str| {
        let found = list(status, "addresses").iter().find(|a| a["type"] == kind);
        json!(found.map_or("<none>", |a| text(a, "address")))
    };
    let info = &status["nodeInfo"];
    vec![
        name(node),
        json!(state),
        json!(if roles.is_empty() { "<none>" } else { &roles }),
        age(node, now),
        json!(text(info, "kubeletVersion")),
        address("InternalIP"),
        address("ExternalIP"),
        or(&info["osImage"], "<unknown>"),
        or(&info["kernelVersion"], "<unknown>"),
        or(&info["containerRuntimeVersion"], "<unknown>"),
    ]
}

fn resource_quota(o: &Value, now: i64) -> Vec<Value> {
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (resource, hard) in entries(&o["status"], "hard") {
        let used = o["status"]["used"][resource].as_str().unwrap_or("0");
        let line = format!("{resource}: {used}/{}", hard.as_str().unwrap_or("0"));
        if resource.starts_with("limits.") { limits.push(line) } else { requests.push(line) }
    }
    vec![name(o), json!(requests.join(", ")), json!(limits.join(", ")), age(o, now)]
}

/// Access modes in short form, in a fixed order.
fn access_modes(modes: &[Value]) -> Value {
    let short: Vec<&str> = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ]
    .iter()
    .filter(|(long, _)| modes.iter().any(|m| m == long))
    .map(|(_, short)| *short)
    .collect();
    json!(short.join(","))
}

fn phase(o: &Value) -> Value {
    let deleted = is_set(&o["metadata"], "deletionTimestamp");
    json!(if deleted { "Terminating" } else { text(&o["status"], "phase") })
}

/// The storage class of a volume or claim: the deprecated annotation wins over the field.
fn class(o: &Value) -> Value {
    let old = text(&o["metadata"]["annotations"], "volume.beta.kubernetes.io/storage-class");
    json!(if old.is_empty() { text(&o["spec"], "storageClassName") } else { old })
}

fn volume(o: &Value, now: i64) -> Vec<Value> {
    let spec = &o["spec"];
    let claim = &spec["claimRef"];
    let claim = if claim.is_object() {
        format!("{}/{}", text(claim, "namespace"), text(claim, "name"))
    } else {
        String::new()
    };
    vec![
        name(o),
        or(&spec["capacity"]["storage"], "0"),
        access_modes(list(spec, "accessModes")),
        json!(text(spec, "persistentVolumeReclaimPolicy")),
        phase(o),
        json!(claim),
        class(o),
        or(&spec["volumeAttributesClassName"], "<unset>"),
        json!(text(&o["status"], "reason")),
        age(o, now),
        or(&spec["volumeMode"], "<unset>"),
    ]
}

fn claim(o: &Value, now: i64) -> Vec<Value> {
    let (spec, status) = (&o["spec"], &o["status"]);
    let bound = !text(spec, "volumeName").is_empty();
    vec![
        name(o),
        phase(o),
        json!(text(spec, "volumeName")),
        if bound { or(&status["capacity"]["storage"], "0") } else { json!("") },
        if bound { access_modes(list(status, "accessModes")) } else { json!("") },
        class(o),
        or(&spec["volumeAttributesClassName"], "<unset>"),
        age(o, now),
        or(&spec["volumeMode"], "<unset>"),
    ]
}

/// The cells of an event in its core form.
pub(super) fn event(o: &Value, now: i64) -> Vec<Value> {
    let mut first = since(&o["firstTimestamp"], now);
    if !is_set(o, "firstTimestamp") {
        first = since(&o["eventTime"], now);
    }
    let mut last = if is_set(o, "lastTimestamp") { since(&o["lastTimestamp"], now) } else { first.clone() };
    let mut count = o["count"].as_i64().unwrap_or(0).max(1);
    if is_set(o, "series") {
        last = since(&o["series"]["lastObservedTime"], now);
        count = o["series"]["count"].as_i64().unwrap_or(0);
    }
    let involved = &o["involvedObject"];
    let kind = text(involved, "kind").to_lowercase();
    let target = match text(involved, "name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    let first_of = |a: &Value, b: &Value| {
        a.as_str().filter(|s| !s.is_empty()).or(b.as_str()).unwrap_or_default().to_owned()
    };
    let component = first_of(&o["source"]["component"], &o["reportingComponent"]);
    let host = first_of(&o["source"]["host"], &o["reportingInstance"]);
    let source = if host.is_empty() { component } else { format!("{component}, {host}") };
    vec![
        last,
        json!(text(o, "type")),
        json!(text(o, "reason")),
        json!(target),
        json!(text(involved, "fieldPath")),
        json!(source),
        json!(text(o, "message").trim()),
        first,
        int(&json!(count)),
        name(o),
    ]
}
