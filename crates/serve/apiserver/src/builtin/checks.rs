//! Checks that many kinds share, with Kubernetes' texts.

use std::net::IpAddr;

use fl_types::{LabelSelector, NameError, Quantity, Selector};
use serde_json::Value;

pub(super) use super::diff::unified_diff;
use super::field::{Errors, Path, entries, list, text};

/// The complaints of a name check, none when it passed.
pub(super) fn messages(result: Result<(), NameError>) -> Vec<String> {
    result.err().map(|error| error.messages().to_vec()).unwrap_or_default()
}

pub(super) fn label(errors: &mut Errors, path: &Path, value: &str) {
    errors.each_invalid(path, value, &messages(fl_types::check_dns1123_label(value)));
}

pub(super) fn subdomain(errors: &mut Errors, path: &Path, value: &str) {
    errors.each_invalid(path, value, &messages(fl_types::check_dns1123_subdomain(value)));
}

/// Like [`subdomain`], with underscores: search paths of resolvers.
pub(super) fn search_path(errors: &mut Errors, path: &Path, value: &str) {
    let lower = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let good = |part: &str| {
        let part = part.strip_prefix('_').unwrap_or(part).as_bytes();
        part.first().is_some_and(|b| lower(*b))
            && part.last().is_some_and(|b| lower(*b))
            && part.iter().all(|b| lower(*b) || b"-_".contains(b))
    };
    if value.len() > 253 {
        errors.invalid(path, value, "must be no more than 253 characters");
    }
    if !value.split('.').all(good) {
        let why = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')";
        errors.invalid(path, value, why);
    }
}

pub(super) fn qualified_name(errors: &mut Errors, path: &Path, value: &str) {
    errors.each_invalid(path, value, &messages(fl_types::check_qualified_name(value)));
}

/// A map of labels.
pub(super) fn labels(errors: &mut Errors, path: &Path, map: &Value) {
    for (key, value) in map.as_object().into_iter().flatten() {
        qualified_name(errors, path, key);
        let value = value.as_str().unwrap_or_default();
        errors.each_invalid(path, value, &messages(fl_types::check_label_value(value)));
    }
}

/// Annotations of something embedded.
pub(super) fn annotations(errors: &mut Errors, path: &Path, map: &Value) {
    for key in map.as_object().into_iter().flatten().map(|(key, _)| key) {
        errors.each_invalid(path, key, &messages(fl_types::check_qualified_name(&key.to_lowercase())));
    }
}

