//! Cluster IPs, node ports and fields derived from them.

use fl_schema::FieldError;
use serde_json::{Value, json};

use crate::allocator::AllocateError;
use crate::object;
use crate::server::{Inner, Target};
use crate::status::{ApiError, ApiResult};

fn text<'a>(spec: &'a Value, field: &str) -> &'a str {
    spec.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Allocates the addresses and ports that a service needs, and releases those it no longer needs.
pub(super) fn allocate(
    inner: &Inner,
    target: &Target,
    object: &mut Value,
    old: Option<&Value>,
    dry_run: bool,
) -> ApiResult<()> {
    let name = object::name(object).to_owned();
    let old_spec = old.and_then(|o| o.get("spec")).cloned().unwrap_or(Value::Null);
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return Ok(()) };
    let mut spec_value = Value::Object(std::mem::take(spec));
    let result = fill(inner, &mut spec_value, &old_spec, dry_run);
    if let (Some(slot), Value::Object(map)) =
        (object.get_mut("spec").and_then(Value::as_object_mut), spec_value)
    {
        *slot = map;
    }
    result.map_err(|error| ApiError::invalid(&target.rt, &name, &[error]))
}

fn fill(inner: &Inner, spec: &mut Value, old: &Value, dry_run: bool) -> Result<(), FieldError> {
    let kind = text(spec, "type").to_owned();
    let external = kind == "ExternalName";
    if external {
        return Ok(());
    }
    // An update without addresses keeps the existing ones.
    let was_external = text(old, "type") == "ExternalName";
    for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        if spec.get(field).is_none_or(|v| v.is_null() || v == "")
            && !was_external
            && let Some(value) = old.get(field)
        {
            spec[field] = value.clone();
        }
    }
    let ip = text(spec, "clusterIP").to_owned();
    if ip.is_empty() && spec.get("clusterIPs").and_then(Value::as_array).is_some_and(|l| !l.is_empty()) {
        // Validation rejects a list without its first entry.
        return Ok(());
    }
    if ip.is_empty() && dry_run {
        // A dry-run allocates nothing.
        spec["clusterIP"] = json!("10.0.0.0");
    } else if ip.is_empty() {
        let made = inner
            .addresses
            .address()
            .map_err(|_| refused("spec.clusterIPs", "", "failed to allocate IP: range is full"))?;
        spec["clusterIP"] = json!(made);
    } else if ip != "None" && (text(old, "clusterIP").is_empty() || was_external) {
        // Validation rejects a changed address, so only the first one is allocated.
        match inner.addresses.take_address(&ip) {
            Ok(()) if dry_run => inner.addresses.free(&json!({"spec": {"clusterIPs": [ip]}})),
            Ok(()) => {}
            Err(AllocateError::AlreadyAllocated) => {
                return Err(refused(
                    "spec.clusterIPs",
                    &ip,
                    &format!("failed to allocate IP {ip}: provided IP is already allocated"),
                ));
            }
            Err(_) if ip.parse::<std::net::IpAddr>().is_ok() => {
                let why = if dry_run {
                    let range = crate::allocator::RANGE;
                    format!(
                        "the provided IP ({ip}) is not in the valid range. The range of valid IPs is {range}"
                    )
                } else {
                    "the provided network does not match the current range".to_owned()
                };
                return Err(refused("spec.clusterIPs", &ip, &format!("failed to allocate IP {ip}: {why}")));
            }
            // Not an IP address: validation rejects it.
            Err(_) => {}
        }
    }
    let ip = spec["clusterIP"].clone();
    if spec.get("clusterIPs").is_none_or(|v| v.is_null() || v.as_array().is_some_and(Vec::is_empty)) {
        spec["clusterIPs"] = json!([ip]);
    }
    for (field, value) in [("ipFamilies", json!(["IPv4"])), ("ipFamilyPolicy", json!("SingleStack"))] {
        if spec.get(field).is_none_or(Value::is_null) {
            let headless_without_selector = ip == "None"
                && spec.get("selector").is_none_or(|s| s.as_object().is_none_or(serde_json::Map::is_empty));
            spec[field] = if headless_without_selector && field == "ipFamilyPolicy" {
                json!("RequireDualStack")
            } else {
                value
            };
            if headless_without_selector && field == "ipFamilies" {
                spec[field] = json!(["IPv4", "IPv6"]);
            }
        }
    }
    ports(inner, spec, old, &kind, dry_run)?;
    health_check_port(inner, spec, old, &kind, dry_run)
}

