//! Webhook configurations and API services.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::policy::{compiles, request_names};
use crate::field::{Errors, Path, is_set, list, text};
use crate::validate::common_rules::{self, label_selector, messages, subdomain};

pub(crate) fn validating_webhooks(errors: &mut Errors, object: &Value) {
    webhooks(errors, object, false);
}

pub(crate) fn mutating_webhooks(errors: &mut Errors, object: &Value) {
    webhooks(errors, object, true);
}

fn webhooks(errors: &mut Errors, object: &Value, mutating: bool) {
    let mut names = HashSet::new();
    for (at, hook) in list(object, "webhooks").iter().enumerate() {
        let path = Path::new("webhooks").index(at);
        webhook(errors, &path, hook, mutating);
        review_versions(errors, &path.child("admissionReviewVersions"), hook);
        let name = text(hook, "name");
        if !name.is_empty() && !names.insert(name) {
            errors.duplicate(&path.child("name"), name);
        }
    }
}

fn webhook(errors: &mut Errors, path: &Path, hook: &Value, mutating: bool) {
    fully_qualified(errors, &path.child("name"), text(hook, "name"));
    for (at, rule) in list(hook, "rules").iter().enumerate() {
        rule_with_operations(errors, &path.child("rules").index(at), rule);
    }
    errors.one_of(&path.child("failurePolicy"), text(hook, "failurePolicy"), &["Fail", "Ignore"]);
    errors.one_of(&path.child("matchPolicy"), text(hook, "matchPolicy"), &["Equivalent", "Exact"]);
    match hook["sideEffects"].as_str() {
        None => errors.required(&path.child("sideEffects"), "must specify one of None, NoneOnDryRun"),
        Some(effects) => errors.one_of(&path.child("sideEffects"), effects, &["None", "NoneOnDryRun"]),
    }
    if let Some(seconds) = hook["timeoutSeconds"].as_i64().filter(|s| !(1..=30).contains(s)) {
        let why = "the timeout value must be between 1 and 30 seconds";
        errors.invalid(&path.child("timeoutSeconds"), seconds, why);
    }
    label_selector(errors, &path.child("namespaceSelector"), &hook["namespaceSelector"]);
    label_selector(errors, &path.child("objectSelector"), &hook["objectSelector"]);
    if mutating {
        errors.one_of(
            &path.child("reinvocationPolicy"),
            text(hook, "reinvocationPolicy"),
            &["IfNeeded", "Never"],
        );
    }
    client(errors, &path.child("clientConfig"), &hook["clientConfig"]);
    match_conditions(errors, &path.child("matchConditions"), list(hook, "matchConditions"), &request_names());
}

pub(super) fn match_conditions(
    errors: &mut Errors,
    path: &Path,
    conditions: &[Value],
    known: &fl_cel::Declarations,
) {
    if conditions.len() > 64 {
        errors.too_many(path, conditions.len(), 64);
    }
    let mut names = HashSet::new();
    for (at, condition) in conditions.iter().enumerate() {
        let (path, name) = (path.index(at), text(condition, "name"));
        match text(condition, "expression").trim() {
            "" => errors.required(&path.child("expression"), ""),
            expression => {
                compiles(errors, &path.child("expression"), expression, known, &["bool"]);
            }
        }
        if name.is_empty() {
            errors.required(&path.child("name"), "");
        } else {
            errors.each_invalid(&path.child("name"), name, &messages(fl_types::check_qualified_name(name)));
        }
        if !name.is_empty() && !names.insert(name) {
            errors.duplicate(&path.child("name"), name);
        }
    }
}

pub(super) fn match_resources(errors: &mut Errors, path: &Path, matched: &Value) {
    if matched.is_null() {
        return;
    }
    errors.one_of(&path.child("matchPolicy"), text(matched, "matchPolicy"), &["Equivalent", "Exact"]);
    for key in ["namespaceSelector", "objectSelector"] {
        label_selector(errors, &path.child(key), &matched[key]);
    }
    for key in ["resourceRules", "excludeResourceRules"] {
        for (at, rule) in list(matched, key).iter().enumerate() {
            let path = path.child(key).index(at);
            let names = list(rule, "resourceNames");
            for (i, name) in names.iter().filter_map(Value::as_str).enumerate() {
                let path = path.child("resourceNames").index(i);
                errors.each_invalid(&path, name, &crate::name_validation::path_segment(name, false));
                if names[..i].iter().any(|other| other == name) {
                    errors.duplicate(&path, name);
                }
            }
            rule_with_operations(errors, &path, rule);
        }
    }
}

