//! Ingresses, network policies, endpoints.

use serde_json::{Value, json};

use super::pod::required_one_of;
use crate::field::{Errors, Path, is_set, list, text};
use crate::name_validation::path_segment;
use crate::validate::common_rules::{self, label, label_selector, messages, subdomain};
use crate::validate::ip;

pub(crate) fn ingress_create(errors: &mut Errors, object: &Value) {
    ingress(errors, object);
    const CLASS: &str = "kubernetes.io/ingress.class";
    let (old, new) = (&object["metadata"]["annotations"][CLASS], &object["spec"]["ingressClassName"]);
    if let (Some(annotation), Some(class)) = (old.as_str(), new.as_str())
        && annotation != class
    {
        let why = "must match `ingressClassName` when both are specified";
        errors.invalid(&Path::new("annotations").child(CLASS), annotation, why);
    }
}

pub(crate) fn ingress(errors: &mut Errors, object: &Value) {
    let (path, spec) = (Path::new("spec"), &object["spec"]);
    let rules = list(spec, "rules");
    if rules.is_empty() && !is_set(spec, "defaultBackend") {
        errors.invalid(&path, spec["rules"].clone(), "either `defaultBackend` or `rules` must be specified");
    }
    if is_set(spec, "defaultBackend") {
        backend(errors, &path.child("defaultBackend"), &spec["defaultBackend"]);
    }
    for (at, rule) in rules.iter().enumerate() {
        let path = path.child("rules").index(at);
        host(errors, &path.child("host"), text(rule, "host"));
        if !is_set(rule, "http") {
            continue;
        }
        let paths = list(&rule["http"], "paths");
        if paths.is_empty() {
            errors.required(&path.at("http.paths"), "");
        }
        for (i, entry) in paths.iter().enumerate() {
            http_path(errors, &path.at("http.paths").index(i), entry);
        }
    }
    for (at, tls) in list(spec, "tls").iter().enumerate() {
        let path = path.child("tls").index(at);
        for (i, name) in list(tls, "hosts").iter().filter_map(Value::as_str).enumerate() {
            host_name(errors, &path.child("hosts").index(i), name);
        }
        if !text(tls, "secretName").is_empty() {
            subdomain(errors, &path.child("secretName"), text(tls, "secretName"));
        }
    }
    if let Some(class) = spec["ingressClassName"].as_str() {
        subdomain(errors, &path.child("ingressClassName"), class);
    }
}

fn host(errors: &mut Errors, path: &Path, host: &str) {
    if host.is_empty() {
        return;
    }
    if ip::parse_ip(host).is_some() {
        errors.invalid(path, host, "must be a DNS name, not an IP address");
    }
    host_name(errors, path, host);
}

fn host_name(errors: &mut Errors, path: &Path, host: &str) {
    if !host.contains('*') {
        subdomain(errors, path, host);
        return;
    }
    if host.len() > 253 {
        errors.invalid(path, host, "must be no more than 253 characters");
    }
    let good = host.strip_prefix("*.").is_some_and(|rest| fl_types::check_dns1123_subdomain(rest).is_ok());
    if !good {
        let why = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
        errors.invalid(path, host, why);
    }
}

fn http_path(errors: &mut Errors, path: &Path, entry: &Value) {
    let Some(kind) = entry["pathType"].as_str() else {
        errors.required(&path.child("pathType"), "pathType must be specified");
        return;
    };
    let (at, url) = (path.child("path"), text(entry, "path"));
    match kind {
        "Exact" | "Prefix" => {
            if !url.starts_with('/') {
                errors.invalid(&at, url, "must be an absolute path");
            }
            for bad in ["//", "/./", "/../", "%2f", "%2F"] {
                if url.contains(bad) {
                    errors.invalid(&at, url, format!("must not contain '{bad}'"));
                }
            }
            for bad in ["/..", "/."] {
                if url.ends_with(bad) {
                    errors.invalid(&at, url, format!("cannot end with '{bad}'"));
                }
            }
        }
        "ImplementationSpecific" => {
            if !url.is_empty() && !url.starts_with('/') {
                errors.invalid(&at, url, "must be an absolute path");
            }
        }
        other => {
            errors.not_supported(
                &path.child("pathType"),
                other,
                &["Exact", "ImplementationSpecific", "Prefix"],
            );
        }
    }
    backend(errors, &path.child("backend"), &entry["backend"]);
}

