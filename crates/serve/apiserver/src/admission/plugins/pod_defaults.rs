//! Default admission plugins for pods: `Priority`, `LimitRanger`, `RuntimeClass`.

use std::collections::BTreeMap;

use fl_types::Quantity;
use serde_json::{Value, json};

use crate::object;
use crate::server::{Inner, Target};
use crate::status::{ApiError, ApiResult};

fn forbidden(target: &Target, name: &str, why: &str) -> ApiError {
    ApiError::forbidden(&target.rt, name, why)
}

pub(super) fn admit(inner: &Inner, target: &Target, object: &mut Value) -> ApiResult<()> {
    let name = object::name(object).to_owned();
    limits(inner, target, object, &name)?;
    priority(inner, object).map_err(|why| forbidden(target, &name, &why))?;
    runtime_class(inner, object).map_err(|why| forbidden(target, &name, &why))?;
    // Default resources may have changed the QoS class.
    let class = fl_builtin::qos_class(&object["spec"]);
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        status.insert("qosClass".to_owned(), json!(class));
    }
    Ok(())
}

/// Sets the priority from the priority class; a given number must match.
fn priority(inner: &Inner, object: &mut Value) -> Result<(), String> {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return Ok(()) };
    let class = spec.get("priorityClassName").and_then(Value::as_str).unwrap_or_default().to_owned();
    let classes = "scheduling.k8s.io/priorityclasses";
    let found = if class.is_empty() {
        let all = inner.store.list(classes, "", None, 0).1;
        let defaults = all.iter().map(|(_, e)| e.value()).filter(|c| c["globalDefault"] == true);
        defaults.min_by_key(|c| c["value"].as_i64().unwrap_or(0))
    } else {
        let entry = inner.store.latest(classes, &object::key("", &class));
        Some(entry.ok_or_else(|| format!("no PriorityClass with name {class} was found"))?.value())
    };
    let value = found.as_ref().and_then(|c| c["value"].as_i64()).unwrap_or(0);
    let policy =
        found.as_ref().and_then(|c| c["preemptionPolicy"].as_str()).unwrap_or("PreemptLowerPriority");
    if let (true, Some(default)) = (class.is_empty(), &found) {
        spec.insert("priorityClassName".to_owned(), json!(object::name(default)));
    }
    if let Some(given) = spec.get("priority").and_then(Value::as_i64).filter(|p| *p != value) {
        return Err(format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller computed {value} from the given PriorityClass name"
        ));
    }
    spec.insert("priority".to_owned(), json!(value));
    match spec.get("preemptionPolicy").and_then(Value::as_str) {
        Some(given) if given != policy => Err(format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission controller computed {policy} from the given PriorityClass name"
        )),
        _ => {
            spec.insert("preemptionPolicy".to_owned(), json!(policy));
            Ok(())
        }
    }
}

/// Sets the overhead of the runtime class, which must exist.
fn runtime_class(inner: &Inner, object: &mut Value) -> Result<(), String> {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return Ok(()) };
    let class = spec.get("runtimeClassName").and_then(Value::as_str).unwrap_or_default().to_owned();
    if class.is_empty() {
        if spec.get("overhead").is_some_and(|o| !o.is_null()) {
            let why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
            return Err(why.to_owned());
        }
        return Ok(());
    }
    let Some(found) = inner.store.latest("node.k8s.io/runtimeclasses", &object::key("", &class)) else {
        return Err(format!("pod rejected: RuntimeClass {class:?} not found"));
    };
    let overhead = found.value().pointer("/overhead/podFixed").cloned().unwrap_or_default();
    match spec.get("overhead") {
        Some(given) if !given.is_null() && *given != overhead => {
            Err("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead".to_owned())
        }
        _ if overhead.is_null() => Ok(()),
        _ => {
            spec.insert("overhead".to_owned(), overhead);
            Ok(())
        }
    }
}

