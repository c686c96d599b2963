//! ConfigMaps, Secrets, quotas, limits, namespaces.

use base64::Engine as _;
use serde_json::{Value, json};

use crate::field::{Errors, Path, entries, is_set, list, text};
use crate::validate::common_rules::{self, config_key};
use crate::validate::ip;
use crate::validate::resources::{self, quantity};

/// The limit of the total size of a ConfigMap or Secret.
const MAX_SIZE: usize = 1024 * 1024;

fn decoded(value: &Value) -> Vec<u8> {
    base64::engine::general_purpose::STANDARD.decode(value.as_str().unwrap_or_default()).unwrap_or_default()
}

pub(crate) fn config_map(errors: &mut Errors, object: &Value) {
    let mut size = 0;
    let path = |key: &str| Path::new("data").key(key);
    for (key, value) in entries(object, "data") {
        let wrong = config_key(key);
        if !wrong.is_empty() {
            errors.each_invalid(&path(key), key, &wrong);
        }
        if is_set(&object["binaryData"], key) {
            errors.invalid(&path(key), key, "duplicate of key present in binaryData");
        }
        size += value.as_str().map_or(0, str::len);
    }
    for (key, value) in entries(object, "binaryData") {
        errors.each_invalid(&Path::new("binaryData").key(key), key, &config_key(key));
        size += decoded(value).len();
    }
    if size > MAX_SIZE {
        // Upstream prints the path of the whole object this way.
        errors.too_long(&Path::new("[]"), MAX_SIZE);
    }
}

pub(crate) fn config_map_update(errors: &mut Errors, new: &Value, old: &Value) {
    immutable_data(errors, new, old, &["data", "binaryData"]);
}

/// Rejects changes of the data of an object with `immutable: true`, and of that field.
fn immutable_data(errors: &mut Errors, new: &Value, old: &Value, fields: &[&str]) {
    if old["immutable"] != true {
        return;
    }
    let why = "field is immutable when `immutable` is set";
    if new["immutable"] != true {
        errors.forbidden(&Path::new("immutable"), why);
    }
    for field in fields {
        if new[*field] != old[*field] {
            errors.forbidden(&Path::new(field), why);
        }
    }
}

pub(crate) fn secret(errors: &mut Errors, object: &Value) {
    let path = Path::new("data");
    let mut size = 0;
    for (key, value) in entries(object, "data") {
        errors.each_invalid(&path.key(key), key, &config_key(key));
        size += decoded(value).len();
    }
    if size > MAX_SIZE {
        errors.too_long(&path, MAX_SIZE);
    }
    let data = &object["data"];
    let has = |key: &str| is_set(data, key);
    match text(object, "type") {
        "kubernetes.io/service-account-token" => {
            const KEY: &str = "kubernetes.io/service-account.name";
            if text(&object["metadata"]["annotations"], KEY).is_empty() {
                errors.required(&Path::new("metadata.annotations").key(KEY), "");
            }
        }
        "kubernetes.io/dockercfg" => docker_config(errors, &path, data, ".dockercfg"),
        "kubernetes.io/dockerconfigjson" => docker_config(errors, &path, data, ".dockerconfigjson"),
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            errors.required(&path.key("username"), "");
            errors.required(&path.key("password"), "");
        }
        "kubernetes.io/ssh-auth" if decoded(&data["ssh-privatekey"]).is_empty() => {
            errors.required(&path.key("ssh-privatekey"), "");
        }
        "kubernetes.io/tls" => {
            for key in ["tls.crt", "tls.key"] {
                if !has(key) {
                    errors.required(&path.key(key), "");
                }
            }
        }
        _ => {}
    }
}

fn docker_config(errors: &mut Errors, path: &Path, data: &Value, key: &str) {
    let Some(encoded) = data.get(key) else {
        errors.required(&path.key(key), "");
        return;
    };
    if let Err(why) = go_json(&decoded(encoded)) {
        errors.invalid(&path.key(key), "<secret contents redacted>", why);
    }
}