/// A label selector; absent is fine.
pub(super) fn label_selector(errors: &mut Errors, path: &Path, selector: &Value) {
    labels(errors, &path.child("matchLabels"), &selector["matchLabels"]);
    for (at, expression) in list(selector, "matchExpressions").iter().enumerate() {
        let path = path.child("matchExpressions").index(at);
        let values = list(expression, "values");
        match text(expression, "operator") {
            "In" | "NotIn" if values.is_empty() => {
                errors
                    .required(&path.child("values"), "must be specified when `operator` is 'In' or 'NotIn'");
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.forbidden(&path.child("values"), why);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => errors.invalid(&path.child("operator"), other, "not a valid selector operator"),
        }
        qualified_name(errors, &path.child("key"), text(expression, "key"));
        for (i, value) in values.iter().filter_map(Value::as_str).enumerate() {
            let found = messages(fl_types::check_label_value(value));
            errors.each_invalid(&path.child("values").index(i), value, &found);
        }
    }
}

/// The selector to match with: nothing for an absent one, an error for one that cannot be.
pub(super) fn to_selector(value: &Value) -> Result<Selector, ()> {
    if value.is_null() {
        return Ok(Selector::nothing());
    }
    serde_json::from_value::<LabelSelector>(value.clone())
        .map_err(|_| ())
        .and_then(|selector| selector.to_selector().map_err(|_| ()))
}

pub(super) fn selects(selector: &Selector, labels: &Value) -> bool {
    selector.matches(|key| labels[key].as_str())
}

/// A selector as upstream prints it in messages: Go's field order.
pub(super) fn print_selector(selector: &Value) -> String {
    if selector.is_null() {
        return "null".to_owned();
    }
    let mut parts = Vec::new();
    if selector["matchLabels"].is_object() {
        parts.push(format!("\"matchLabels\":{}", selector["matchLabels"]));
    }
    let expressions: Vec<String> = list(selector, "matchExpressions")
        .iter()
        .map(|e| {
            let values =
                if e["values"].is_null() { String::new() } else { format!(",\"values\":{}", e["values"]) };
            format!("{{\"key\":{},\"operator\":{}{values}}}", e["key"], e["operator"])
        })
        .collect();
    if !expressions.is_empty() {
        parts.push(format!("\"matchExpressions\":[{}]", expressions.join(",")));
    }
    format!("{{{}}}", parts.join(","))
}

pub(super) const PORT_RANGE: &str = "must be between 1 and 65535, inclusive";

pub(super) fn is_port(number: i64) -> bool {
    (1..=65535).contains(&number)
}

pub(super) fn port(errors: &mut Errors, path: &Path, value: &Value) {
    let number = value.as_i64().unwrap_or(0);
    if !is_port(number) {
        errors.invalid(path, number, PORT_RANGE);
    }
}

/// What is wrong with the name of a port.
pub(super) fn port_name(name: &str) -> Vec<String> {
    let mut found = Vec::new();
    if name.len() > 15 {
        found.push("must be no more than 15 characters".to_owned());
    }
    if !name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-') || name.is_empty() {
        found.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !name.bytes().any(|b| b.is_ascii_lowercase()) {
        found.push("must contain at least one letter (a-z)".to_owned());
    }
    if name.contains("--") {
        found.push("must not contain consecutive hyphens".to_owned());
    }
    if name.starts_with('-') || name.ends_with('-') {
        found.push("must not begin or end with a hyphen".to_owned());
    }
    found
}

/// A port by number or name.
pub(super) fn port_or_name(errors: &mut Errors, path: &Path, value: &Value) {
    match value {
        Value::String(name) => errors.each_invalid(path, name, &port_name(name)),
        other => port(errors, path, other),
    }
}

/// The percentage of an int-or-string, if it is one.
pub(super) fn percent(value: &Value) -> Option<i64> {
    let digits = value.as_str()?.strip_suffix('%')?;
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

/// The number of an int-or-string, percentages without their sign.
pub(super) fn int_or_percent(value: &Value) -> i64 {
    percent(value).or_else(|| value.as_i64()).unwrap_or(0)
}

pub(super) fn positive_int_or_percent(errors: &mut Errors, path: &Path, value: &Value) {
    match value {
        Value::String(text) if percent(value).is_none() => {
            let why = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
            errors.invalid(path, text.as_str(), why);
        }
        Value::Number(_) => errors.non_negative(path, value),
        _ => {}
    }
}

pub(super) fn at_most_100_percent(errors: &mut Errors, path: &Path, value: &Value) {
    if percent(value).is_some_and(|p| p > 100) {
        errors.invalid(path, value.clone(), "must not be greater than 100%");
    }
}

/// The key of a ConfigMap or Secret.
pub(super) fn config_key(key: &str) -> Vec<String> {
    let mut found = Vec::new();
    if key.len() > 253 {
        found.push("must be no more than 253 characters".to_owned());
    }
    if key.is_empty() || !key.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b)) {
        found.push("a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')".to_owned());
    }
    match key {
        "." => found.push("must not be '.'".to_owned()),
        ".." => found.push("must not be '..'".to_owned()),
        other if other.starts_with("..") => found.push("must not start with '..'".to_owned()),
        _ => {}
    }
    found
}

pub(super) fn relative_path(errors: &mut Errors, path: &Path, value: &str) {
    if value.starts_with('/') {
        errors.invalid(path, value, "must be a relative path");
    }
    no_backsteps(errors, path, value);
}

pub(super) fn no_backsteps(errors: &mut Errors, path: &Path, value: &str) {
    if value.split('/').any(|part| part == "..") {
        errors.invalid(path, value, "must not contain '..'");
    }
}

/// A path inside a volume that may not use names the system keeps for itself.
pub(super) fn local_path(errors: &mut Errors, path: &Path, value: &str) {
    relative_path(errors, path, value);
    if value.starts_with("..") && !value.starts_with("../") {
        errors.invalid(path, value, "must not start with '..'");
    }
}