pub(super) fn amount(value: &Value) -> Option<Quantity> {
    value.as_str().and_then(|text| text.parse().ok())
}

/// Applies the limit ranges of the namespace.
pub(super) fn limits(inner: &Inner, target: &Target, object: &mut Value, name: &str) -> ApiResult<()> {
    let prefix = format!("{}/", target.namespace);
    let ranges = inner.store.list("/limitranges", &prefix, None, 0).1;
    if ranges.is_empty() {
        return Ok(());
    }
    let rules: Vec<Value> = ranges
        .iter()
        .flat_map(|(_, e)| {
            e.value().pointer("/spec/limits").and_then(Value::as_array).cloned().unwrap_or_default()
        })
        .collect();
    let said = set_defaults(object, &rules);
    if !said.is_empty() {
        let text = format!("LimitRanger plugin set: {}", said.join("; "));
        if let Some(annotations) = annotations(object) {
            annotations.insert("kubernetes.io/limit-ranger".to_owned(), json!(text));
        }
    }
    let mut wrong = Vec::new();
    for rule in &rules {
        match rule["type"].as_str() {
            Some("Container") => {
                for container in containers(object) {
                    check(&mut wrong, rule, "Container", &container["resources"]);
                }
            }
            Some("Pod") => check(&mut wrong, rule, "Pod", &total(object)),
            _ => {}
        }
    }
    match wrong.as_slice() {
        [] => Ok(()),
        [one] => Err(forbidden(target, name, one)),
        many => Err(forbidden(target, name, &format!("[{}]", many.join(", ")))),
    }
}

fn annotations(object: &mut Value) -> Option<&mut serde_json::Map<String, Value>> {
    let metadata = object.get_mut("metadata")?.as_object_mut()?;
    metadata.entry("annotations").or_insert_with(|| json!({})).as_object_mut()
}

pub(super) fn containers(object: &Value) -> Vec<&Value> {
    let list = |pointer: &str| object.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
    list("/spec/containers").chain(list("/spec/initContainers")).collect()
}

/// Sets default resources of containers; returns the annotations that describe them.
fn set_defaults(object: &mut Value, rules: &[Value]) -> Vec<String> {
    let mut defaults: [BTreeMap<String, Value>; 2] = [BTreeMap::new(), BTreeMap::new()];
    for rule in rules.iter().filter(|r| r["type"] == "Container") {
        for (at, key) in ["defaultRequest", "default"].iter().enumerate() {
            for (name, value) in rule[*key].as_object().into_iter().flatten() {
                defaults[at].insert(name.clone(), value.clone());
            }
        }
    }
    let mut said = Vec::new();
    for (list, word) in [("containers", "container"), ("initContainers", "init container")] {
        let found = object.pointer_mut(&format!("/spec/{list}")).and_then(Value::as_array_mut);
        for container in found.into_iter().flatten() {
            let name = container["name"].as_str().unwrap_or_default().to_owned();
            for (at, (key, what)) in [("requests", "request"), ("limits", "limit")].iter().enumerate() {
                let mut names = Vec::new();
                for (resource, value) in &defaults[at] {
                    let Some(resources) = container
                        .as_object_mut()
                        .and_then(|c| c.entry("resources").or_insert_with(|| json!({})).as_object_mut())
                        .and_then(|r| r.entry(*key).or_insert_with(|| json!({})).as_object_mut())
                    else {
                        continue;
                    };
                    if !resources.contains_key(resource) {
                        resources.insert(resource.clone(), value.clone());
                        names.push(resource.clone());
                    }
                }
                if !names.is_empty() {
                    said.push(format!("{} {what} for {word} {name}", names.join(", ")));
                }
            }
        }
    }
    said
}

type Amounts = BTreeMap<String, Quantity>;

fn add(to: &mut Amounts, more: &Amounts) {
    for (name, value) in more {
        let sum = to.get(name).map_or_else(|| value.clone(), |held| held.plus(value));
        to.insert(name.clone(), sum);
    }
}