/// Go's error for text that is not a JSON object.
fn go_json(bytes: &[u8]) -> Result<(), String> {
    match serde_json::from_slice::<Value>(bytes) {
        Ok(Value::Object(_) | Value::Null) => Ok(()),
        Ok(other) => {
            let kind = match other {
                Value::Bool(_) => "bool",
                Value::Number(_) => "number",
                Value::String(_) => "string",
                _ => "array",
            };
            Err(format!("json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"))
        }
        Err(_) => Err(fl_go::json_syntax_error(bytes)),
    }
}

pub(crate) fn namespace(errors: &mut Errors, object: &Value) {
    let path = Path::new("spec.finalizers");
    for name in list(&object["spec"], "finalizers").iter().filter_map(Value::as_str) {
        let found = common_rules::messages(fl_types::check_qualified_name(name));
        errors.each_invalid(&path, name, &found);
        let standard = ["kubernetes", "orphan", "foregroundDeletion"].contains(&name);
        if !standard && !name.contains('/') {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            errors.invalid(&path, name, why);
        }
    }
}

pub(crate) fn node(errors: &mut Errors, object: &Value) {
    let path = Path::new("metadata.taints");
    let mut seen = std::collections::HashSet::new();
    for (at, taint) in list(&object["spec"], "taints").iter().enumerate() {
        let path = path.index(at);
        let (key, effect) = (text(taint, "key"), text(taint, "effect"));
        common_rules::qualified_name(errors, &path.child("key"), key);
        let found = common_rules::messages(fl_types::check_label_value(text(taint, "value")));
        if !found.is_empty() {
            errors.invalid(&path.child("value"), text(taint, "value"), found.join(";"));
        }
        match effect {
            "" => errors.required(&path.child("effect"), ""),
            _ => {
                errors.one_of(
                    &path.child("effect"),
                    effect,
                    &["NoSchedule", "PreferNoSchedule", "NoExecute"],
                );
            }
        }
        if !seen.insert((key, effect)) {
            errors.push(fl_schema::FieldError {
                kind: fl_schema::FieldErrorKind::Duplicate,
                field: path.as_str().to_owned(),
                value: Some(format!(
                    "{{\"Key\":{},\"Value\":{},\"Effect\":{},\"TimeAdded\":{}}}",
                    json!(key),
                    json!(text(taint, "value")),
                    json!(effect),
                    taint["timeAdded"]
                )),
                detail: "taints must be unique by key and effect pair".to_owned(),
            });
        }
    }
    for (at, range) in list(&object["spec"], "podCIDRs").iter().filter_map(Value::as_str).enumerate() {
        ip::cidr(errors, &Path::new("spec.podCIDRs").index(at), range);
    }
}

pub(crate) fn secret_update(errors: &mut Errors, new: &Value, old: &Value) {
    errors.immutable(&Path::new("type"), &new["type"], &old["type"]);
    immutable_data(errors, new, old, &["data"]);
}

pub(crate) fn namespace_status(errors: &mut Errors, new: &Value, _old: &Value) {
    let phase = text(&new["status"], "phase");
    let deleting = is_set(&new["metadata"], "deletionTimestamp");
    if !deleting && phase != "Active" {
        errors.invalid(
            &Path::new("status.Phase"),
            phase,
            "may only be 'Active' if `deletionTimestamp` is empty",
        );
    } else if deleting && phase != "Terminating" {
        let why = "may only be 'Terminating' if `deletionTimestamp` is not empty";
        errors.invalid(&Path::new("status.Phase"), phase, why);
    }
}

