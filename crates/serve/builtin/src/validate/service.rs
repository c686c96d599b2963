//! Services.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::pod::required_one_of;
use crate::field::{Errors, Path, is_set, list, text};
use crate::validate::common_rules::{self, label, labels, subdomain};
use crate::validate::ip;

fn headless(spec: &Value) -> bool {
    spec["clusterIPs"] == json!(["None"])
}

fn external(spec: &Value) -> bool {
    match text(spec, "type") {
        "NodePort" | "LoadBalancer" => true,
        "ClusterIP" => !list(spec, "externalIPs").is_empty(),
        _ => false,
    }
}

fn needs_health_check(spec: &Value) -> bool {
    text(spec, "type") == "LoadBalancer" && text(spec, "externalTrafficPolicy") == "Local"
}

pub(crate) fn service(errors: &mut Errors, object: &Value) {
    let (path, spec) = (Path::new("spec"), &object["spec"]);
    let kind = text(spec, "type");
    let ports = list(spec, "ports");
    if ports.is_empty() && !headless(spec) && kind != "ExternalName" {
        errors.required(&path.child("ports"), "");
    }
    by_type(errors, &path, spec);
    service_ports(errors, &path.child("ports"), spec);
    labels(errors, &path.child("selector"), &spec["selector"]);
    affinity(errors, &path, spec);
    if kind != "ExternalName" {
        cluster_ips(errors, &path, spec);
    }
    for (at, ip) in list(spec, "externalIPs").iter().filter_map(Value::as_str).enumerate() {
        let path = path.child("externalIPs").index(at);
        if ip::parse_ip(ip).is_none() {
            ip::ip(errors, &path, ip);
        } else {
            ip::endpoint_ip(errors, &path, ip);
        }
    }
    required_one_of(
        errors,
        &path.child("type"),
        kind,
        &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"],
    );
    load_balancer(errors, &path, object);
    traffic(errors, &path, spec);
}

fn by_type(errors: &mut Errors, path: &Path, spec: &Value) {
    let kind = text(spec, "type");
    match kind {
        "LoadBalancer" | "NodePort" if headless(spec) => {
            let why = format!("may not be set to 'None' for {kind} services");
            errors.invalid(&path.child("clusterIPs").index(0), "None", why);
        }
        "ExternalName" => {
            for key in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                if is_set(spec, key) {
                    errors.forbidden(&path.child(key), "may not be set for ExternalName services");
                }
            }
            let name = text(spec, "externalName");
            match name.strip_suffix('.').unwrap_or(name) {
                "" => errors.required(&path.child("externalName"), ""),
                name => subdomain(errors, &path.child("externalName"), name),
            }
        }
        _ => {}
    }
}

fn service_ports(errors: &mut Errors, path: &Path, spec: &Value) {
    let ports = list(spec, "ports");
    let (mut names, mut node_ports, mut numbers) = (HashSet::new(), HashSet::new(), HashSet::new());
    for (at, port) in ports.iter().enumerate() {
        let path = path.index(at);
        let name = text(port, "name");
        if name.is_empty() {
            if ports.len() > 1 {
                errors.required(&path.child("name"), "");
            }
        } else {
            label(errors, &path.child("name"), name);
            if !names.insert(name) {
                errors.duplicate(&path.child("name"), name);
            }
        }
        common_rules::port(errors, &path.child("port"), &port["port"]);
        let protocol = text(port, "protocol");
        required_one_of(errors, &path.child("protocol"), protocol, &["SCTP", "TCP", "UDP"]);
        common_rules::port_or_name(errors, &path.child("targetPort"), &port["targetPort"]);
        if let Some(application) = port["appProtocol"].as_str() {
            common_rules::qualified_name(errors, &path.child("appProtocol"), application);
        }
        let node = port["nodePort"].as_i64().unwrap_or(0);
        if node != 0 {
            if text(spec, "type") == "ClusterIP" {
                errors.forbidden(&path.child("nodePort"), "may not be used when `type` is 'ClusterIP'");
            }
            if !node_ports.insert((protocol, node)) {
                errors.duplicate(&path.child("nodePort"), node);
            }
        }
        let number = port["port"].as_i64().unwrap_or(0);
        if !numbers.insert((protocol, number)) {
            let shown = format!(
                "{{\"Name\":\"\",\"Protocol\":{},\"AppProtocol\":null,\"Port\":{number},\"TargetPort\":0,\"NodePort\":0}}",
                json!(protocol)
            );
            errors.push(fl_schema::FieldError {
                kind: fl_schema::FieldErrorKind::Duplicate,
                field: path.as_str().to_owned(),
                value: Some(shown),
                detail: String::new(),
            });
        }
    }
}

