//! Usage of the resources that quotas limit.

use std::collections::BTreeMap;

use fl_types::{Format, Quantity};
use serde_json::{Value, json};

use super::super::pod_defaults;
use crate::resource_type::ResourceType;
use crate::server::Inner;

pub(super) type Amounts = BTreeMap<String, Quantity>;

/// Total usage of a quota in its namespace. Resources that no type has usage of are left out.
pub(crate) fn total(inner: &Inner, quota: &Value) -> BTreeMap<String, String> {
    let prefix = format!("{}/", crate::object::namespace(quota));
    let hard: Vec<&String> =
        quota["spec"]["hard"].as_object().into_iter().flatten().map(|(k, _)| k).collect();
    let scopes: Vec<Value> = scopes(quota).collect();
    let mut used = Amounts::new();
    for rt in inner.registry().stored().iter().filter(|rt| rt.namespaced) {
        let measured: Vec<&&String> = hard.iter().filter(|name| is_measured(rt, name)).collect();
        if measured.is_empty() {
            continue;
        }
        for name in &measured {
            used.entry((**name).clone()).or_insert_with(|| one(0));
        }
        for (_, entry) in inner.store.list(&rt.storage.prefix, &prefix, None, 0).1 {
            let object = entry.value();
            if !scopes.iter().all(|scope| is_in_scope(rt, &object, scope)) {
                continue;
            }
            for (name, amount) in usage(rt, &object) {
                if let Some(sum) = used.get_mut(&name) {
                    *sum = sum.plus(&amount);
                }
            }
        }
    }
    used.into_iter().map(|(name, amount)| (name, amount.to_string())).collect()
}

/// The tables whose objects count towards a quota.
pub(crate) fn tables(inner: &Inner, quota: &Value) -> Vec<String> {
    let hard = || quota["spec"]["hard"].as_object().into_iter().flatten();
    let types = inner.registry().stored();
    let counted = types.iter().filter(|rt| rt.namespaced && hard().any(|(name, _)| is_measured(rt, name)));
    counted.map(|rt| rt.storage.prefix.to_string()).collect()
}

/// Whether a pod has terminated: then it only counts as an object.
fn is_over(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
}

/// The resource name under which objects of a type are counted.
fn count_name(rt: &ResourceType) -> String {
    let (group, plural) = (&rt.group, &rt.plural);
    if group.is_empty() { format!("count/{plural}") } else { format!("count/{plural}.{group}") }
}

/// Whether objects of a type can have usage of a resource.
pub(super) fn is_measured(rt: &ResourceType, resource: &str) -> bool {
    if resource == count_name(rt) {
        return true;
    }
    let plural = rt.plural.as_str();
    match (rt.group.as_str(), plural) {
        ("", "pods") => {
            let asked = resource.strip_prefix("requests.").or_else(|| resource.strip_prefix("limits."));
            matches!(resource, "pods" | "cpu" | "memory" | "ephemeral-storage")
                || resource.starts_with("hugepages-")
                || asked.is_some_and(|name| name != "storage")
        }
        ("", "services") => {
            matches!(resource, "services" | "services.nodeports" | "services.loadbalancers")
        }
        ("", "persistentvolumeclaims") => {
            matches!(resource, "persistentvolumeclaims" | "requests.storage")
                || resource.contains(".storageclass.storage.k8s.io/")
        }
        ("", "configmaps" | "secrets" | "resourcequotas" | "replicationcontrollers") => resource == plural,
        _ => false,
    }
}

pub(super) fn one(number: usize) -> Quantity {
    Quantity::new(i64::try_from(number).unwrap_or(i64::MAX), Format::DecimalSi)
}

pub(super) fn usage(rt: &ResourceType, object: &Value) -> Amounts {
    let plural = rt.plural.as_str();
    let mut out = Amounts::from([(count_name(rt), one(1))]);
    if !rt.group.is_empty() {
        return out;
    }
    match plural {
        "configmaps" | "secrets" | "resourcequotas" | "replicationcontrollers" => {
            out.insert(plural.to_owned(), one(1));
        }
        "services" => services(object, &mut out),
        "persistentvolumeclaims" => claims(object, &mut out),
        "pods" => {
            if is_over(object) {
                return out;
            }
            out.insert("pods".to_owned(), one(1));
            let total = pod_defaults::total(object);
            for (name, amount) in compute(&total) {
                out.insert(name, amount);
            }
        }
        _ => {}
    }
    out
}

