//! API priority and fairness (FlowSchemas, PriorityLevelConfigurations) and RuntimeClasses.

use serde_json::{Value, json};

use super::scheduling::tolerations;
use crate::field::{Errors, Path, is_set, list, text};
use crate::validate::common_rules::{self, label, messages};
use crate::validate::resources::resource_requirements;

const VERBS: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

pub(crate) fn flow_schema(errors: &mut Errors, object: &Value) {
    let (path, spec) = (Path::new("spec"), &object["spec"]);
    let name = text(&object["metadata"], "name");
    let precedence = spec["matchingPrecedence"].as_i64().unwrap_or(0);
    let at = path.child("matchingPrecedence");
    if precedence <= 0 {
        errors.invalid(&at, precedence, "must be a positive value");
    }
    if precedence > 10_000 {
        errors.invalid(&at, precedence, "must not be greater than 10000");
    }
    if precedence == 1 && name != "exempt" {
        let why = "only the schema named 'exempt' may have matchingPrecedence 1";
        errors.invalid(&at, precedence, why);
    }
    if is_set(spec, "distinguisherMethod") {
        let method = text(&spec["distinguisherMethod"], "type");
        if !matches!(method, "ByNamespace" | "ByUser") {
            let at = path.at("distinguisherMethod.type");
            let shown = format!("{{\"Type\":{}}}", Value::from(method));
            errors.not_supported_printed(&at, shown, &["ByNamespace", "ByUser"]);
        }
    }
    let (level, at) =
        (text(&spec["priorityLevelConfiguration"], "name"), path.at("priorityLevelConfiguration.name"));
    if level.is_empty() {
        errors.required(&at, "must reference a priority level");
    } else {
        common_rules::subdomain(errors, &at, level);
    }
    for (i, rule) in list(spec, "rules").iter().enumerate() {
        let path = path.child("rules").index(i);
        if list(rule, "subjects").is_empty() {
            errors.required(&path.child("subjects"), "subjects must contain at least one value");
        }
        for (j, one) in list(rule, "subjects").iter().enumerate() {
            subject(errors, &path.child("subjects").index(j), one);
        }
        let (resources, urls) = (list(rule, "resourceRules"), list(rule, "nonResourceRules"));
        if resources.is_empty() && urls.is_empty() {
            let why = "at least one of resourceRules and nonResourceRules has to be non-empty";
            errors.required(&path, why);
        }
        for (j, one) in resources.iter().enumerate() {
            resource_rule(errors, &path.child("resourceRules").index(j), one);
        }
        for (j, one) in urls.iter().enumerate() {
            url_rule(errors, &path.child("nonResourceRules").index(j), one);
        }
    }
}

fn subject(errors: &mut Errors, path: &Path, subject: &Value) {
    const KINDS: &[(&str, &str)] =
        &[("ServiceAccount", "serviceAccount"), ("User", "user"), ("Group", "group")];
    let kind = text(subject, "kind");
    let Some((_, own)) = KINDS.iter().find(|(name, _)| *name == kind) else {
        errors.not_supported(&path.child("kind"), kind, &["Group", "ServiceAccount", "User"]);
        return;
    };
    let (at, held) = (path.child(own), &subject[*own]);
    if held.is_null() {
        errors.required(&at, format!("{own} is required when subject kind is '{kind}'"));
    } else {
        let name = text(held, "name");
        if name.is_empty() {
            errors.required(&at.child("name"), "");
        } else if kind == "ServiceAccount" && name != "*" {
            common_rules::subdomain(errors, &at.child("name"), name);
        }
        if kind == "ServiceAccount" {
            match text(held, "namespace") {
                "" => errors.required(&at.child("namespace"), "must specify namespace for service account"),
                namespace => label(errors, &at.child("namespace"), namespace),
            }
        }
    }
    for (name, key) in KINDS.iter().filter(|(name, key)| *name != kind && is_set(subject, key)) {
        errors.forbidden(&path.child(key), format!("{key} is forbidden when subject kind is not '{name}'"));
    }
}