fn affinity(errors: &mut Errors, path: &Path, spec: &Value) {
    let kind = text(spec, "sessionAffinity");
    required_one_of(errors, &path.child("sessionAffinity"), kind, &["ClientIP", "None"]);
    let (at, config) = (path.child("sessionAffinityConfig"), &spec["sessionAffinityConfig"]);
    match kind {
        "ClientIP" => {
            let why = "when session affinity type is ClientIP";
            match config["clientIP"]["timeoutSeconds"].as_i64() {
                None => errors.required(&at.at("clientIP.timeoutSeconds"), why),
                Some(seconds) if !(1..=86400).contains(&seconds) => {
                    let why = "must be greater than 0 and less than 86400";
                    errors.invalid(&at.at("clientIP.timeoutSeconds"), seconds, why);
                }
                Some(_) => {}
            }
        }
        "None" if !config.is_null() => errors.forbidden(&at, "must not be set when session affinity is None"),
        _ => {}
    }
}

fn cluster_ips(errors: &mut Errors, path: &Path, spec: &Value) {
    let at = path.child("clusterIPs");
    let ips: Vec<&str> = list(spec, "clusterIPs").iter().filter_map(Value::as_str).collect();
    match (text(spec, "clusterIP"), ips.first()) {
        ("", Some(_)) => {
            errors.invalid(&at, json!(ips), "must be empty when `clusterIP` is not specified");
        }
        ("", None) => {}
        (_, None) => errors.required(&at, ""),
        (ip, Some(first)) if ip != *first => {
            errors.invalid(&at, json!(ips), "first value must match `clusterIP`");
        }
        _ => {}
    }
    let mut families = HashSet::new();
    let at_families = path.child("ipFamilies");
    for (i, family) in list(spec, "ipFamilies").iter().filter_map(Value::as_str).enumerate() {
        let path = path.child("ipFamilies").index(i);
        errors.one_of(&path, family, &["IPv4", "IPv6"]);
        // Cluster IPs come from one IPv4 range; a headless service without a selector needs none.
        let unmanaged = headless(spec) && spec["selector"].as_object().is_none_or(serde_json::Map::is_empty);
        if family == "IPv6" && !unmanaged {
            errors.invalid(&at_families.index(i), family, "not configured on this cluster");
        }
        if !families.insert(family) {
            errors.duplicate(&path, family);
        }
    }
    if let Some(policy) = spec["ipFamilyPolicy"].as_str() {
        let known = ["PreferDualStack", "RequireDualStack", "SingleStack"];
        errors.one_of(&path.child("ipFamilyPolicy"), policy, &known);
        let unmanaged = headless(spec) && spec["selector"].as_object().is_none_or(serde_json::Map::is_empty);
        if policy == "RequireDualStack" && !unmanaged {
            let why = "this cluster is not configured for dual-stack services";
            errors.invalid(&path.child("ipFamilyPolicy"), policy, why);
        }
    }
    for (i, ip) in ips.iter().enumerate() {
        if i == 0 && *ip == "None" {
            if ips.len() > 1 {
                errors.invalid(&at, json!(ips), "'None' must be the first and only value");
            }
            continue;
        }
        ip::ip(errors, &at.index(i), ip);
    }
    if ips.len() > 2 {
        errors.invalid(&at, json!(ips), "may only hold up to 2 values");
    }
}

fn load_balancer(errors: &mut Errors, path: &Path, object: &Value) {
    let spec = &object["spec"];
    let is_balancer = text(spec, "type") == "LoadBalancer";
    let only = "may only be used when `type` is 'LoadBalancer'";
    let ranges = list(spec, "loadBalancerSourceRanges");
    if !ranges.is_empty() {
        let at = path.child("LoadBalancerSourceRanges");
        if !is_balancer {
            errors.forbidden(&at, only);
        }
        for (i, range) in ranges.iter().filter_map(Value::as_str).enumerate() {
            ip::cidr(errors, &at.index(i), range.trim());
        }
    }
    if is_set(spec, "allocateLoadBalancerNodePorts") && !is_balancer {
        errors.forbidden(&path.child("allocateLoadBalancerNodePorts"), only);
    }
    load_balancer_class(errors, path, spec);
}