fn services(object: &Value, out: &mut Amounts) {
    let ports = object["spec"]["ports"].as_array().map_or(&[][..], Vec::as_slice);
    let open = match object["spec"]["type"].as_str() {
        Some("NodePort") => ports.len(),
        Some("LoadBalancer") if object["spec"]["allocateLoadBalancerNodePorts"] != false => ports.len(),
        Some("LoadBalancer") => ports.iter().filter(|p| p["nodePort"].as_i64().unwrap_or(0) != 0).count(),
        _ => 0,
    };
    out.insert("services".to_owned(), one(1));
    out.insert("services.nodeports".to_owned(), one(open));
    let balanced = usize::from(object["spec"]["type"] == "LoadBalancer");
    out.insert("services.loadbalancers".to_owned(), one(balanced));
}

fn claims(object: &Value, out: &mut Amounts) {
    let size = pod_defaults::amount(&object["spec"]["resources"]["requests"]["storage"]);
    let class = object["spec"]["storageClassName"].as_str().unwrap_or_default();
    let mut put = |name: String, amount: Option<Quantity>| {
        if let Some(amount) = amount {
            out.insert(name, amount);
        }
    };
    put("persistentvolumeclaims".to_owned(), Some(one(1)));
    put("requests.storage".to_owned(), size.clone());
    if !class.is_empty() {
        let of_class = format!("{class}.storageclass.storage.k8s.io");
        put(format!("{of_class}/persistentvolumeclaims"), Some(one(1)));
        put(format!("{of_class}/requests.storage"), size);
    }
}

/// Requests and limits under the resource names of quotas.
pub(super) fn compute(resources: &Value) -> Amounts {
    let mut out = Amounts::new();
    for (key, prefix) in [("requests", "requests."), ("limits", "limits.")] {
        for (name, value) in resources[key].as_object().into_iter().flatten() {
            let Some(amount) = pod_defaults::amount(value) else { continue };
            let plain = matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage");
            if key == "limits" && !plain {
                continue;
            }
            if key == "requests" && (plain || name.starts_with("hugepages-")) {
                out.insert(name.clone(), amount.clone());
            }
            out.insert(format!("{prefix}{name}"), amount);
        }
    }
    out
}

/// The scopes of a quota, all in the form of a selector.
pub(super) fn scopes(quota: &Value) -> impl Iterator<Item = Value> + '_ {
    let spec = &quota["spec"];
    let plain = spec["scopes"].as_array().into_iter().flatten();
    let selected = spec["scopeSelector"]["matchExpressions"].as_array().into_iter().flatten();
    plain.map(|name| json!({"scopeName": name, "operator": "Exists"})).chain(selected.cloned())
}

pub(super) fn is_in_scope(rt: &ResourceType, object: &Value, scope: &Value) -> bool {
    let values = || scope["values"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let selects = |value: &str| match scope["operator"].as_str() {
        Some("In") => values().any(|v| v == value),
        Some("NotIn") => values().all(|v| v != value),
        Some("DoesNotExist") => value.is_empty(),
        _ => !value.is_empty(),
    };
    let (spec, name) = (&object["spec"], scope["scopeName"].as_str().unwrap_or_default());
    match (rt.group.as_str(), rt.plural.as_str()) {
        ("", "persistentvolumeclaims") if name == "VolumeAttributesClass" => {
            selects(spec["volumeAttributesClassName"].as_str().unwrap_or_default())
        }
        ("", "pods") => {
            let ends = spec["activeDeadlineSeconds"].as_i64().is_some_and(|seconds| seconds >= 0);
            let asks_nothing = fl_builtin::qos_class(spec) == "BestEffort";
            match name {
                "Terminating" => ends,
                "NotTerminating" => !ends,
                "BestEffort" => asks_nothing,
                "NotBestEffort" => !asks_nothing,
                "PriorityClass" => selects(spec["priorityClassName"].as_str().unwrap_or_default()),
                "CrossNamespacePodAffinity" => looks_beyond(spec),
                _ => false,
            }
        }
        _ => false,
    }
}

/// Whether the affinity of a pod selects other namespaces.
fn looks_beyond(spec: &Value) -> bool {
    let terms = |kind: &str| -> Vec<Value> {
        let rules = &spec["affinity"][kind];
        let hard = rules["requiredDuringSchedulingIgnoredDuringExecution"].as_array().into_iter().flatten();
        let soft = rules["preferredDuringSchedulingIgnoredDuringExecution"].as_array().into_iter().flatten();
        hard.cloned().chain(soft.map(|term| term["podAffinityTerm"].clone())).collect()
    };
    ["podAffinity", "podAntiAffinity"].iter().flat_map(|kind| terms(kind)).any(|term| {
        term["namespaces"].as_array().is_some_and(|list| !list.is_empty())
            || term["namespaceSelector"].is_object()
    })
}
