//! Resource quotas: what an object takes must fit into what the quotas of its namespace have left.
//!
//! As upstream, the limits are those of a quota's status: who writes them there is not the server.

use std::collections::BTreeMap;
use std::sync::Arc;

use fl_types::{Format, Quantity};
use serde_json::{Value, json};

use super::pods;
use crate::server::{Inner, Target};
use crate::status::{ApiError, Outcome};
use crate::store::{Change, Expect, StoreError};

const TABLE: &str = "/resourcequotas";

type Amounts = BTreeMap<String, Quantity>;

/// Takes what an object needs from the quotas of its namespace, or says which of them it does not fit into.
pub(crate) async fn charge(
    inner: &Arc<Inner>,
    target: &Target,
    object: &Value,
    old: Option<&Value>,
    dry_run: bool,
) -> Outcome<()> {
    if !target.rt.namespaced || !is_counted(target, old.is_some()) {
        return Ok(());
    }
    let quotas = inner.store.list(TABLE, &format!("{}/", target.namespace), None, 0).1;
    if quotas.is_empty() {
        return Ok(());
    }
    let taken = taken(target, object, old);
    let mut concerned = Vec::new();
    for (key, entry) in quotas {
        if fit(target, object, &entry.value(), &taken)?.is_some() {
            concerned.push(key);
        }
    }
    let exists = old.is_none() && inner.store.latest(target.table(), &target.key()).is_some();
    if dry_run || exists {
        return Ok(());
    }
    for key in concerned {
        // Others take from the same quota: what was left may be gone by now.
        while let Some(entry) = inner.store.latest(TABLE, &key) {
            let mut quota = entry.value();
            let Some(used) = fit(target, object, &quota, &taken)? else { break };
            quota["status"]["used"] = used;
            match inner.store.commit(TABLE, &key, Expect::Revision(entry.revision), Change::Put(quota)).await
            {
                Ok(_) => break,
                Err(StoreError::Conflict) => {}
                Err(other) => return Err(other.into()),
            }
        }
    }
    Ok(())
}

/// Whether a write of this kind can take anything.
fn is_counted(target: &Target, update: bool) -> bool {
    let resizable = target.rt.group.is_empty()
        && matches!(
            (target.rt.plural.as_str(), target.subresource.as_str()),
            ("services" | "persistentvolumeclaims", "") | ("pods", "resize")
        );
    if update { resizable } else { target.subresource.is_empty() }
}

/// The name under which the objects of a type are counted.
fn count_name(target: &Target) -> String {
    let (group, plural) = (&target.rt.group, &target.rt.plural);
    if group.is_empty() { format!("count/{plural}") } else { format!("count/{plural}.{group}") }
}

