//! Nodes, and the phases of pods.

use std::time::Duration;

use serde_json::{Value, json};

use super::client::Client;
use crate::object;

const TABLE: &str = "/pods";

/// Creates the simulated nodes.
pub(super) async fn create_nodes(client: &mut Client<'_>) {
    let existing = client.list("/nodes", "").len();
    for i in existing..client.options.nodes as usize {
        let name = format!("sim-node-{i}");
        let ready = json!({"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "simulated",
            "lastHeartbeatTime": client.timestamp(), "lastTransitionTime": client.timestamp()});
        client
            .create("/nodes", json!({
                "kind": "Node", "apiVersion": "v1",
                "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}},
                "spec": {},
                "status": {
                    "capacity": {"cpu": "8", "memory": "32Gi", "pods": "1000"}, "allocatable": {"cpu": "8", "memory": "32Gi", "pods": "1000"},
                    "conditions": [ready], "addresses": [{"type": "Hostname", "address": name}],
                    "nodeInfo": {"kubeletVersion": "v1.34.4", "osImage": "simulated", "operatingSystem": "linux", "architecture": "amd64",
                        "containerRuntimeVersion": "simulated", "kernelVersion": "", "kubeProxyVersion": "", "machineID": "", "systemUUID": "", "bootID": ""}
                }
            }))
            .await;
    }
}

/// What happens to a pod next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PodTransition {
    Ready(Duration),
    CannotPull,
    Crashes,
    NeverScheduled,
}

fn transition(pod: &Value, ready_after: Duration) -> PodTransition {
    match object::annotation(pod, "fluorite.dev/simulate") {
        Some("fail" | "crash") => return PodTransition::Crashes,
        Some("pending" | "never") => return PodTransition::NeverScheduled,
        Some(text) => {
            if let Some(wait) = text.strip_prefix("slow=").and_then(duration) {
                return PodTransition::Ready(wait);
            }
        }
        None => {}
    }
    let broken = pod.pointer("/spec/containers").and_then(Value::as_array).into_iter().flatten().any(|c| {
        let image = c.get("image").and_then(Value::as_str).unwrap_or_default();
        let tag = image.rsplit('/').next().and_then(|n| n.split_once(':')).map_or("", |(_, tag)| tag);
        matches!(tag, "fail" | "broken") || image.split(':').next().is_some_and(|n| n.ends_with("broken"))
    });
    if broken { PodTransition::CannotPull } else { PodTransition::Ready(ready_after) }
}

/// `500ms`, `5s`, `2m`.
fn duration(text: &str) -> Option<Duration> {
    let at = text.find(|c: char| !c.is_ascii_digit())?;
    let n: u64 = text[..at].parse().ok()?;
    match &text[at..] {
        "ms" => Some(Duration::from_millis(n)),
        "s" => Some(Duration::from_secs(n)),
        "m" => Some(Duration::from_secs(n.checked_mul(60)?)),
        _ => None,
    }
}

pub(super) async fn run(client: &mut Client<'_>) {
    let nodes: Vec<String> = client.list("/nodes", "").iter().map(|n| object::name(n).to_owned()).collect();
    for (i, pod) in client.list(TABLE, "").into_iter().enumerate() {
        if object::is_deleting(&pod) {
            // No container runs: the grace period ends at once.
            client.change(TABLE, &pod, |p| object::set_meta(p, "deletionGracePeriodSeconds", 0)).await;
            continue;
        }
        let phase = pod.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default();
        if matches!(phase, "Succeeded" | "Failed")
            || super::client::is_ready(&pod) && phase == "Running" && !runs_to_completion(&pod)
        {
            continue;
        }
        reconcile(client, &pod, nodes.get(i % nodes.len().max(1)).cloned()).await;
    }
}

/// Whether the containers of a pod end by themselves.
fn runs_to_completion(pod: &Value) -> bool {
    object::owner_references(pod).iter().any(|r| r["kind"] == "Job")
}