fn verbs(errors: &mut Errors, path: &Path, rule: &Value) {
    let (path, found) = (path.child("verbs"), list(rule, "verbs"));
    if found.is_empty() {
        errors.required(&path, "verbs must contain at least one value");
    } else if found.iter().any(|verb| verb == "*") {
        wildcard_is_exclusive(errors, &path, &rule["verbs"], "verbs");
    } else if !found.iter().all(|verb| verb.as_str().is_some_and(|verb| VERBS.contains(&verb))) {
        errors.not_supported(&path, rule["verbs"].clone(), VERBS);
    }
}

/// A list with a wildcard has no other entries.
fn wildcard_is_exclusive(errors: &mut Errors, path: &Path, values: &Value, what: &str) {
    let all = values.as_array().map_or(&[][..], Vec::as_slice);
    if all.len() > 1 && all.iter().any(|value| value == "*") {
        errors.invalid(path, values.clone(), format!("if '*' is present, must not specify other {what}"));
    }
}

fn resource_rule(errors: &mut Errors, path: &Path, rule: &Value) {
    verbs(errors, path, rule);
    for (key, one, many) in [("apiGroups", "api group", "api groups"), ("resources", "resource", "resources")]
    {
        if list(rule, key).is_empty() {
            errors.required(&path.child(key), format!("resource rules must supply at least one {one}"));
        }
        wildcard_is_exclusive(errors, &path.child(key), &rule[key], many);
    }
    let (path, namespaces) = (path.child("namespaces"), list(rule, "namespaces"));
    if namespaces.is_empty() && rule["clusterScope"] != true {
        let why = "resource rules that are not cluster scoped must supply at least one namespace";
        errors.required(&path, why);
    } else if namespaces.iter().any(|name| name == "*") {
        wildcard_is_exclusive(errors, &path, &rule["namespaces"], "namespaces");
    } else {
        for (at, name) in namespaces.iter().filter_map(Value::as_str).enumerate() {
            for why in messages(fl_types::check_dns1123_label(name)) {
                let why = format!("each member of this list must be '*' or a DNS-1123 label; {why}");
                errors.invalid(&path.index(at), name, why);
            }
        }
    }
}

fn url_rule(errors: &mut Errors, path: &Path, rule: &Value) {
    verbs(errors, path, rule);
    let (path, urls) = (path.child("nonResourceURLs"), list(rule, "nonResourceURLs"));
    if urls.is_empty() {
        errors.required(&path, "nonResourceURLs must contain at least one value");
    } else if urls.iter().any(|url| url == "*") {
        wildcard_is_exclusive(errors, &path, &rule["nonResourceURLs"], "non-resource URLs");
    } else {
        for (at, url) in urls.iter().filter_map(Value::as_str).enumerate() {
            let stars = url.matches('*').count();
            let why = if url.is_empty() {
                "must not be empty"
            } else if !url.starts_with('/') {
                "must start with slash"
            } else if url.contains(' ') {
                "must not contain white-space"
            } else if url.contains("//") {
                "must not contain double slash"
            } else if stars > 1 || (stars == 1 && !url.ends_with("/*")) {
                "wildcard can only do suffix matching"
            } else {
                continue;
            };
            errors.invalid(&path.index(at), url, why);
        }
    }
}

pub(crate) fn priority_level(errors: &mut Errors, object: &Value) {
    let (path, spec) = (Path::new("spec"), &object["spec"]);
    let (name, kind) = (text(&object["metadata"], "name"), text(spec, "type"));
    if (name == "exempt") != (kind == "Exempt") {
        errors.invalid(&path.child("type"), kind, "must be 'Exempt' if and only if `name` is 'exempt'");
    }
    match kind {
        "Exempt" => {
            if is_set(spec, "limited") {
                errors.forbidden(&path.child("limited"), "must be nil if the type is not Limited");
            }
            shares(errors, &path.child("exempt"), &spec["exempt"]);
        }
        "Limited" => {
            if is_set(spec, "exempt") {
                errors.forbidden(&path.child("exempt"), "must be nil if the type is Limited");
            }
            if is_set(spec, "limited") {
                limited(errors, &path.child("limited"), &spec["limited"]);
            } else {
                errors.required(&path.child("limited"), "must not be empty when type is Limited");
            }
        }
        other => errors.not_supported(&path.child("type"), other, &["Exempt", "Limited"]),
    }
}

