//! Nodes and pods.

use std::time::Duration;

use serde_json::{Value, json};

use super::world::World;
use crate::object;

const TABLE: &str = "/pods";

/// Makes the nodes there should be.
pub(super) async fn nodes(world: &mut World<'_>) {
    let existing = world.list("/nodes", "").len();
    for i in existing..world.options.nodes as usize {
        let name = format!("sim-node-{i}");
        let ready = json!({"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "simulated",
            "lastHeartbeatTime": world.stamp(), "lastTransitionTime": world.stamp()});
        world
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

/// What is to become of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Ready(Duration),
    CannotPull,
    Crashes,
    NeverScheduled,
}

fn fate(pod: &Value, usual: Duration) -> Fate {
    match object::annotation(pod, "fluorite.dev/simulate") {
        Some("fail" | "crash") => return Fate::Crashes,
        Some("pending" | "never") => return Fate::NeverScheduled,
        Some(text) => {
            if let Some(wait) = text.strip_prefix("slow=").and_then(duration) {
                return Fate::Ready(wait);
            }
        }
        None => {}
    }
    let broken = pod.pointer("/spec/containers").and_then(Value::as_array).into_iter().flatten().any(|c| {
        let image = c.get("image").and_then(Value::as_str).unwrap_or_default();
        let tag = image.rsplit('/').next().and_then(|n| n.split_once(':')).map_or("", |(_, tag)| tag);
        matches!(tag, "fail" | "broken") || image.split(':').next().is_some_and(|n| n.ends_with("broken"))
    });
    if broken { Fate::CannotPull } else { Fate::Ready(usual) }
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

pub(super) async fn run(world: &mut World<'_>) {
    let nodes: Vec<String> = world.list("/nodes", "").iter().map(|n| object::name(n).to_owned()).collect();
    for (i, pod) in world.list(TABLE, "").into_iter().enumerate() {
        if object::is_deleting(&pod) {
            // Nothing runs that would need its grace.
            world.change(TABLE, &pod, |p| object::set_meta(p, "deletionGracePeriodSeconds", 0)).await;
            continue;
        }
        let phase = pod.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default();
        if matches!(phase, "Succeeded" | "Failed")
            || super::world::is_ready(&pod) && phase == "Running" && !finishes(&pod)
        {
            continue;
        }
        step(world, &pod, nodes.get(i % nodes.len().max(1)).cloned()).await;
    }
}

/// Whether the pod's work ends by itself.
fn finishes(pod: &Value) -> bool {
    object::owner_references(pod).iter().any(|r| r["kind"] == "Job")
}

async fn step(world: &mut World<'_>, pod: &Value, node: Option<String>) {
    let fate = fate(pod, world.options.ready_after);
    let now = world.stamp();
    if fate == Fate::NeverScheduled || node.is_none() {
        let status = json!({"phase": "Pending", "qosClass": "BestEffort", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0 nodes are available", "lastTransitionTime": now}]});
        if pod.pointer("/status/conditions/0/reason") != Some(&json!("Unschedulable")) {
            world.set_status(TABLE, pod, status).await;
        }
        return;
    }
    let Some(born) = object::meta_str(pod, "creationTimestamp").parse::<jiff::Timestamp>().ok() else {
        return;
    };
    let started: jiff::Timestamp =
        object::annotation(pod, STARTED).and_then(|t| t.parse().ok()).unwrap_or(born);
    if object::annotation(pod, STARTED).is_none() {
        // Creation times have whole seconds only: the finer time is kept beside them.
        let (node, exact) = (node.unwrap_or_default(), world.now.to_string());
        let status = waiting(pod, "ContainerCreating", "", &now);
        world
            .change(TABLE, pod, |p| {
                if p.pointer("/spec/nodeName").is_none_or(|n| n == "") {
                    p["spec"]["nodeName"] = json!(node);
                }
                p["metadata"]["annotations"][STARTED] = json!(exact);
                p["status"] = status.clone();
            })
            .await;
        world.look_again_in(world.options.ready_after);
        return;
    }
    match fate {
        Fate::CannotPull => {
            let text = "Back-off pulling image: the image does not exist (simulated)";
            set_once(world, pod, waiting(pod, "ImagePullBackOff", text, &now)).await;
        }
        Fate::Crashes if finishes(pod) => set_once(world, pod, ended(pod, "Failed", 1, &now)).await,
        Fate::Crashes => {
            set_once(
                world,
                pod,
                waiting(pod, "CrashLoopBackOff", "back-off restarting failed container (simulated)", &now),
            )
            .await;
        }
        Fate::Ready(after) => {
            let passed = world.now.duration_since(started);
            let left = after.saturating_sub(Duration::try_from(passed).unwrap_or_default());
            if !left.is_zero() {
                world.look_again_in(left);
            } else if finishes(pod) {
                set_once(world, pod, ended(pod, "Succeeded", 0, &now)).await;
            } else {
                set_once(world, pod, running(pod, &now)).await;
            }
        }
        Fate::NeverScheduled => {}
    }
}

const STARTED: &str = "fluorite.dev/simulated-start";

/// Sets a status unless the pod has one of the same kind already.
async fn set_once(world: &World<'_>, pod: &Value, status: Value) {
    let kind =
        |s: &Value| (s["phase"].clone(), s.pointer("/containerStatuses/0/state/waiting/reason").cloned());
    if pod.get("status").map(kind) != Some(kind(&status)) {
        world.set_status(TABLE, pod, status).await;
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

fn ended(pod: &Value, phase: &str, code: i64, now: &str) -> Value {
    let reason = if code == 0 { "Completed" } else { "Error" };
    let state =
        json!({"terminated": {"exitCode": code, "reason": reason, "startedAt": now, "finishedAt": now}});
    status(pod, phase, false, &state, now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_and_annotations_decide() {
        let pod = |image: &str, note: Option<&str>| {
            let mut pod = json!({"spec": {"containers": [{"name": "c", "image": image}]}, "metadata": {}});
            if let Some(note) = note {
                pod["metadata"]["annotations"] = json!({"fluorite.dev/simulate": note});
            }
            pod
        };
        let usual = Duration::from_millis(10);
        assert_eq!(fate(&pod("nginx:1", None), usual), Fate::Ready(usual));
        assert_eq!(fate(&pod("r.example:5000/a/nginx:fail", None), usual), Fate::CannotPull);
        assert_eq!(fate(&pod("a/broken", None), usual), Fate::CannotPull);
        assert_eq!(fate(&pod("nginx", Some("slow=5s")), usual), Fate::Ready(Duration::from_secs(5)));
        assert_eq!(fate(&pod("nginx", Some("fail")), usual), Fate::Crashes);
    }
}