fn is_quota_name(name: &str) -> bool {
    const STANDARD: &[&str] = &[
        "cpu",
        "memory",
        "ephemeral-storage",
        "requests.cpu",
        "requests.memory",
        "requests.storage",
        "requests.ephemeral-storage",
        "limits.cpu",
        "limits.memory",
        "limits.ephemeral-storage",
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    ];
    STANDARD.contains(&name) || name.starts_with("hugepages-") || name.starts_with("requests.hugepages-")
}

pub(crate) fn resource_quota(errors: &mut Errors, object: &Value) {
    let (path, spec) = (Path::new("spec"), &object["spec"]);
    for (name, amount) in entries(spec, "hard") {
        let path = path.child("hard").key(name);
        resources::resource_name(errors, &path, name);
        if !name.contains('/') && !is_quota_name(name) {
            errors.invalid(&path, name, "must be a standard resource for quota");
        }
        resources::resource_amount(errors, &path, name, amount);
    }
    scopes(errors, &path.child("scopes"), spec);
    for expression in list(&spec["scopeSelector"], "matchExpressions") {
        let path = path.at("scopeSelector.matchExpressions");
        let values = list(expression, "values");
        let (scope, operator) = (text(expression, "scopeName"), text(expression, "operator"));
        if !KNOWN_SCOPES.contains(&scope) {
            errors.invalid(&path.child("scopeName"), scope, "unsupported scope");
        }
        if !matches!(scope, "PriorityClass" | "VolumeAttributesClass")
            && KNOWN_SCOPES.contains(&scope)
            && operator != "Exists"
        {
            let why = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
            errors.invalid(&path.child("operator"), operator, why);
        }
        match text(expression, "operator") {
            "In" | "NotIn" if values.is_empty() => errors.required(
                &path.child("values"),
                "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
            ),
            "Exists" | "DoesNotExist" if !values.is_empty() => errors.invalid(
                &path.child("values"),
                expression["values"].clone(),
                "must be no value when `operator` is 'Exists' or 'DoesNotExist' for scope selector",
            ),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => errors.invalid(&path.child("operator"), other, "not a valid selector operator"),
        }
    }
}

const KNOWN_SCOPES: &[&str] = &[
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
];

fn scopes(errors: &mut Errors, path: &Path, spec: &Value) {
    let scopes: Vec<&str> = list(spec, "scopes").iter().filter_map(Value::as_str).collect();
    for scope in &scopes {
        if !KNOWN_SCOPES.contains(scope) {
            errors.invalid(path, json!(scopes), "unsupported scope");
        }
        for (name, _) in entries(spec, "hard") {
            let pods_only = *scope == "BestEffort" && name != "pods";
            let not_pods =
                matches!(*scope, "Terminating" | "NotTerminating" | "NotBestEffort" | "PriorityClass")
                    && is_quota_name(name)
                    && !is_pod_quota(name);
            if (pods_only && is_quota_name(name)) || not_pods {
                errors.invalid(path, json!(scopes), "unsupported scope applied to resource");
            }
        }
    }
    for pair in [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]] {
        if pair.iter().all(|scope| scopes.contains(scope)) {
            errors.invalid(path, json!(scopes), "conflicting scopes");
        }
    }
}

fn is_pod_quota(name: &str) -> bool {
    matches!(
        name,
        "pods"
            | "cpu"
            | "memory"
            | "requests.cpu"
            | "requests.memory"
            | "limits.cpu"
            | "limits.memory"
            | "ephemeral-storage"
            | "requests.ephemeral-storage"
            | "limits.ephemeral-storage"
    ) || name.contains("hugepages-")
}

pub(crate) fn resource_quota_update(errors: &mut Errors, new: &Value, old: &Value) {
    let set = |object: &Value| {
        let mut scopes: Vec<String> =
            list(&object["spec"], "scopes").iter().filter_map(Value::as_str).map(str::to_owned).collect();
        scopes.sort();
        scopes
    };
    if set(new) != set(old) {
        errors.invalid(&Path::new("spec.scopes"), new["spec"]["scopes"].clone(), "field is immutable");
    }
}