fn load_balancer_class(errors: &mut Errors, path: &Path, spec: &Value) {
    let (at, class) = (path.child("loadBalancerClass"), spec["loadBalancerClass"].as_str());
    match class {
        Some(class) if text(spec, "type") == "LoadBalancer" => {
            common_rules::qualified_name(errors, &at, class);
        }
        Some(_) => errors.forbidden(&at, "may only be used when `type` is 'LoadBalancer'"),
        None => {}
    }
}

fn traffic(errors: &mut Errors, path: &Path, spec: &Value) {
    let (at, policy) = (path.child("externalTrafficPolicy"), text(spec, "externalTrafficPolicy"));
    if external(spec) {
        required_one_of(errors, &at, policy, &["Cluster", "Local"]);
    } else if !policy.is_empty() {
        errors.invalid(&at, policy, "may only be set for externally-accessible services");
    }
    let (at, port) = (path.child("healthCheckNodePort"), spec["healthCheckNodePort"].as_i64().unwrap_or(0));
    if !needs_health_check(spec) {
        if port != 0 {
            let why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
            errors.invalid(&at, port, why);
        }
    } else if port != 0 {
        common_rules::port(errors, &at, &json!(port));
    }
    let at = path.child("internalTrafficPolicy");
    match spec["internalTrafficPolicy"].as_str() {
        None if matches!(text(spec, "type"), "NodePort" | "LoadBalancer" | "ClusterIP") => {
            errors.required(&at, "");
        }
        Some(policy) => errors.one_of(&at, policy, &["Cluster", "Local"]),
        None => {}
    }
    if let Some(distribution) = spec["trafficDistribution"].as_str() {
        errors.one_of(
            &path.child("trafficDistribution"),
            distribution,
            &["PreferClose", "PreferSameZone", "PreferSameNode"],
        );
    }
}

pub(crate) fn service_update(errors: &mut Errors, new: &Value, old: &Value) {
    let (path, spec, before) = (Path::new("spec"), &new["spec"], &old["spec"]);
    immutable_ips(errors, &path, spec, before);
    if text(spec, "type") == "LoadBalancer" && text(before, "type") == "LoadBalancer" {
        let at = path.child("loadBalancerClass");
        if is_set(before, "loadBalancerClass") && spec["loadBalancerClass"] != before["loadBalancerClass"] {
            errors.invalid(&at, spec["loadBalancerClass"].clone(), "may not change once set");
        }
    }
    // Upstream validates it twice.
    load_balancer_class(errors, &path, spec);
    if needs_health_check(before)
        && needs_health_check(spec)
        && spec["healthCheckNodePort"] != before["healthCheckNodePort"]
    {
        errors.forbidden(&path.child("healthCheckNodePort"), "field is immutable");
    }
}

fn immutable_ips(errors: &mut Errors, path: &Path, spec: &Value, before: &Value) {
    if text(spec, "type") == "ExternalName" || text(before, "type") == "ExternalName" {
        return;
    }
    if headless(spec) && headless(before) {
        return;
    }
    let (now, then) = (list(spec, "clusterIPs"), list(before, "clusterIPs"));
    let at = path.child("clusterIPs");
    if now.len() == then.len() {
        for (i, ip) in then.iter().enumerate() {
            if *ip != now[i] {
                errors.invalid(&at.index(i), spec["clusterIPs"].clone(), "may not change once set");
            }
        }
        return;
    }
    if now.is_empty() {
        errors.invalid(&at.index(0), spec["clusterIPs"].clone(), "primary clusterIP can not be unset");
    } else if !then.is_empty() && now[0] != then[0] {
        errors.invalid(&at.index(0), spec["clusterIPs"].clone(), "may not change once set");
    }
    if then.len() > now.len() && now.len() == 1 && spec["ipFamilyPolicy"] != "SingleStack" {
        let why = "must be set to 'SingleStack' when releasing the secondary clusterIP";
        errors.invalid(&path.child("ipFamilyPolicy"), spec["ipFamilyPolicy"].clone(), why);
    }
}