fn backend(errors: &mut Errors, path: &Path, backend: &Value) {
    let (service, resource) = (&backend["service"], &backend["resource"]);
    match (service.is_null(), resource.is_null()) {
        (false, false) => errors.invalid(path, "", "cannot set both resource and service backends"),
        (true, true) => errors.invalid(path, "", "resource or service backend is required"),
        (true, false) => object_reference(errors, &path.child("resource"), resource),
        (false, true) => {
            let name = text(service, "name");
            if name.is_empty() {
                errors.required(&path.at("service.name"), "");
            } else {
                let found = messages(fl_types::check_dns1035_label(name));
                errors.each_invalid(&path.at("service.name"), name, &found);
            }
            let port = &service["port"];
            let (port_name, number) = (text(port, "name"), port["number"].as_i64().unwrap_or(0));
            match (port_name.is_empty(), number == 0) {
                (false, false) => errors.invalid(path, "", "cannot set both port name & port number"),
                (false, true) => {
                    errors.each_invalid(
                        &path.at("service.port.name"),
                        port_name,
                        &common_rules::port_name(port_name),
                    );
                }
                (true, false) => common_rules::port(errors, &path.at("service.port.number"), &port["number"]),
                (true, true) => errors.required(path, "port name or number is required"),
            }
        }
    }
}

fn object_reference(errors: &mut Errors, path: &Path, reference: &Value) {
    if let Some(group) = reference["apiGroup"].as_str() {
        subdomain(errors, &path.child("apiGroup"), group);
    }
    for key in ["kind", "name"] {
        match text(reference, key) {
            "" => errors.required(&path.child(key), ""),
            name => errors.each_invalid(&path.child(key), name, &path_segment(name, false)),
        }
    }
}

pub(crate) fn ingress_class(errors: &mut Errors, object: &Value) {
    let (path, spec) = (Path::new("spec"), &object["spec"]);
    let controller = text(spec, "controller");
    if controller.len() > 250 {
        errors.too_long(&path.child("controller"), 250);
    }
    domain_prefixed_path(errors, &path.child("controller"), controller);
    let parameters = &spec["parameters"];
    if parameters.is_null() {
        return;
    }
    let path = path.child("parameters");
    object_reference(errors, &path, parameters);
    if parameters["scope"].is_null() {
        errors.required(&path.child("scope"), "");
        return;
    }
    match (text(parameters, "scope"), parameters["namespace"].as_str()) {
        ("Namespace", None) => {
            errors.required(&path.child("namespace"), "`parameters.scope` is set to 'Namespace'");
        }
        ("Namespace", Some(namespace)) => label(errors, &path.child("namespace"), namespace),
        ("Cluster", Some(_)) => {
            errors.forbidden(&path.child("namespace"), "`parameters.scope` is set to 'Cluster'");
        }
        ("Cluster", None) => {}
        (other, _) => errors.not_supported(&path.child("scope"), other, &["Cluster", "Namespace"]),
    }
}

/// A name such as `example.com/path`.
fn domain_prefixed_path(errors: &mut Errors, path: &Path, value: &str) {
    if value.is_empty() {
        errors.required(path, "");
        return;
    }
    let Some((domain, rest)) = value.split_once('/').filter(|(d, r)| !d.is_empty() && !r.is_empty()) else {
        errors.invalid(path, value, "must be a domain-prefixed path (such as \"acme.io/foo\")");
        return;
    };
    for message in messages(fl_types::check_dns1123_subdomain(domain)) {
        errors.invalid(path, domain, message);
    }
    let good = rest.bytes().all(|b| b.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&b));
    if !good {
        let why = "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
        errors.invalid(path, rest, why);
    }
}

pub(crate) fn ingress_class_update(errors: &mut Errors, new: &Value, old: &Value) {
    let controller = |object: &Value| json!(text(&object["spec"], "controller"));
    errors.immutable(&Path::new("spec.controller"), &controller(new), &controller(old));
}

pub(crate) fn network_policy(errors: &mut Errors, object: &Value) {
    let (path, spec) = (Path::new("spec"), &object["spec"]);
    label_selector(errors, &path.child("podSelector"), &spec["podSelector"]);
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for (at, rule) in list(spec, direction).iter().enumerate() {
            let path = path.child(direction).index(at);
            for (i, port) in list(rule, "ports").iter().enumerate() {
                policy_port(errors, &path.child("ports").index(i), port);
            }
            for (i, peer) in list(rule, peers).iter().enumerate() {
                policy_peer(errors, &path.child(peers).index(i), peer);
            }
        }
    }
    let types = list(spec, "policyTypes");
    let path = path.child("policyTypes");
    if types.len() > 2 {
        errors.invalid(&path, spec["policyTypes"].clone(), "may not specify more than two policyTypes");
        return;
    }
    for (at, kind) in types.iter().filter_map(Value::as_str).enumerate() {
        errors.one_of(&path.index(at), kind, &["Ingress", "Egress"]);
    }
}

