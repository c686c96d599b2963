//! Defaults of the smaller groups.

use serde_json::{Value, json};

use super::{Object, child, put, put_pointer, text};

const RBAC: &str = "rbac.authorization.k8s.io";

pub(super) fn apply(ty: &str, map: &mut Object) {
    match ty {
        "networking.v1.NetworkPolicyPort" => put_pointer(map, "protocol", "TCP"),
        "networking.v1.NetworkPolicy" => {
            let spec = child(map, "spec");
            let egress = spec.get("egress").and_then(Value::as_array).is_some_and(|e| !e.is_empty());
            put(spec, "policyTypes", if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) });
        }
        "networking.v1.IngressClass" => {
            if let Some(parameters) = child(map, "spec").get_mut("parameters").and_then(Value::as_object_mut)
            {
                put_pointer(parameters, "scope", "Cluster");
            }
        }
        "rbac.v1.ClusterRoleBinding" | "rbac.v1.RoleBinding" => put(child(map, "roleRef"), "apiGroup", RBAC),
        "rbac.v1.Subject" => {
            if matches!(text(map, "kind"), "User" | "Group") {
                put(map, "apiGroup", RBAC);
            }
        }
        "storage.v1.StorageClass" => {
            put_pointer(map, "reclaimPolicy", "Delete");
            put_pointer(map, "volumeBindingMode", "Immediate");
        }
        "storage.v1.CSIDriver" => {
            let spec = child(map, "spec");
            put_pointer(spec, "attachRequired", true);
            for field in ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"] {
                put_pointer(spec, field, false);
            }
            put_pointer(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
            put(spec, "volumeLifecycleModes", json!(["Persistent"]));
        }
        "admissionregistration.v1.ValidatingWebhook" | "admissionregistration.v1.MutatingWebhook" => {
            put_pointer(map, "failurePolicy", "Fail");
            put_pointer(map, "matchPolicy", "Equivalent");
            put_pointer(map, "namespaceSelector", json!({}));
            put_pointer(map, "objectSelector", json!({}));
            put_pointer(map, "timeoutSeconds", 10);
            if ty.ends_with("MutatingWebhook") {
                put_pointer(map, "reinvocationPolicy", "Never");
            }
        }
        "admissionregistration.v1.RuleWithOperations"
        | "admissionregistration.v1.NamedRuleWithOperations" => {
            put_pointer(map, "scope", "*");
        }
        "admissionregistration.v1.ValidatingAdmissionPolicySpec" => put_pointer(map, "failurePolicy", "Fail"),
        "admissionregistration.v1.MatchResources" => {
            put_pointer(map, "matchPolicy", "Equivalent");
            put_pointer(map, "namespaceSelector", json!({}));
            put_pointer(map, "objectSelector", json!({}));
        }
        "scheduling.v1.PriorityClass" => put_pointer(map, "preemptionPolicy", "PreemptLowerPriority"),
        "discovery.v1.EndpointPort" => {
            put_pointer(map, "name", "");
            put_pointer(map, "protocol", "TCP");
        }
        "flowcontrol.v1.FlowSchemaSpec" => put(map, "matchingPrecedence", 1000),
        "flowcontrol.v1.ExemptPriorityLevelConfiguration" => {
            put_pointer(map, "nominalConcurrencyShares", 0);
            put_pointer(map, "lendablePercent", 0);
        }
        "flowcontrol.v1.LimitedPriorityLevelConfiguration" => {
            put_pointer(map, "nominalConcurrencyShares", 30);
            put_pointer(map, "lendablePercent", 0);
        }
        "flowcontrol.v1.QueuingConfiguration" => {
            put(map, "handSize", 8);
            put(map, "queues", 64);
            put(map, "queueLengthLimit", 50);
        }
        "resource.v1.ExactDeviceRequest" | "resource.v1.DeviceSubRequest" => {
            put(map, "allocationMode", "ExactCount");
            if text(map, "allocationMode") == "ExactCount" {
                put(map, "count", 1);
            }
        }
        // Service references of webhooks, API services and conversions share one default.
        _ if ty.ends_with(".ServiceReference") => put_pointer(map, "port", 443),
        _ if ty.ends_with(".v1.CustomResourceDefinition") => custom_resource_definition(map),
        _ => {}
    }
}

fn custom_resource_definition(map: &mut Object) {
    let spec = child(map, "spec");
    let storage = spec
        .get("versions")
        .and_then(Value::as_array)
        .and_then(|versions| versions.iter().find(|v| v["storage"] == true))
        .map(|v| v["name"].clone());
    let names = child(spec, "names");
    let kind = text(names, "kind").to_owned();
    put(names, "singular", kind.to_lowercase());
    if !kind.is_empty() {
        put(names, "listKind", format!("{kind}List"));
    }
    put_pointer(spec, "conversion", json!({"strategy": "None"}));
    if let Some(storage) = storage {
        put(child(map, "status"), "storedVersions", json!([storage]));
    }
}