/// Allocates the health check node port of a load balancer with `externalTrafficPolicy: Local`.
fn health_check_port(
    inner: &Inner,
    spec: &mut Value,
    old: &Value,
    kind: &str,
    dry_run: bool,
) -> Result<(), FieldError> {
    let needed = kind == "LoadBalancer" && text(spec, "externalTrafficPolicy") == "Local";
    if !needed || spec.get("healthCheckNodePort").and_then(Value::as_u64).unwrap_or(0) > 0 {
        return Ok(());
    }
    if let Some(port) = old.get("healthCheckNodePort").filter(|p| p.as_u64().unwrap_or(0) > 0) {
        spec["healthCheckNodePort"] = port.clone();
        return Ok(());
    }
    if dry_run {
        let ports = spec.get("ports").and_then(Value::as_array).map_or(0, Vec::len);
        spec["healthCheckNodePort"] = json!(usize::from(DUMMY_PORT) + ports);
        return Ok(());
    }
    let number = inner.addresses.port().map_err(|_| {
        FieldError::invalid("spec.healthCheckNodePort", &json!(0), "no free node port is left")
    })?;
    spec["healthCheckNodePort"] = json!(number);
    Ok(())
}

/// The node port that a dry-run shows.
const DUMMY_PORT: u16 = 32_769;

fn refused(field: &str, value: &str, detail: &str) -> FieldError {
    FieldError::invalid(field, &json!([value]), detail)
}

fn ports(inner: &Inner, spec: &mut Value, old: &Value, kind: &str, dry_run: bool) -> Result<(), FieldError> {
    let wants = kind == "NodePort"
        || (kind == "LoadBalancer"
            && spec.get("allocateLoadBalancerNodePorts").and_then(Value::as_bool) != Some(false));
    let before: Vec<Value> = old.get("ports").and_then(Value::as_array).cloned().unwrap_or_default();
    let held: Vec<u64> = before.iter().filter_map(|p| p.get("nodePort")).filter_map(Value::as_u64).collect();
    let same = |a: &Value, b: &Value| {
        a.get("port") == b.get("port")
            && a.get("protocol") == b.get("protocol")
            && a.get("name") == b.get("name")
    };
    let mut shared: Vec<(u64, Value)> = Vec::new();
    let mut dummies: u16 = 0;
    let Some(list) = spec.get_mut("ports").and_then(Value::as_array_mut) else { return Ok(()) };
    for (i, port) in list.iter_mut().enumerate() {
        let given = port.get("nodePort").and_then(Value::as_u64).unwrap_or(0);
        if given > 0 {
            if !dry_run
                && !held.contains(&given)
                && kind != "ClusterIP"
                && !shared.iter().any(|(n, _)| *n == given)
            {
                let number = u16::try_from(given).unwrap_or(0);
                match inner.addresses.take_port(number) {
                    Ok(()) => {}
                    Err(AllocateError::AlreadyAllocated) => {
                        return Err(FieldError::invalid(
                            format!("spec.ports[{i}].nodePort"),
                            &json!(given),
                            "provided port is already allocated",
                        ));
                    }
                    Err(_) => {
                        return Err(FieldError::invalid(
                            format!("spec.ports[{i}].nodePort"),
                            &json!(given),
                            "provided port is not in the valid range. The range of valid ports is 30000-32767",
                        ));
                    }
                }
                shared.push((given, port.clone()));
            }
            continue;
        }
        if !wants {
            continue;
        }
        let kept = before
            .iter()
            .find(|b| same(b, port))
            .and_then(|b| b.get("nodePort"))
            .filter(|n| n.as_u64().unwrap_or(0) > 0);
        port["nodePort"] = match kept {
            Some(number) => number.clone(),
            None if dry_run => {
                dummies += 1;
                json!(DUMMY_PORT + dummies - 1)
            }
            None => {
                let number = inner.addresses.port().map_err(|_| {
                    FieldError::invalid(
                        format!("spec.ports[{i}].nodePort"),
                        &json!(0),
                        "no free node port is left",
                    )
                })?;
                json!(number)
            }
        };
    }
    Ok(())
}