pub(crate) fn limit_range(errors: &mut Errors, object: &Value) {
    let path = Path::new("spec.limits");
    let mut seen = Vec::new();
    for (at, limit) in list(&object["spec"], "limits").iter().enumerate() {
        let path = path.index(at);
        let kind = text(limit, "type");
        let before = errors.0.len();
        common_rules::qualified_name(errors, &path.child("type"), kind);
        if errors.0.len() == before
            && !kind.contains('/')
            && !matches!(kind, "Pod" | "Container" | "PersistentVolumeClaim")
        {
            errors.invalid(&path.child("type"), kind, "must be a standard limit type or fully qualified");
        }
        if seen.contains(&kind) {
            errors.duplicate(&path.child("type"), kind);
        }
        seen.push(kind);
        if kind == "Pod" {
            for key in ["default", "defaultRequest"] {
                if !entries(limit, key).is_empty() {
                    errors.forbidden(&path.child(key), "may not be specified when `type` is 'Pod'");
                }
            }
        }
        let storage = |key: &str| is_set(&limit[key], "storage");
        if kind == "PersistentVolumeClaim" && !storage("min") && !storage("max") {
            let why = "either minimum or maximum storage value is required, but neither was provided";
            errors.required(&path.child("limits"), why);
        }
        limit_amounts(errors, &path, limit);
    }
}

fn limit_amounts(errors: &mut Errors, path: &Path, limit: &Value) {
    for key in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
        for (name, _) in entries(limit, key) {
            let path = path.child(key).key(name);
            match text(limit, "type") {
                "Pod" if key.starts_with("default") => {}
                "Pod" | "Container" => resources::container_resource_name(errors, &path, name),
                _ => {
                    resources::resource_name(errors, &path, name);
                }
            }
        }
    }
    let mut names: Vec<&str> = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"]
        .iter()
        .flat_map(|key| entries(limit, key))
        .map(|(name, _)| name)
        .collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let amount = |key: &str| quantity(&limit[key][name]);
        let mut compare = |low: &str, high: &str, at: &str, shown: &str, words: (&str, &str)| {
            if let (Some(small), Some(big)) = (amount(low), amount(high))
                && small > big
            {
                let why = format!("{} {small} is greater than {} {big}", words.0, words.1);
                errors.invalid(&path.child(at).key(name), limit[shown][name].clone(), why);
            }
        };
        compare("min", "max", "min", "min", ("min value", "max value"));
        compare(
            "min",
            "defaultRequest",
            "defaultRequest",
            "defaultRequest",
            ("min value", "default request value"),
        );
        compare(
            "defaultRequest",
            "max",
            "defaultRequest",
            "defaultRequest",
            ("default request value", "max value"),
        );
        compare(
            "defaultRequest",
            "default",
            "defaultRequest",
            "defaultRequest",
            ("default request value", "default limit value"),
        );
        compare("min", "default", "default", "min", ("min value", "default value"));
        compare("default", "max", "default", "max", ("default value", "max value"));
        if let Some(ratio) = amount("maxLimitRequestRatio")
            && ratio < fl_types::Quantity::new(1, fl_types::Format::DecimalSi)
        {
            let why = format!("ratio {ratio} is less than 1");
            let value = limit["maxLimitRequestRatio"][name].clone();
            errors.invalid(&path.child("maxLimitRequestRatio").key(name), value, why);
        }
        if let (Some(ratio), Some(min), Some(max)) =
            (amount("maxLimitRequestRatio"), amount("min"), amount("max"))
            && ratio.as_f64() > max.as_f64() / min.as_f64()
        {
            let most = max.as_f64() / min.as_f64();
            let why = format!("ratio {ratio} is greater than max/min = {most:.6}");
            let value = limit["maxLimitRequestRatio"][name].clone();
            errors.invalid(&path.child("maxLimitRequestRatio").key(name), value, why);
        }
    }
}
