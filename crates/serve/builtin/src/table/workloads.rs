//! Tables of workloads.

use serde_json::{Value, json};

use super::{Printer, age, containers, int, labels, name, or, seconds, selector, since};
use crate::field::{is_set, list, text};

pub(super) fn printer(group: &str, kind: &str) -> Option<&'static Printer> {
    Some(match (group, kind) {
        ("", "ReplicationController") => &Printer {
            columns: "Name@|Desired#|Current#|Ready#|Age|+Containers|+Images|+Selector",
            cells: |o, now| replicas(o, now, labels(&o["spec"], "selector")),
        },
        ("apps", "ReplicaSet") => &Printer {
            columns: "Name@|Desired#|Current#|Ready#|Age|+Containers|+Images|+Selector",
            cells: |o, now| replicas(o, now, selector(&o["spec"]["selector"])),
        },
        ("apps", "Deployment") => &Printer {
            columns: "Name@|Ready|Up-to-date|Available|Age|+Containers|+Images|+Selector",
            cells: |o, now| {
                let status = &o["status"];
                let mut row = vec![
                    name(o),
                    ready(o),
                    int(&status["updatedReplicas"]),
                    int(&status["availableReplicas"]),
                    age(o, now),
                ];
                row.extend(containers(&o["spec"]["template"]["spec"]));
                row.push(selector(&o["spec"]["selector"]));
                row
            },
        },
        ("apps", "StatefulSet") => &Printer {
            columns: "Name@|Ready|Age|+Containers|+Images",
            cells: |o, now| {
                let mut row = vec![name(o), ready(o), age(o, now)];
                row.extend(containers(&o["spec"]["template"]["spec"]));
                row
            },
        },
        ("apps", "DaemonSet") => &Printer {
            columns: "Name@|Desired#|Current#|Ready#|Up-to-date#|Available#|Node Selector|Age|+Containers|+Images|+Selector",
            cells: daemon_set,
        },
        ("apps", "ControllerRevision") => {
            &Printer { columns: "Name@|Controller|Revision|Age", cells: revision }
        }
        ("batch", "Job") => &Printer {
            columns: "Name@|Status|Completions|Duration|Age|+Containers|+Images|+Selector",
            cells: job,
        },
        ("batch", "CronJob") => &Printer {
            columns: "Name@|Schedule|Timezone|Suspend?|Active#|Last Schedule|Age|+Containers|+Images|+Selector",
            cells: cron_job,
        },
        ("autoscaling", "HorizontalPodAutoscaler") => {
            &Printer { columns: "Name@|Reference|Targets|MinPods|MaxPods|Replicas|Age", cells: autoscaler }
        }
        ("policy", "PodDisruptionBudget") => &Printer {
            columns: "Name@|Min Available|Max Unavailable|Allowed Disruptions#|Age",
            cells: |o, now| {
                let bound = |key: &str| match &o["spec"][key] {
                    Value::Null => json!("N/A"),
                    Value::String(text) => json!(text),
                    other => json!(other.to_string()),
                };
                vec![
                    name(o),
                    bound("minAvailable"),
                    bound("maxUnavailable"),
                    int(&o["status"]["disruptionsAllowed"]),
                    age(o, now),
                ]
            },
        },
        _ => return None,
    })
}

fn ready(o: &Value) -> Value {
    let number = |v: &Value| v.as_i64().unwrap_or(0);
    json!(format!("{}/{}", number(&o["status"]["readyReplicas"]), number(&o["spec"]["replicas"])))
}

fn replicas(o: &Value, now: i64, selector: Value) -> Vec<Value> {
    let status = &o["status"];
    let mut row = vec![
        name(o),
        int(&o["spec"]["replicas"]),
        int(&status["replicas"]),
        int(&status["readyReplicas"]),
        age(o, now),
    ];
    row.extend(containers(&o["spec"]["template"]["spec"]));
    row.push(selector);
    row
}

fn daemon_set(o: &Value, now: i64) -> Vec<Value> {
    let status = &o["status"];
    let pod = &o["spec"]["template"]["spec"];
    let mut row = vec![name(o)];
    for key in [
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    ] {
        row.push(int(&status[key]));
    }
    row.extend([labels(pod, "nodeSelector"), age(o, now)]);
    row.extend(containers(pod));
    row.push(selector(&o["spec"]["selector"]));
    row
}

fn revision(o: &Value, now: i64) -> Vec<Value> {
    let owner = list(&o["metadata"], "ownerReferences").iter().find(|r| r["controller"] == true);
    let controller = owner.map_or_else(
        || "<none>".to_owned(),
        |r| {
            let kind = text(r, "kind").to_lowercase();
            let kind = match text(r, "apiVersion").split_once('/') {
                Some((group, _)) => format!("{kind}.{group}"),
                None => kind,
            };
            format!("{kind}/{}", text(r, "name"))
        },
    );
    vec![name(o), json!(controller), int(&o["revision"]), age(o, now)]
}

