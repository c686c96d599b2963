//! Tables of access control, storage, admission and the other cluster-wide kinds.

use serde_json::{Value, json};

use super::{Printer, age, int, name, or};
use crate::field::{is_set, list, text};

pub(super) fn printer(group: &str, kind: &str) -> Option<&'static Printer> {
    Some(match (group, kind) {
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => {
            &Printer { columns: "Name@|Role|Age|+Users|+Groups|+ServiceAccounts", cells: binding }
        }
        ("storage.k8s.io", "StorageClass") => &Printer {
            columns: "Name@|Provisioner|ReclaimPolicy|VolumeBindingMode|AllowVolumeExpansion|Age",
            cells: storage_class,
        },
        ("storage.k8s.io", "VolumeAttributesClass") => &Printer {
            columns: "Name@|DriverName|Age",
            cells: |o, now| {
                vec![
                    default_name(o, "storageclass.kubernetes.io/is-default-class"),
                    json!(text(o, "driverName")),
                    age(o, now),
                ]
            },
        },
        ("storage.k8s.io", "VolumeAttachment") => &Printer {
            columns: "Name@|Attacher@|PV|Node|Attached?|Age",
            cells: |o, now| {
                let spec = &o["spec"];
                vec![
                    name(o),
                    json!(text(spec, "attacher")),
                    json!(text(&spec["source"], "persistentVolumeName")),
                    json!(text(spec, "nodeName")),
                    json!(o["status"]["attached"] == true),
                    age(o, now),
                ]
            },
        },
        ("storage.k8s.io", "CSINode") => &Printer {
            columns: "Name@|Drivers#|Age",
            cells: |o, now| vec![name(o), json!(list(&o["spec"], "drivers").len()), age(o, now)],
        },
        ("storage.k8s.io", "CSIDriver") => &Printer {
            columns: "Name@|AttachRequired?|PodInfoOnMount?|StorageCapacity?|TokenRequests|RequiresRepublish?|Modes|Age",
            cells: csi_driver,
        },
        ("scheduling.k8s.io", "PriorityClass") => &Printer {
            columns: "Name@|Value#|Global-Default?|Age|PreemptionPolicy",
            cells: |o, now| {
                vec![
                    name(o),
                    int(&o["value"]),
                    json!(o["globalDefault"] == true),
                    age(o, now),
                    json!(text(o, "preemptionPolicy")),
                ]
            },
        },
        ("node.k8s.io", "RuntimeClass") => &Printer {
            columns: "Name@|Handler|Age",
            cells: |o, now| vec![name(o), json!(text(o, "handler")), age(o, now)],
        },
        (
            "admissionregistration.k8s.io",
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration",
        ) => &Printer {
            columns: "Name@|Webhooks#|Age",
            cells: |o, now| vec![name(o), json!(list(o, "webhooks").len()), age(o, now)],
        },
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy") => &Printer {
            columns: "Name@|Validations#|ParamKind|Age",
            cells: |o, now| {
                let kind = &o["spec"]["paramKind"];
                let shown = if kind.is_null() {
                    "<unset>".to_owned()
                } else {
                    format!("{}/{}", text(kind, "apiVersion"), text(kind, "kind"))
                };
                vec![name(o), json!(list(&o["spec"], "validations").len()), json!(shown), age(o, now)]
            },
        },
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding") => &Printer {
            columns: "Name@|PolicyName|ParamRef|Age",
            cells: |o, now| {
                let reference = &o["spec"]["paramRef"];
                let shown = match (text(reference, "namespace"), text(reference, "name")) {
                    (_, "") => "<unset>".to_owned(),
                    ("", name) => format!("*/{name}"),
                    (namespace, name) => format!("{namespace}/{name}"),
                };
                vec![name(o), json!(text(&o["spec"], "policyName")), json!(shown), age(o, now)]
            },
        },
        ("flowcontrol.apiserver.k8s.io", "FlowSchema") => &Printer {
            columns: "Name@|PriorityLevel|MatchingPrecedence|DistinguisherMethod|Age|MissingPL",
            cells: flow_schema,
        },
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration") => &Printer {
            columns: "Name@|Type|NominalConcurrencyShares|Queues|HandSize|QueueLengthLimit|Age",
            cells: priority_level,
        },
        ("certificates.k8s.io", "CertificateSigningRequest") => &Printer {
            columns: "Name@|Age|SignerName|Requestor|RequestedDuration|Condition",
            cells: signing_request,
        },
        ("apiregistration.k8s.io", "APIService") => {
            &Printer { columns: "Name@|Service|Available|Age", cells: api_service }
        }
        ("resource.k8s.io", "DeviceClass" | "ResourceClaimTemplate") => {
            &Printer { columns: "Name@|Age", cells: |o, now| vec![name(o), age(o, now)] }
        }
        ("resource.k8s.io", "ResourceClaim") => &Printer {
            columns: "Name@|State|Age",
            cells: |o, now| {
                let deleted = is_set(&o["metadata"], "deletionTimestamp");
                let mut states = Vec::new();
                if deleted {
                    states.push("deleted");
                }
                if !is_set(&o["status"], "allocation") {
                    if !deleted {
                        states.push("pending");
                    }
                } else {
                    states.push("allocated");
                    if !list(&o["status"], "reservedFor").is_empty() {
                        states.push("reserved");
                    }
                }
                vec![name(o), json!(states.join(",")), age(o, now)]
            },
        },
        ("resource.k8s.io", "ResourceSlice") => &Printer {
            columns: "Name@|Node|Driver|Pool|Age",
            cells: |o, now| {
                let spec = &o["spec"];
                let part = |v: &Value, key: &str| json!(text(v, key));
                vec![
                    name(o),
                    part(spec, "nodeName"),
                    part(spec, "driver"),
                    part(&spec["pool"], "name"),
                    age(o, now),
                ]
            },
        },
        _ => return None,
    })
}