pub(crate) fn policy_binding(errors: &mut Errors, object: &Value) {
    let (path, spec) = (Path::new("spec"), &object["spec"]);
    match text(spec, "policyName") {
        "" => errors.required(&path.child("policyName"), ""),
        name => subdomain(errors, &path.child("policyName"), name),
    }
    parameters(errors, &path.child("paramRef"), &spec["paramRef"]);
    match_resources(errors, &path.child("matchResources"), &spec["matchResources"]);
    let (path, actions) = (path.child("validationActions"), list(spec, "validationActions"));
    for (at, action) in actions.iter().filter_map(Value::as_str).enumerate() {
        errors.one_of(&path.index(at), action, &["Audit", "Deny", "Warn"]);
        if actions[..at].iter().any(|other| other == action) {
            errors.duplicate(&path.index(at), action);
        }
    }
    if actions.iter().any(|a| a == "Deny") && actions.iter().any(|a| a == "Warn") {
        let why = "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)";
        errors.invalid(&path, spec["validationActions"].clone(), why);
    }
    if actions.is_empty() {
        errors.required(&path, "at least one validation action is required");
    }
}

fn parameters(errors: &mut Errors, path: &Path, parameters: &Value) {
    if parameters.is_null() {
        return;
    }
    const MUTUALLY_EXCLUSIVE: &str = "name and selector are mutually exclusive";
    let (name, selector) = (text(parameters, "name"), &parameters["selector"]);
    if !name.is_empty() {
        errors.each_invalid(&path.child("name"), name, &crate::name_validation::path_segment(name, false));
        if !selector.is_null() {
            errors.forbidden(&path.child("name"), MUTUALLY_EXCLUSIVE);
        }
    }
    if !selector.is_null() {
        label_selector(errors, &path.child("selector"), selector);
        if !name.is_empty() {
            errors.forbidden(&path.child("selector"), MUTUALLY_EXCLUSIVE);
        }
    }
    if name.is_empty() && selector.is_null() {
        errors.required(path, "one of name or selector must be specified");
    }
    match text(parameters, "parameterNotFoundAction") {
        "" => errors.required(&path.child("parameterNotFoundAction"), ""),
        action => errors.one_of(&path.child("parameterNotFoundAction"), action, &["Deny", "Allow"]),
    }
}

/// A name with at least three labels: `a.b.c`.
fn fully_qualified(errors: &mut Errors, path: &Path, name: &str) {
    if name.is_empty() {
        errors.required(path, "");
        return;
    }
    let found = messages(fl_types::check_dns1123_subdomain(name));
    if !found.is_empty() {
        errors.each_invalid(path, name, &found);
    } else if name.split('.').count() < 3 {
        errors.invalid(path, name, "should be a domain with at least three segments separated by dots");
    }
}

fn review_versions(errors: &mut Errors, path: &Path, hook: &Value) {
    let versions: Vec<&str> =
        list(hook, "admissionReviewVersions").iter().filter_map(Value::as_str).collect();
    if versions.is_empty() {
        errors.required(path, "must specify one of v1, v1beta1");
        return;
    }
    for (at, version) in versions.iter().enumerate() {
        if versions[..at].contains(version) {
            errors.invalid(&path.index(at), *version, "duplicate version");
            continue;
        }
        errors.each_invalid(&path.index(at), version, &messages(fl_types::check_dns1035_label(version)));
    }
    if !versions.iter().any(|v| matches!(*v, "v1" | "v1beta1")) {
        errors.invalid(path, json!(versions), "must include at least one of v1, v1beta1");
    }
}

fn rule_with_operations(errors: &mut Errors, path: &Path, rule: &Value) {
    let operations = list(rule, "operations");
    let at = path.child("operations");
    if operations.is_empty() {
        errors.required(&at, "");
    }
    if operations.len() > 1 && operations.iter().any(|o| o == "*") {
        errors.invalid(
            &at,
            rule["operations"].clone(),
            "if '*' is present, must not specify other operations",
        );
    }
    for (i, operation) in operations.iter().filter_map(Value::as_str).enumerate() {
        errors.one_of(&at.index(i), operation, &["*", "CONNECT", "CREATE", "DELETE", "UPDATE"]);
    }
    for (key, what) in [("apiGroups", "API groups"), ("apiVersions", "API versions")] {
        let values = list(rule, key);
        if values.is_empty() {
            errors.required(&path.child(key), "");
        }
        if values.len() > 1 && values.iter().any(|v| v == "*") {
            let why = format!("if '*' is present, must not specify other {what}");
            errors.invalid(&path.child(key), rule[key].clone(), why);
        }
        for (i, value) in values.iter().enumerate() {
            if key == "apiVersions" && value == "" {
                errors.required(&path.child(key).index(i), "");
            }
        }
    }
    rule_resources(errors, &path.child("resources"), rule);
    if let Some(scope) = rule["scope"].as_str() {
        errors.one_of(&path.child("scope"), scope, &["*", "Cluster", "Namespaced"]);
    }
}