/// Whether objects of a type take of a resource at all.
fn is_measured(target: &Target, resource: &str) -> bool {
    if resource == count_name(target) {
        return true;
    }
    let plural = target.rt.plural.as_str();
    match (target.rt.group.as_str(), plural) {
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

fn one(number: usize) -> Quantity {
    Quantity::new(i64::try_from(number).unwrap_or(i64::MAX), Format::DecimalSi)
}

/// What an object takes, or for a change, what it takes more than before.
fn taken(target: &Target, object: &Value, old: Option<&Value>) -> Amounts {
    let mut now = usage(target, object);
    if let Some(old) = old {
        for (name, before) in usage(target, old) {
            let left = now.get(&name).map_or_else(|| one(0).minus(&before), |held| held.minus(&before));
            now.insert(name, left);
        }
    }
    now.retain(|_, amount| amount.sign() != std::cmp::Ordering::Equal);
    now
}

fn usage(target: &Target, object: &Value) -> Amounts {
    let plural = target.rt.plural.as_str();
    let mut out = Amounts::from([(count_name(target), one(1))]);
    if !target.rt.group.is_empty() {
        return out;
    }
    match plural {
        "configmaps" | "secrets" | "resourcequotas" | "replicationcontrollers" => {
            out.insert(plural.to_owned(), one(1));
        }
        "services" => services(object, &mut out),
        "persistentvolumeclaims" => claims(object, &mut out),
        "pods" => {
            out.insert("pods".to_owned(), one(1));
            let total = pods::total(object);
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
    let size = pods::amount(&object["spec"]["resources"]["requests"]["storage"]);
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

/// Requests and limits under the names of quotas.
fn compute(resources: &Value) -> Amounts {
    let mut out = Amounts::new();
    for (key, prefix) in [("requests", "requests."), ("limits", "limits.")] {
        for (name, value) in resources[key].as_object().into_iter().flatten() {
            let Some(amount) = pods::amount(value) else { continue };
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

/// The new usage of a quota that the object takes from; `None` when it has nothing to do with it.
fn fit(target: &Target, object: &Value, quota: &Value, taken: &Amounts) -> Outcome<Option<Value>> {
    let amounts = |field: &str| -> Amounts {
        let held = quota["status"][field].as_object().into_iter().flatten();
        held.filter_map(|(name, value)| Some((name.clone(), pods::amount(value)?))).collect()
    };
    let (hard, mut used) = (amounts("hard"), amounts("used"));
    let measured: Vec<&String> = hard.keys().filter(|name| is_measured(target, name)).collect();
    if measured.is_empty() || !scopes(quota).all(|scope| is_in_scope(target, object, &scope)) {
        return Ok(None);
    }
    let name = crate::object::name(quota);
    let forbidden = |why: String| {
        let of = crate::object::name(object);
        let of = if of.is_empty() { &target.name } else { of };
        Err(ApiError::forbidden(&target.rt, of, &why))
    };
    let missing = unspecified(target, object, &measured);
    if !missing.is_empty() {
        return forbidden(format!("failed quota: {name}: must specify {}", missing.join("; ")));
    }
    if measured.iter().any(|resource| !used.contains_key(*resource)) {
        let all: Vec<&str> = measured.iter().map(|m| m.as_str()).collect();
        return forbidden(format!("status unknown for quota: {name}, resources: {}", all.join(",")));
    }
    let mut exceeded: [Vec<String>; 3] = Default::default();
    for (resource, more) in taken.iter().filter(|(resource, _)| hard.contains_key(*resource)) {
        let before = used.get(resource).cloned().unwrap_or_else(|| one(0));
        let sum = before.plus(more);
        if sum > hard[resource] {
            for (list, amount) in exceeded.iter_mut().zip([more, &before, &hard[resource]]) {
                list.push(format!("{resource}={amount}"));
            }
        }
        used.insert(resource.clone(), sum);
    }
    let [requested, held, limited] = exceeded.map(|list| list.join(","));
    if !requested.is_empty() {
        return forbidden(format!(
            "exceeded quota: {name}, requested: {requested}, used: {held}, limited: {limited}"
        ));
    }
    let used: BTreeMap<&String, String> = used.iter().map(|(k, v)| (k, v.to_string())).collect();
    Ok(Some(json!(used)))
}

/// A quota of processor time or memory makes every container say what it takes.
fn unspecified(target: &Target, object: &Value, measured: &[&String]) -> Vec<String> {
    if !target.rt.group.is_empty() || target.rt.plural != "pods" {
        return Vec::new();
    }
    let mut out = Vec::new();
    for resource in measured {
        let plain = resource.strip_prefix("requests.").or_else(|| resource.strip_prefix("limits."));
        if !matches!(plain.unwrap_or(resource), "cpu" | "memory") {
            continue;
        }
        let without: Vec<&str> = pods::containers(object)
            .into_iter()
            .filter(|container| !compute(&container["resources"]).contains_key(*resource))
            .filter_map(|container| container["name"].as_str())
            .collect();
        if !without.is_empty() {
            out.push(format!("{resource} for: {}", without.join(",")));
        }
    }
    out
}

/// The scopes of a quota, all in the form of a selector.
fn scopes(quota: &Value) -> impl Iterator<Item = Value> + '_ {
    let spec = &quota["spec"];
    let plain = spec["scopes"].as_array().into_iter().flatten();
    let selected = spec["scopeSelector"]["matchExpressions"].as_array().into_iter().flatten();
    plain.map(|name| json!({"scopeName": name, "operator": "Exists"})).chain(selected.cloned())
}

fn is_in_scope(target: &Target, object: &Value, scope: &Value) -> bool {
    let values = || scope["values"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let selects = |value: &str| match scope["operator"].as_str() {
        Some("In") => values().any(|v| v == value),
        Some("NotIn") => values().all(|v| v != value),
        Some("DoesNotExist") => value.is_empty(),
        _ => !value.is_empty(),
    };
    let (spec, name) = (&object["spec"], scope["scopeName"].as_str().unwrap_or_default());
    match (target.rt.group.as_str(), target.rt.plural.as_str()) {
        ("", "persistentvolumeclaims") if name == "VolumeAttributesClass" => {
            selects(spec["volumeAttributesClassName"].as_str().unwrap_or_default())
        }
        ("", "pods") => {
            let ends = spec["activeDeadlineSeconds"].as_i64().is_some_and(|seconds| seconds >= 0);
            let asks_nothing = crate::builtin::qos_class(spec) == "BestEffort";
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

/// Whether a pod's affinity speaks of other namespaces.
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