fn job(o: &Value, now: i64) -> Vec<Value> {
    let (spec, status) = (&o["spec"], &o["status"]);
    let succeeded = status["succeeded"].as_i64().unwrap_or(0);
    let completions = match (spec["completions"].as_i64(), spec["parallelism"].as_i64().unwrap_or(0)) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        (None, parallelism) if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        _ => format!("{succeeded}/1"),
    };
    let duration = match (seconds(&status["startTime"]), seconds(&status["completionTime"])) {
        (None, _) => String::new(),
        (Some(start), end) => super::human_duration(end.unwrap_or(now) - start),
    };
    let has =
        |kind: &str| list(status, "conditions").iter().any(|c| c["type"] == kind && c["status"] == "True");
    let state = if has("Complete") {
        "Complete"
    } else if has("Failed") {
        "Failed"
    } else if is_set(&o["metadata"], "deletionTimestamp") {
        "Terminating"
    } else if has("Suspended") {
        "Suspended"
    } else if has("FailureTarget") {
        "FailureTarget"
    } else if has("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    };
    let mut row = vec![name(o), json!(state), json!(completions), json!(duration), age(o, now)];
    row.extend(containers(&spec["template"]["spec"]));
    row.push(selector(&spec["selector"]));
    row
}

fn cron_job(o: &Value, now: i64) -> Vec<Value> {
    let spec = &o["spec"];
    let suspend = match spec["suspend"].as_bool() {
        Some(true) => "True",
        Some(false) => "False",
        None => "<unset>",
    };
    let last = &o["status"]["lastScheduleTime"];
    let mut row = vec![
        name(o),
        json!(text(spec, "schedule")),
        or(&spec["timeZone"], "<none>"),
        json!(suspend),
        json!(list(&o["status"], "active").len()),
        if last.is_null() { json!("<none>") } else { since(last, now) },
        age(o, now),
    ];
    let job = &spec["jobTemplate"]["spec"];
    row.extend(containers(&job["template"]["spec"]));
    row.push(selector(&job["selector"]));
    row
}

/// The cells of an autoscaler of either version, read as v2.
fn autoscaler(o: &Value, now: i64) -> Vec<Value> {
    let v2 = crate::versions::autoscaler_to_v2(o.clone());
    let (spec, status) = (&v2["spec"], &v2["status"]);
    let target = &spec["scaleTargetRef"];
    vec![
        name(o),
        json!(format!("{}/{}", text(target, "kind"), text(target, "name"))),
        json!(metrics(list(spec, "metrics"), list(status, "currentMetrics"))),
        json!(spec["minReplicas"].as_i64().map_or_else(|| "<unset>".to_owned(), |n| n.to_string())),
        int(&spec["maxReplicas"]),
        int(&status["currentReplicas"]),
        age(o, now),
    ]
}

fn metrics(specs: &[Value], statuses: &[Value]) -> String {
    if specs.is_empty() {
        return "<none>".to_owned();
    }
    let shown: Vec<String> = specs
        .iter()
        .enumerate()
        .map(|(at, spec)| metric(spec, statuses.get(at).unwrap_or(&Value::Null)))
        .collect();
    let max = 2;
    let text = shown[..shown.len().min(max)].join(", ");
    if shown.len() > max { format!("{text} + {} more...", shown.len() - max) } else { text }
}

fn metric(spec: &Value, status: &Value) -> String {
    let amount = |v: &Value| v.as_str().unwrap_or("<unknown>").to_owned();
    let percent = |v: &Value, none: &str| v.as_i64().map_or_else(|| none.to_owned(), |n| format!("{n}%"));
    let (key, named) = match text(spec, "type") {
        "External" => ("external", false),
        "Object" => ("object", false),
        "Pods" => {
            return format!(
                "{}/{}",
                amount(&status["pods"]["current"]["averageValue"]),
                amount(&spec["pods"]["target"]["averageValue"])
            );
        }
        "Resource" => ("resource", true),
        "ContainerResource" => ("containerResource", true),
        _ => return "<unknown type>".to_owned(),
    };
    let (target, current) = (&spec[key]["target"], &status[key]["current"]);
    let average = !target["averageValue"].is_null();
    if named {
        let metric = text(&spec[key], "name");
        return if average {
            // A metric without a value prints as Go's nil.
            let now = match current["averageValue"].as_str() {
                None if status[key].is_object() => "<nil>".to_owned(),
                _ => amount(&current["averageValue"]),
            };
            format!("{metric}: {now}/{}", amount(&target["averageValue"]))
        } else {
            let (now, wanted) = (&current["averageUtilization"], &target["averageUtilization"]);
            format!("{metric}: {}/{}", percent(now, "<unknown>"), percent(wanted, "<auto>"))
        };
    }
    if average {
        format!("{}/{} (avg)", amount(&current["averageValue"]), amount(&target["averageValue"]))
    } else {
        format!("{}/{}", amount(&current["value"]), amount(&target["value"]))
    }
}