async fn reconcile(client: &mut Client<'_>, pod: &Value, node: Option<String>) {
    let transition = transition(pod, client.options.ready_after);
    let now = client.timestamp();
    if transition == PodTransition::NeverScheduled || node.is_none() {
        let status = json!({"phase": "Pending", "qosClass": "BestEffort", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0 nodes are available", "lastTransitionTime": now}]});
        if pod.pointer("/status/conditions/0/reason") != Some(&json!("Unschedulable")) {
            client.set_status(TABLE, pod, status).await;
        }
        return;
    }
    let Some(created) = object::meta_str(pod, "creationTimestamp").parse::<jiff::Timestamp>().ok() else {
        return;
    };
    let started: jiff::Timestamp =
        object::annotation(pod, STARTED).and_then(|t| t.parse().ok()).unwrap_or(created);
    if object::annotation(pod, STARTED).is_none() {
        // Creation times have whole seconds only: the exact start time is kept in an annotation.
        let (node, exact) = (node.unwrap_or_default(), client.now.to_string());
        let status = waiting(pod, "ContainerCreating", "", &now);
        client
            .change(TABLE, pod, |p| {
                if p.pointer("/spec/nodeName").is_none_or(|n| n == "") {
                    p["spec"]["nodeName"] = json!(node);
                }
                p["metadata"]["annotations"][STARTED] = json!(exact);
                p["status"] = status.clone();
            })
            .await;
        client.requeue_after(client.options.ready_after);
        return;
    }
    match transition {
        PodTransition::CannotPull => {
            let text = "Back-off pulling image: the image does not exist (simulated)";
            set_once(client, pod, waiting(pod, "ImagePullBackOff", text, &now)).await;
        }
        PodTransition::Crashes if runs_to_completion(pod) => {
            set_once(client, pod, terminated(pod, "Failed", 1, &now)).await;
        }
        PodTransition::Crashes => {
            set_once(
                client,
                pod,
                waiting(pod, "CrashLoopBackOff", "back-off restarting failed container (simulated)", &now),
            )
            .await;
        }
        PodTransition::Ready(after) => {
            let passed = client.now.duration_since(started);
            let left = after.saturating_sub(Duration::try_from(passed).unwrap_or_default());
            if !left.is_zero() {
                client.requeue_after(left);
            } else if runs_to_completion(pod) {
                set_once(client, pod, terminated(pod, "Succeeded", 0, &now)).await;
            } else {
                set_once(client, pod, running(pod, &now)).await;
            }
        }
        PodTransition::NeverScheduled => {}
    }
}

const STARTED: &str = "fluorite.dev/simulated-start";

/// Sets a status unless the pod has the same phase and waiting reason already.
async fn set_once(client: &Client<'_>, pod: &Value, status: Value) {
    let kind =
        |s: &Value| (s["phase"].clone(), s.pointer("/containerStatuses/0/state/waiting/reason").cloned());
    if pod.get("status").map(kind) != Some(kind(&status)) {
        client.set_status(TABLE, pod, status).await;
    }
}

fn containers(pod: &Value, ready: bool, state: &Value) -> Vec<Value> {
    let list = pod.pointer("/spec/containers").and_then(Value::as_array).cloned().unwrap_or_default();
    list.iter()
        .map(|c| {
            json!({"name": c["name"], "image": c["image"], "imageID": "", "ready": ready, "started": ready, "restartCount": 0,
                "state": state, "lastState": {}})
        })
        .collect()
}

fn status(pod: &Value, phase: &str, ready: bool, state: &Value, now: &str) -> Value {
    let flag = if ready { "True" } else { "False" };
    let at = |kind: &str, value: &str| json!({"type": kind, "status": value, "lastProbeTime": null, "lastTransitionTime": now});
    let class = pod.pointer("/status/qosClass").cloned().unwrap_or_else(|| json!("BestEffort"));
    let last = object::uid(pod).bytes().fold(7u32, |a, b| a.wrapping_mul(31).wrapping_add(u32::from(b)));
    let ip = format!("10.244.{}.{}", (last >> 8) & 255, (last & 255).clamp(1, 254));
    json!({
        "phase": phase, "qosClass": class, "startTime": now, "hostIP": "127.0.0.1", "hostIPs": [{"ip": "127.0.0.1"}],
        "podIP": ip, "podIPs": [{"ip": ip}],
        "conditions": [at("PodReadyToStartContainers", "True"), at("Initialized", "True"), at("Ready", flag), at("ContainersReady", flag), at("PodScheduled", "True")],
        "containerStatuses": containers(pod, ready, state)
    })
}

fn waiting(pod: &Value, reason: &str, message: &str, now: &str) -> Value {
    let mut state = json!({"waiting": {"reason": reason}});
    if !message.is_empty() {
        state["waiting"]["message"] = json!(message);
    }
    let phase = if reason == "CrashLoopBackOff" { "Running" } else { "Pending" };
    status(pod, phase, false, &state, now)
}

fn running(pod: &Value, now: &str) -> Value {
    status(pod, "Running", true, &json!({"running": {"startedAt": now}}), now)
}

fn terminated(pod: &Value, phase: &str, code: i64, now: &str) -> Value {
    let reason = if code == 0 { "Completed" } else { "Error" };
    let state =
        json!({"terminated": {"exitCode": code, "reason": reason, "startedAt": now, "finishedAt": now}});
    status(pod, phase, false, &state, now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_and_annotations_select_the_transition() {
        let pod = |image: &str, note: Option<&str>| {
            let mut pod = json!({"spec": {"containers": [{"name": "c", "image": image}]}, "metadata": {}});
            if let Some(note) = note {
                pod["metadata"]["annotations"] = json!({"fluorite.dev/simulate": note});
            }
            pod
        };
        let usual = Duration::from_millis(10);
        assert_eq!(transition(&pod("nginx:1", None), usual), PodTransition::Ready(usual));
        assert_eq!(transition(&pod("r.example:5000/a/nginx:fail", None), usual), PodTransition::CannotPull);
        assert_eq!(transition(&pod("a/broken", None), usual), PodTransition::CannotPull);
        assert_eq!(
            transition(&pod("nginx", Some("slow=5s")), usual),
            PodTransition::Ready(Duration::from_secs(5))
        );
        assert_eq!(transition(&pod("nginx", Some("fail")), usual), PodTransition::Crashes);
    }
}