fn binding(o: &Value, now: i64) -> Vec<Value> {
    let role = &o["roleRef"];
    let subjects = |kind: &str| {
        let names: Vec<String> = list(o, "subjects")
            .iter()
            .filter(|s| text(s, "kind") == kind)
            .map(|s| match (kind, text(s, "namespace")) {
                ("ServiceAccount", namespace) if !namespace.is_empty() => {
                    format!("{namespace}/{}", text(s, "name"))
                }
                _ => text(s, "name").to_owned(),
            })
            .collect();
        json!(names.join(", "))
    };
    vec![
        name(o),
        json!(format!("{}/{}", text(role, "kind"), text(role, "name"))),
        age(o, now),
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ]
}

fn default_name(o: &Value, annotation: &str) -> Value {
    let annotations = &o["metadata"]["annotations"];
    let default = annotations[annotation] == "true"
        || annotations[annotation.replace("storageclass.", "storageclass.beta.")] == "true";
    let name = text(&o["metadata"], "name");
    json!(if default { format!("{name} (default)") } else { name.to_owned() })
}

fn storage_class(o: &Value, now: i64) -> Vec<Value> {
    vec![
        default_name(o, "storageclass.kubernetes.io/is-default-class"),
        json!(text(o, "provisioner")),
        or(&o["reclaimPolicy"], "Delete"),
        or(&o["volumeBindingMode"], "Immediate"),
        json!(o["allowVolumeExpansion"] == true),
        age(o, now),
    ]
}

fn csi_driver(o: &Value, now: i64) -> Vec<Value> {
    let spec = &o["spec"];
    let modes: Vec<&str> = list(spec, "volumeLifecycleModes").iter().filter_map(Value::as_str).collect();
    let audiences: Vec<&str> = list(spec, "tokenRequests").iter().map(|t| text(t, "audience")).collect();
    vec![
        name(o),
        json!(spec["attachRequired"] != false),
        json!(spec["podInfoOnMount"] == true),
        json!(spec["storageCapacity"] == true),
        json!(if spec["tokenRequests"].is_null() { "<unset>".to_owned() } else { audiences.join(",") }),
        json!(spec["requiresRepublish"] == true),
        json!(if modes.is_empty() { "<none>".to_owned() } else { modes.join(",") }),
        age(o, now),
    ]
}

fn flow_schema(o: &Value, now: i64) -> Vec<Value> {
    let spec = &o["spec"];
    let dangling = list(&o["status"], "conditions").iter().find(|c| c["type"] == "Dangling");
    vec![
        name(o),
        json!(text(&spec["priorityLevelConfiguration"], "name")),
        int(&spec["matchingPrecedence"]),
        or(&spec["distinguisherMethod"]["type"], "<none>"),
        age(o, now),
        json!(dangling.map_or("?", |c| text(c, "status"))),
    ]
}

fn priority_level(o: &Value, now: i64) -> Vec<Value> {
    let limited = &o["spec"]["limited"];
    let queuing = &limited["limitResponse"]["queuing"];
    let or_none = |v: &Value| if v.is_null() { json!("<none>") } else { v.clone() };
    vec![
        name(o),
        json!(text(&o["spec"], "type")),
        or_none(&limited["nominalConcurrencyShares"]),
        or_none(&queuing["queues"]),
        or_none(&queuing["handSize"]),
        or_none(&queuing["queueLengthLimit"]),
        age(o, now),
    ]
}

fn signing_request(o: &Value, now: i64) -> Vec<Value> {
    let (spec, status) = (&o["spec"], &o["status"]);
    let has = |kind: &str| list(status, "conditions").iter().any(|c| c["type"] == kind);
    let mut state = if has("Denied") {
        "Denied"
    } else if has("Approved") {
        "Approved"
    } else {
        "Pending"
    }
    .to_owned();
    if has("Failed") {
        state.push_str(",Failed");
    }
    if !text(status, "certificate").is_empty() {
        state.push_str(",Issued");
    }
    let duration =
        spec["expirationSeconds"].as_i64().map_or_else(|| "<none>".to_owned(), super::human_duration);
    vec![
        name(o),
        age(o, now),
        or(&spec["signerName"], "<none>"),
        json!(text(spec, "username")),
        json!(duration),
        json!(state),
    ]
}

fn api_service(o: &Value, now: i64) -> Vec<Value> {
    let service = &o["spec"]["service"];
    let shown = if service.is_null() {
        "Local".to_owned()
    } else {
        format!("{}/{}", text(service, "namespace"), text(service, "name"))
    };
    let condition = list(&o["status"], "conditions").iter().find(|c| c["type"] == "Available");
    let available = match condition.map(|c| text(c, "status")) {
        Some("True") => "True".to_owned(),
        Some(status) => format!("{status} ({})", condition.map_or("", |c| text(c, "reason"))),
        None => "Unknown".to_owned(),
    };
    vec![name(o), json!(shown), json!(available), age(o, now)]
}