fn at_least(to: &mut Amounts, other: &Amounts) {
    for (name, value) in other {
        if to.get(name).is_none_or(|held| held < value) {
            to.insert(name.clone(), value.clone());
        }
    }
}

/// The resources of a pod: the sum of its containers, at least the maximum of its init containers.
pub(super) fn total(object: &Value) -> Value {
    let mut out = json!({"requests": {}, "limits": {}});
    for key in ["requests", "limits"] {
        let of = |container: &Value| -> Amounts {
            let held = container["resources"][key].as_object().into_iter().flatten();
            held.filter_map(|(name, value)| Some((name.clone(), amount(value)?))).collect()
        };
        let list = |pointer: &str| object.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
        let (mut sum, mut sidecars, mut starting) = (Amounts::new(), Amounts::new(), Amounts::new());
        for container in list("/spec/containers") {
            add(&mut sum, &of(container));
        }
        for container in list("/spec/initContainers") {
            let mut now = of(container);
            if container["restartPolicy"] == "Always" {
                add(&mut sum, &now);
                add(&mut sidecars, &now);
                now.clone_from(&sidecars);
            } else {
                add(&mut now, &sidecars);
            }
            at_least(&mut starting, &now);
        }
        at_least(&mut sum, &starting);
        for name in ["cpu", "memory"] {
            if let Some(own) = amount(&object["spec"]["resources"][key][name]) {
                sum.insert(name.to_owned(), own);
            }
        }
        for (name, quantity) in sum {
            out[key][name] = json!(quantity.to_string());
        }
    }
    out
}

/// Checks resources against one rule; reports the first error of each resource.
fn check(wrong: &mut Vec<String>, rule: &Value, what: &str, resources: &Value) {
    let get = |key: &str, name: &str| amount(&resources[key][name]);
    for (name, bound) in rule["min"].as_object().into_iter().flatten() {
        let Some(least) = amount(bound) else { continue };
        let usage = format!("minimum {name} usage per {what} is {least}");
        match (get("requests", name), get("limits", name)) {
            (None, _) => wrong.push(format!("{usage}.  No request is specified")),
            (Some(request), _) if request < least => wrong.push(format!("{usage}, but request is {request}")),
            (_, Some(limit)) if limit < least => wrong.push(format!("{usage}, but limit is {limit}")),
            _ => {}
        }
    }
    for (name, bound) in rule["max"].as_object().into_iter().flatten() {
        let Some(most) = amount(bound) else { continue };
        let usage = format!("maximum {name} usage per {what} is {most}");
        match (get("requests", name), get("limits", name)) {
            (_, None) => wrong.push(format!("{usage}.  No limit is specified")),
            (_, Some(limit)) if limit > most => wrong.push(format!("{usage}, but limit is {limit}")),
            (Some(request), _) if request > most => wrong.push(format!("{usage}, but request is {request}")),
            _ => {}
        }
    }
    for (name, bound) in rule["maxLimitRequestRatio"].as_object().into_iter().flatten() {
        let Some(most) = amount(bound) else { continue };
        let ratio = format!("{name} max limit to request ratio per {what} is {most}");
        let milli = |quantity: Quantity| quantity.milli_value().filter(|value| *value != 0);
        let Some(request) = get("requests", name).and_then(milli) else {
            wrong.push(format!("{ratio}, but no request is specified or request is 0"));
            continue;
        };
        let Some(limit) = get("limits", name).and_then(milli) else {
            wrong.push(format!("{ratio}, but no limit is specified or limit is 0"));
            continue;
        };
        let (given, allowed) =
            (limit as f64 / request as f64, most.milli_value().unwrap_or(i64::MAX) as f64 / 1000.0);
        if given > allowed {
            wrong.push(format!("{ratio}, but provided ratio is {given:.6}"));
        }
    }
}