fn policy_port(errors: &mut Errors, path: &Path, port: &Value) {
    if let Some(protocol) = port["protocol"].as_str() {
        errors.one_of(&path.child("protocol"), protocol, &["TCP", "UDP", "SCTP"]);
    }
    let (at, end) = (path.child("endPort"), port["endPort"].as_i64());
    match &port["port"] {
        Value::Null => {
            if let Some(end) = end {
                errors.invalid(&at, end, "may not be specified when `port` is not specified");
            }
        }
        Value::String(name) => {
            if let Some(end) = end {
                errors.invalid(&at, end, "may not be specified when `port` is non-numeric");
            }
            errors.each_invalid(&path.child("port"), name, &common_rules::port_name(name));
        }
        number => {
            common_rules::port(errors, &path.child("port"), number);
            let number = number.as_i64().unwrap_or(0);
            if let Some(end) = end {
                if end < number {
                    errors.invalid(&at, number, "must be greater than or equal to `port`");
                }
                common_rules::port(errors, &at, &Value::from(end));
            }
        }
    }
}

fn policy_peer(errors: &mut Errors, path: &Path, peer: &Value) {
    let mut found = 0;
    for key in ["podSelector", "namespaceSelector"] {
        if is_set(peer, key) {
            found += 1;
            label_selector(errors, &path.child(key), &peer[key]);
        }
    }
    if is_set(peer, "ipBlock") {
        found += 1;
        ip_block(errors, &path.child("ipBlock"), &peer["ipBlock"]);
    }
    if found == 0 {
        errors.required(path, "must specify a peer");
    } else if found > 1 && is_set(peer, "ipBlock") {
        errors.forbidden(path, "may not specify both ipBlock and another peer");
    }
}

fn ip_block(errors: &mut Errors, path: &Path, block: &Value) {
    let range = text(block, "cidr");
    if range.is_empty() {
        errors.required(&path.child("cidr"), "");
        return;
    }
    ip::cidr(errors, &path.child("cidr"), range);
    let Some((network, bits)) = ip::parse_cidr(range) else { return };
    for (at, except) in list(block, "except").iter().filter_map(Value::as_str).enumerate() {
        let path = path.child("except").index(at);
        ip::cidr(errors, &path, except);
        let Some((inner, inner_bits)) = ip::parse_cidr(except) else { continue };
        if !contains(network, bits, inner) || bits >= inner_bits {
            errors.invalid(&path, except, "must be a strict subset of `cidr`");
        }
    }
}

fn contains(network: std::net::IpAddr, bits: u8, address: std::net::IpAddr) -> bool {
    use std::net::IpAddr::{V4, V6};
    match (network, address) {
        (V4(a), V4(b)) => {
            let shift = 32 - u32::from(bits);
            a.to_bits().checked_shr(shift).unwrap_or(0) == b.to_bits().checked_shr(shift).unwrap_or(0)
        }
        (V6(a), V6(b)) => {
            let shift = 128 - u32::from(bits);
            a.to_bits().checked_shr(shift).unwrap_or(0) == b.to_bits().checked_shr(shift).unwrap_or(0)
        }
        _ => false,
    }
}

pub(crate) fn endpoints(errors: &mut Errors, object: &Value) {
    let path = Path::new("subsets");
    for (at, subset) in list(object, "subsets").iter().enumerate() {
        let path = path.index(at);
        let (ready, not_ready) = (list(subset, "addresses"), list(subset, "notReadyAddresses"));
        if ready.is_empty() && not_ready.is_empty() {
            errors.required(&path, "must specify `addresses` or `notReadyAddresses`");
        }
        for (key, addresses) in [("addresses", ready), ("notReadyAddresses", not_ready)] {
            for (i, address) in addresses.iter().enumerate() {
                let path = path.child(key).index(i);
                let ip = text(address, "ip");
                ip::ip(errors, &path.child("ip"), ip);
                if !text(address, "hostname").is_empty() {
                    label(errors, &path.child("hostname"), text(address, "hostname"));
                }
                if let Some(node) = address["nodeName"].as_str() {
                    subdomain(errors, &path.child("nodeName"), node);
                }
                ip::endpoint_ip(errors, &path.child("ip"), ip);
            }
        }
        let ports = list(subset, "ports");
        for (i, port) in ports.iter().enumerate() {
            let path = path.child("ports").index(i);
            match text(port, "name") {
                "" if ports.len() > 1 => errors.required(&path.child("name"), ""),
                "" => {}
                name => label(errors, &path.child("name"), name),
            }
            common_rules::port(errors, &path.child("port"), &port["port"]);
            required_one_of(errors, &path.child("protocol"), text(port, "protocol"), &["SCTP", "TCP", "UDP"]);
            if let Some(protocol) = port["appProtocol"].as_str() {
                common_rules::qualified_name(errors, &path.child("appProtocol"), protocol);
            }
        }
    }
}