fn shares(errors: &mut Errors, path: &Path, level: &Value) {
    if let Some(shares) = level["nominalConcurrencyShares"].as_i64().filter(|n| *n < 0) {
        errors.invalid(&path.child("nominalConcurrencyShares"), shares, "must be a non-negative integer");
    }
    if let Some(percent) = level["lendablePercent"].as_i64().filter(|n| !(0..=100).contains(n)) {
        errors.invalid(&path.child("lendablePercent"), percent, "must be between 0 and 100, inclusive");
    }
}

fn limited(errors: &mut Errors, path: &Path, level: &Value) {
    shares(errors, path, level);
    let (at, response) = (path.child("limitResponse"), &level["limitResponse"]);
    match text(response, "type") {
        "Reject" if is_set(response, "queuing") => {
            let why = "must be nil if limited.limitResponse.type is not Limited";
            errors.forbidden(&at.child("queuing"), why);
        }
        "Reject" => {}
        "Queue" if is_set(response, "queuing") => {
            queuing(errors, &at.child("queuing"), &response["queuing"]);
        }
        "Queue" => {
            let why = "must not be empty if limited.limitResponse.type is Limited";
            errors.required(&at.child("queuing"), why);
        }
        other => errors.not_supported(&at.child("type"), other, &["Queue", "Reject"]),
    }
    if let Some(percent) = level["borrowingLimitPercent"].as_i64().filter(|n| *n < 0) {
        let why = "if specified, must be a non-negative integer";
        errors.invalid(&path.child("borrowingLimitPercent"), percent, why);
    }
}

fn queuing(errors: &mut Errors, path: &Path, queuing: &Value) {
    let number = |key: &str| queuing[key].as_i64().unwrap_or(0);
    let (length, queues, hand) = (number("queueLengthLimit"), number("queues"), number("handSize"));
    if length <= 0 {
        errors.invalid(&path.child("queueLengthLimit"), length, "must be positive");
    }
    if queues <= 0 {
        errors.invalid(&path.child("queues"), queues, "must be positive");
    } else if queues > 10_000_000 {
        errors.invalid(&path.child("queues"), queues, "must not be greater than 10000000");
    }
    let at = path.child("handSize");
    if hand <= 0 {
        errors.invalid(&at, hand, "must be positive");
    } else if hand > queues {
        errors.invalid(&at, hand, format!("should not be greater than queues ({queues})"));
    } else if entropy_bits(queues, hand) > 60 {
        let why = format!(
            "required entropy bits of deckSize {queues} and handSize {hand} should not be greater than 60"
        );
        errors.invalid(&at, hand, why);
    }
}

/// Bits of entropy that dealing a hand from a deck needs (shuffle sharding).
fn entropy_bits(deck: i64, hand: i64) -> u32 {
    ((deck as f64).log2() * hand as f64).ceil() as u32
}

pub(crate) fn runtime_class(errors: &mut Errors, object: &Value) {
    label(errors, &Path::new("handler"), text(object, "handler"));
    if is_set(object, "overhead") {
        let limits = json!({"limits": object["overhead"]["podFixed"]});
        resource_requirements(errors, &Path::new("overhead"), &limits);
    }
    let (path, scheduling) = (Path::new("scheduling"), &object["scheduling"]);
    common_rules::labels(errors, &path.child("nodeSelector"), &scheduling["nodeSelector"]);
    let held = list(scheduling, "tolerations");
    // Upstream has the name of the list twice.
    tolerations(errors, &path.at("tolerations.tolerations"), held);
    let key = |t: &Value| ["key", "operator", "value", "effect"].map(|name| text(t, name).to_owned());
    for (at, one) in held.iter().enumerate() {
        if held[..at].iter().any(|other| key(other) == key(one)) {
            errors.duplicate(&path.child("tolerations").index(at), one.clone());
        }
    }
}

pub(crate) fn runtime_class_update(errors: &mut Errors, new: &Value, old: &Value) {
    let handler = |object: &Value| json!(text(object, "handler"));
    errors.immutable(&Path::new("handler"), &handler(new), &handler(old));
}
