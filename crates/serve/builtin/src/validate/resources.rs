//! Quantities, resource names, and requests and limits of containers.

use fl_types::Quantity;
use serde_json::Value;

use super::common_rules::qualified_name;
use crate::field::{Errors, Path, entries};

pub(crate) fn quantity(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        _ => None,
    }
}

pub(crate) const MUST_NOT_BE_NEGATIVE: &str = "must be greater than or equal to 0";

pub(crate) fn non_negative_quantity(errors: &mut Errors, path: &Path, value: &Value) {
    if quantity(value).is_some_and(|q| q.sign() == std::cmp::Ordering::Less) {
        errors.invalid(path, value.clone(), MUST_NOT_BE_NEGATIVE);
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

/// Whether the quantities of a resource must be integers.
pub(crate) fn is_integer_resource(name: &str) -> bool {
    const INTEGER_RESOURCES: &[&str] = &[
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
    INTEGER_RESOURCES.contains(&name) || is_extended_resource(name)
}

fn is_native_resource(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

pub(crate) fn is_extended_resource(name: &str) -> bool {
    !is_native_resource(name)
        && !name.starts_with("requests.")
        && fl_types::check_qualified_name(&format!("requests.{name}")).is_ok()
}

pub(crate) fn is_huge_page(name: &str) -> bool {
    name.starts_with("hugepages-")
}

/// The name of a resource.
pub(crate) fn resource_name(errors: &mut Errors, path: &Path, name: &str) -> bool {
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

/// The name of a resource that a container may request.
pub(crate) fn container_resource_name(errors: &mut Errors, path: &Path, name: &str) {
    resource_name(errors, path, name);
    if !name.contains('/') {
        if !matches!(name, "cpu" | "memory" | "ephemeral-storage") && !is_huge_page(name) {
            errors.invalid(path, name, "must be a standard resource for containers");
        }
    } else if !is_native_resource(name) && !is_extended_resource(name) {
        errors.invalid(path, name, "doesn't follow extended resource name standard");
    }
}

/// The quantity of a resource: not negative, and an integer if the resource needs one.
pub(crate) fn resource_amount(errors: &mut Errors, path: &Path, name: &str, value: &Value) {
    non_negative_quantity(errors, path, value);
    if is_integer_resource(name)
        && quantity(value).and_then(|q| q.milli_value()).is_some_and(|m| m % 1000 != 0)
    {
        errors.invalid(path, value.clone(), "must be an integer");
    }
}

/// A quantity of huge pages: a multiple of the page size.
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
pub(crate) fn resource_requirements(errors: &mut Errors, path: &Path, resources: &Value) {
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
    use serde_json::json;

    use super::*;

    fn shown(check: impl FnOnce(&mut Errors)) -> Vec<String> {
        let mut errors = Errors::default();
        check(&mut errors);
        errors.0.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn requests_above_limits_are_rejected() {
        let resources = json!({"limits": {"cpu": "1"}, "requests": {"cpu": "2", "memory": "-1"}});
        assert_eq!(
            shown(|e| resource_requirements(e, &Path::new("r"), &resources)),
            [
                "r.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1",
                "r.requests[memory]: Invalid value: \"-1\": must be greater than or equal to 0",
            ]
        );
    }
}