pub(crate) fn endpoint_slice(errors: &mut Errors, object: &Value) {
    let kind = text(object, "addressType");
    required_one_of(errors, &Path::new("addressType"), kind, &["FQDN", "IPv4", "IPv6"]);
    let endpoints = list(object, "endpoints");
    let path = Path::new("endpoints");
    if endpoints.len() > 1000 {
        errors.too_many(&path, endpoints.len(), 1000);
        return;
    }
    for (at, endpoint) in endpoints.iter().enumerate() {
        if let Some(name) = endpoint["hostname"].as_str() {
            label(errors, &path.index(at).child("hostname"), name);
        }
        if let Some(node) = endpoint["nodeName"].as_str() {
            subdomain(errors, &path.index(at).child("nodeName"), node);
        }
        for (key, what) in [("forZones", "zone"), ("forNodes", "node")] {
            hints(errors, &path.index(at).child("hints").child(key), list(&endpoint["hints"], key), what);
        }
        let path = path.index(at).child("addresses");
        let addresses = list(endpoint, "addresses");
        if addresses.is_empty() {
            errors.required(&path, "must contain at least 1 address");
        } else if addresses.len() > 100 {
            errors.too_many(&path, addresses.len(), 100);
        }
        for (i, address) in addresses.iter().filter_map(Value::as_str).enumerate() {
            let here = path.index(i);
            match (kind, ip::parse_ip(address)) {
                ("IPv4" | "IPv6", None) => ip::ip(errors, &here, address),
                ("IPv4" | "IPv6", Some(ip)) => {
                    if ip.is_ipv4() != (kind == "IPv4") {
                        errors.invalid(&path, address, format!("must be an {kind} address"));
                    }
                    ip::endpoint_ip(errors, &here, address);
                }
                ("FQDN", _) => subdomain(errors, &here, address),
                _ => {}
            }
        }
    }
    slice_ports(errors, list(object, "ports"));
}

/// Zone and node hints of an endpoint: a limited number, without duplicates.
fn hints(errors: &mut Errors, path: &Path, places: &[Value], what: &str) {
    if places.len() > 8 {
        errors.too_many(path, places.len(), 8);
        return;
    }
    for (at, place) in places.iter().enumerate() {
        let (here, name) = (path.index(at).child("name"), text(place, "name"));
        if what == "zone" {
            errors.each_invalid(&here, name, &common_rules::messages(fl_types::check_label_value(name)));
        } else {
            subdomain(errors, &here, name);
        }
        if places[..at].iter().any(|other| text(other, "name") == name) {
            errors.duplicate(&here, name);
        }
    }
}

fn slice_ports(errors: &mut Errors, ports: &[Value]) {
    let path = Path::new("ports");
    if ports.len() > 20_000 {
        errors.too_many(&path, ports.len(), 20_000);
        return;
    }
    for (at, port) in ports.iter().enumerate() {
        let here = path.index(at);
        let name = text(port, "name");
        if !name.is_empty() {
            label(errors, &here.child("name"), name);
        }
        if ports[..at].iter().any(|other| text(other, "name") == name) {
            errors.duplicate(&here.child("name"), name);
        }
        errors.one_of(&here.child("protocol"), text(port, "protocol"), &["SCTP", "TCP", "UDP"]);
        if let Some(protocol) = port["appProtocol"].as_str() {
            common_rules::qualified_name(errors, &here.child("appProtocol"), protocol);
        }
    }
}

pub(crate) fn endpoint_slice_update(errors: &mut Errors, new: &Value, old: &Value) {
    errors.immutable(&Path::new("addressType"), &new["addressType"], &old["addressType"]);
}