fn rule_resources(errors: &mut Errors, path: &Path, rule: &Value) {
    let resources: Vec<&str> = list(rule, "resources").iter().filter_map(Value::as_str).collect();
    if resources.is_empty() {
        errors.required(path, "");
    }
    let (mut whole, mut sub_of_all) = (HashSet::new(), HashSet::new());
    let mut plain = false;
    for (at, resource) in resources.iter().enumerate() {
        let here = path.index(at);
        if resource.is_empty() {
            errors.required(&here, "");
            continue;
        }
        let Some((name, sub)) = resource.split_once('/') else {
            plain = *resource != "*";
            continue;
        };
        if whole.contains(name) {
            let why = format!("if '{name}/*' is present, must not specify {resource}");
            errors.invalid(&here, *resource, why);
        }
        if sub_of_all.contains(sub) {
            errors.invalid(&here, *resource, format!("if '*/{sub}' is present, must not specify {resource}"));
        }
        if sub == "*" {
            whole.insert(name);
        }
        if name == "*" {
            sub_of_all.insert(sub);
        }
    }
    if resources.len() > 1 && resources.contains(&"*/*") {
        errors.invalid(path, json!(resources), "if '*/*' is present, must not specify other resources");
    }
    if resources.contains(&"*") && plain {
        let why = "if '*' is present, must not specify other resources without subresources";
        errors.invalid(path, json!(resources), why);
    }
}

fn client(errors: &mut Errors, path: &Path, client: &Value) {
    match (client["url"].as_str(), is_set(client, "service")) {
        (Some(url), false) => {
            for (part, why) in fl_schema::webhook_url_errors(url) {
                errors.invalid(&path.child("url"), part, why);
            }
        }
        (None, true) => webhook_service(errors, &path.child("service"), &client["service"]),
        _ => errors.required(path, "exactly one of url or service is required"),
    }
}

/// Upstream swaps name and namespace here; the errors follow it.
fn webhook_service(errors: &mut Errors, path: &Path, service: &Value) {
    if text(service, "namespace").is_empty() {
        errors.required(&path.child("name"), "");
    }
    if text(service, "name").is_empty() {
        errors.required(&path.child("namespace"), "");
    }
    let port = service["port"].as_i64().unwrap_or(443);
    if !common_rules::is_port(port) {
        errors.invalid(&path.child("port"), port, format!("port is not valid: {}", common_rules::PORT_RANGE));
    }
    let url = text(service, "path");
    if url.is_empty() || url == "/" {
        return;
    }
    let at = path.child("path");
    if url == "//" {
        errors.invalid(&at, url, "segment[0] may not be empty");
        return;
    }
    if !url.starts_with('/') {
        errors.invalid(&at, url, "must start with a '/'");
    }
    // Upstream removes the first character, whatever it is, and continues.
    let rest: &str = url.char_indices().nth(1).map_or("", |(at, _)| &url[at..]);
    for (i, segment) in rest.strip_suffix('/').unwrap_or(rest).split('/').enumerate() {
        if segment.is_empty() {
            errors.invalid(&at, url, format!("segment[{i}] may not be empty"));
            continue;
        }
        for message in messages(fl_types::check_dns1123_subdomain(segment)) {
            errors.invalid(&at, url, format!("segment[{i}]: {message}"));
        }
    }
}

/// The decoded length of a base64 string.
fn decoded_len(text: &str) -> usize {
    text.len() / 4 * 3 - text.bytes().rev().take_while(|b| *b == b'=').count().min(2)
}

pub(crate) fn api_service(errors: &mut Errors, object: &Value) {
    let (path, spec) = (Path::new("spec"), &object["spec"]);
    let (group, version) = (text(spec, "group"), text(spec, "version"));
    let (name, wanted) = (text(&object["metadata"], "name"), format!("{version}.{group}"));
    if name != wanted {
        let why = format!("must be `spec.version+\".\"+spec.group`: {wanted:?}");
        errors.invalid(&Path::new("metadata.name"), name, why);
    }
    if group.is_empty() && version != "v1" {
        let why = "only v1 may have an empty group and it better be legacy kube";
        errors.required(&path.child("group"), why);
    }
    if !group.is_empty() {
        subdomain(errors, &path.child("group"), group);
    }
    errors.each_invalid(&path.child("version"), version, &messages(fl_types::check_dns1035_label(version)));
    for (key, max) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1_000)] {
        let priority = spec[key].as_i64().unwrap_or(0);
        if !(1..=max).contains(&priority) {
            errors.invalid(&path.child(key), priority, format!("must be positive and less than {max}"));
        }
    }
    let (service, insecure) = (&spec["service"], spec["insecureSkipTLSVerify"] == true);
    let bundle = text(spec, "caBundle");
    if service.is_null() {
        if !bundle.is_empty() {
            let why = "local APIServices may not have a caBundle";
            errors.invalid(&path.child("caBundle"), format!("{} bytes", decoded_len(bundle)), why);
        }
        if insecure {
            let why = "local APIServices may not have insecureSkipTLSVerify";
            errors.invalid(&path.child("insecureSkipTLSVerify"), true, why);
        }
        return;
    }
    for key in ["namespace", "name"] {
        if text(service, key).is_empty() {
            errors.required(&path.child("service").child(key), "");
        }
    }
    let port = service["port"].as_i64().unwrap_or(443);
    if !common_rules::is_port(port) {
        errors.invalid(
            &path.at("service.port"),
            port,
            format!("port is not valid: {}", common_rules::PORT_RANGE),
        );
    }
    if insecure && !bundle.is_empty() {
        errors.invalid(&path.child("insecureSkipTLSVerify"), true, "may not be true if caBundle is present");
    }
}