pub(super) fn ip(errors: &mut Errors, path: &Path, value: &str) {
    if parse_ip(value).is_none() {
        errors.invalid(path, value, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
    }
}

/// Addresses as Go's older parser takes them: leading zeros in IPv4 parts are read as decimal.
pub(super) fn parse_ip(value: &str) -> Option<IpAddr> {
    if let Ok(ip) = value.parse() {
        return Some(ip);
    }
    let parts: Vec<&str> = value.split('.').collect();
    if parts.len() != 4 || parts.iter().any(|p| p.is_empty() || !p.bytes().all(|b| b.is_ascii_digit())) {
        return None;
    }
    let numbers: Vec<u8> = parts
        .iter()
        .filter_map(|p| {
            p.trim_start_matches('0').parse().ok().or((p.bytes().all(|b| b == b'0')).then_some(0))
        })
        .collect();
    let four: [u8; 4] = numbers.try_into().ok()?;
    Some(IpAddr::from(four))
}

/// Network address and prefix length; `None` when it is not one.
pub(super) fn parse_cidr(value: &str) -> Option<(IpAddr, u8)> {
    let (address, bits) = value.split_once('/')?;
    let address = parse_ip(address)?;
    let bits: u8 = bits.parse().ok()?;
    let max = if address.is_ipv4() { 32 } else { 128 };
    (bits <= max).then_some((address, bits))
}

pub(super) fn cidr(errors: &mut Errors, path: &Path, value: &str) {
    if parse_cidr(value).is_none() {
        errors.invalid(path, value, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
    }
}

/// An address that may stand for an endpoint: no unspecified, loopback, link-local or link-local multicast ones.
pub(super) fn endpoint_ip(errors: &mut Errors, path: &Path, value: &str) {
    let Some(address) = parse_ip(value) else {
        errors.invalid(path, value, "must be a valid IP address");
        return;
    };
    if address.is_unspecified() {
        errors.invalid(path, value, format!("may not be unspecified ({value})"));
    }
    if address.is_loopback() {
        errors.invalid(path, value, "may not be in the loopback range (127.0.0.0/8, ::1/128)");
    }
    let (link_local, multicast) = match address {
        IpAddr::V4(v4) => (v4.is_link_local(), v4.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(v6) => ((v6.segments()[0] & 0xffc0) == 0xfe80, (v6.segments()[0] & 0xff0f) == 0xff02),
    };
    if link_local {
        errors.invalid(path, value, "may not be in the link-local range (169.254.0.0/16, fe80::/10)");
    }
    if multicast {
        errors.invalid(path, value, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)");
    }
}

pub(super) fn quantity(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        _ => None,
    }
}

pub(super) const NEGATIVE: &str = "must be greater than or equal to 0";

pub(super) fn non_negative_quantity(errors: &mut Errors, path: &Path, value: &Value) {
    if quantity(value).is_some_and(|q| q.sign() == std::cmp::Ordering::Less) {
        errors.invalid(path, value.clone(), NEGATIVE);
    }
}

const STANDARD: &[&str] = &[
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
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
    "storage",
    "requests.storage",
    "services.nodeports",
    "services.loadbalancers",
];

/// Amounts that only exist in whole pieces.
pub(super) fn is_integer_resource(name: &str) -> bool {
    const WHOLE: &[&str] = &[
        "pods",
        "services",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    ];
    WHOLE.contains(&name) || is_extended_resource(name)
}

fn is_native_resource(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

pub(super) fn is_extended_resource(name: &str) -> bool {
    !is_native_resource(name)
        && !name.starts_with("requests.")
        && fl_types::check_qualified_name(&format!("requests.{name}")).is_ok()
}

pub(super) fn is_huge_page(name: &str) -> bool {
    name.starts_with("hugepages-")
}

/// The name of a resource in general.
pub(super) fn resource_name(errors: &mut Errors, path: &Path, name: &str) -> bool {
    let before = errors.0.len();
    qualified_name(errors, path, name);
    if errors.0.len() != before {
        return false;
    }
    if !name.contains('/') && !STANDARD.contains(&name) && !is_huge_page(name) && !is_quota_prefix(name) {
        errors.invalid(path, name, "must be a standard resource type or fully qualified");
        return false;
    }
    true
}

fn is_quota_prefix(name: &str) -> bool {
    name.starts_with("requests.hugepages-")
}

/// The name of a resource a container may ask for.
pub(super) fn container_resource_name(errors: &mut Errors, path: &Path, name: &str) {
    resource_name(errors, path, name);
    if !name.contains('/') {
        if !matches!(name, "cpu" | "memory" | "ephemeral-storage") && !is_huge_page(name) {
            errors.invalid(path, name, "must be a standard resource for containers");
        }
    } else if !is_native_resource(name) && !is_extended_resource(name) {
        errors.invalid(path, name, "doesn't follow extended resource name standard");
    }
}

/// An amount of a resource: not negative, whole where it must be.
pub(super) fn resource_amount(errors: &mut Errors, path: &Path, name: &str, value: &Value) {
    non_negative_quantity(errors, path, value);
    if is_integer_resource(name)
        && quantity(value).and_then(|q| q.milli_value()).is_some_and(|m| m % 1000 != 0)
    {
        errors.invalid(path, value.clone(), "must be an integer");
    }
}

/// Huge pages come in whole pages.
fn huge_pages(errors: &mut Errors, path: &Path, name: &str, amount: &Value) {
    let Some(page) = name.strip_prefix("hugepages-").and_then(|size| size.parse::<Quantity>().ok()) else {
        return;
    };
    let (Some(page), Some(wanted)) = (page.value(), quantity(amount)) else { return };
    if page > 0 && wanted.value().is_some_and(|wanted| wanted % page != 0) {
        let why = format!("{wanted} is not positive integer multiple of {name}");
        errors.invalid(path, amount.clone(), why);
    }
}

/// Limits and requests of a container.
pub(super) fn resource_requirements(errors: &mut Errors, path: &Path, resources: &Value) {
    let (limits, requests) = (path.child("limits"), path.child("requests"));
    for (name, amount) in entries(resources, "limits") {
        let path = limits.key(name);
        container_resource_name(errors, &path, name);
        resource_amount(errors, &path, name, amount);
        huge_pages(errors, &path, name, amount);
    }
    for (name, amount) in entries(resources, "requests") {
        let path = requests.key(name);
        container_resource_name(errors, &path, name);
        resource_amount(errors, &path, name, amount);
        huge_pages(errors, &path, name, amount);
        let overcommit = is_native_resource(name) && !is_huge_page(name);
        let (Some(request), limit) = (quantity(amount), quantity(&resources["limits"][name])) else {
            continue;
        };
        match limit {
            Some(limit) if request != limit && !overcommit => {
                errors.invalid(
                    &requests,
                    amount.clone(),
                    format!("must be equal to {name} limit of {limit}"),
                );
            }
            Some(limit) if request > limit => {
                let why = format!("must be less than or equal to {name} limit of {limit}");
                errors.invalid(&requests, amount.clone(), why);
            }
            None if !overcommit => {
                errors.required(&limits, "Limit must be set for non overcommitable resources");
            }
            _ => {}
        }
    }
    let names: Vec<&str> =
        ["limits", "requests"].iter().flat_map(|key| entries(resources, key)).map(|(name, _)| name).collect();
    let huge = names.iter().any(|name| is_huge_page(name));
    if huge && !names.iter().any(|name| matches!(*name, "cpu" | "memory")) {
        errors.forbidden(path, "HugePages require cpu or memory");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(check: impl FnOnce(&mut Errors)) -> Vec<String> {
        let mut errors = Errors::default();
        check(&mut errors);
        errors.0.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn requests_above_limits_are_refused() {
        let resources = json!({"limits": {"cpu": "1"}, "requests": {"cpu": "2", "memory": "-1"}});
        assert_eq!(
            shown(|e| resource_requirements(e, &Path::new("r"), &resources)),
            [
                "r.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1",
                "r.requests[memory]: Invalid value: \"-1\": must be greater than or equal to 0",
            ]
        );
    }

    #[test]
    fn names_of_ports() {
        assert!(port_name("http").is_empty());
        assert_eq!(port_name("80"), ["must contain at least one letter (a-z)"]);
        assert_eq!(port_name("a--b").len(), 1);
        assert_eq!(port_name("a-very-long-port-name").len(), 1);
    }

    #[test]
    fn addresses() {
        assert!(
            parse_ip("10.0.0.1").is_some() && parse_ip("::1").is_some() && parse_ip("010.0.0.1").is_some()
        );
        assert!(parse_ip("10.0.0").is_none() && parse_ip("x").is_none());
        assert!(parse_cidr("10.0.0.0/8").is_some() && parse_cidr("10.0.0.0/33").is_none());
    }
}
