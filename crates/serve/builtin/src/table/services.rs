//! Tables of services, networking, events and leases.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Printer, age, labels, name, or, selector, shortened};
use crate::field::{is_set, list, text};

pub(super) fn printer(group: &str, kind: &str) -> Option<&'static Printer> {
    Some(match (group, kind) {
        ("", "Service") => {
            &Printer { columns: "Name@|Type|Cluster-IP|External-IP|Port(s)|Age|+Selector", cells: service }
        }
        ("", "Endpoints") => &Printer { columns: "Name@|Endpoints|Age", cells: endpoints },
        ("discovery.k8s.io", "EndpointSlice") => {
            &Printer { columns: "Name@|AddressType|Ports|Endpoints|Age", cells: endpoint_slice }
        }
        ("networking.k8s.io", "Ingress") => {
            &Printer { columns: "Name@|Class|Hosts|Address|Ports|Age", cells: ingress }
        }
        ("networking.k8s.io", "IngressClass") => {
            &Printer { columns: "Name@|Controller|Parameters|Age", cells: ingress_class }
        }
        ("networking.k8s.io", "NetworkPolicy") => &Printer {
            columns: "Name@|Pod-Selector|Age",
            cells: |o, now| vec![name(o), selector(&o["spec"]["podSelector"]), age(o, now)],
        },
        ("networking.k8s.io", "ServiceCIDR") => &Printer {
            columns: "Name@|CIDRs|Age",
            cells: |o, now| {
                let cidrs: Vec<&str> = list(&o["spec"], "cidrs").iter().filter_map(Value::as_str).collect();
                vec![name(o), json!(cidrs.join(",")), age(o, now)]
            },
        },
        ("networking.k8s.io", "IPAddress") => &Printer {
            columns: "Name@|ParentRef",
            cells: |o, _| {
                let parent = &o["spec"]["parentRef"];
                let kind = match text(parent, "group") {
                    "" => text(parent, "resource").to_owned(),
                    group => format!("{}.{group}", text(parent, "resource")),
                };
                vec![name(o), json!(format!("{kind}/{}/{}", text(parent, "namespace"), text(parent, "name")))]
            },
        },
        ("" | "events.k8s.io", "Event") => &Printer {
            columns: "Last Seen|Type|Reason|Object|+Subobject|+Source|Message|+First Seen|+Count|+Name@",
            cells: |o, now| super::pods::event(&crate::versions::event_to_core(o.clone()), now),
        },
        ("coordination.k8s.io", "Lease") => &Printer {
            columns: "Name@|Holder|Age",
            cells: |o, now| vec![name(o), json!(text(&o["spec"], "holderIdentity")), age(o, now)],
        },
        _ => return None,
    })
}

fn load_balancer(status: &Value) -> String {
    let points: BTreeSet<&str> = list(&status["loadBalancer"], "ingress")
        .iter()
        .map(|i| if text(i, "ip").is_empty() { text(i, "hostname") } else { text(i, "ip") })
        .filter(|point| !point.is_empty())
        .collect();
    points.into_iter().collect::<Vec<_>>().join(",")
}

fn external_ip(o: &Value) -> String {
    let spec = &o["spec"];
    let ips: Vec<&str> = list(spec, "externalIPs").iter().filter_map(Value::as_str).collect();
    match text(spec, "type") {
        "ClusterIP" | "NodePort" if ips.is_empty() => "<none>".to_owned(),
        "ClusterIP" | "NodePort" => ips.join(","),
        "LoadBalancer" => {
            let balancer = load_balancer(&o["status"]);
            let all: Vec<&str> =
                Some(balancer.as_str()).filter(|b| !b.is_empty()).into_iter().chain(ips).collect();
            if all.is_empty() { "<pending>".to_owned() } else { all.join(",") }
        }
        "ExternalName" => text(spec, "externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

fn service(o: &Value, now: i64) -> Vec<Value> {
    let spec = &o["spec"];
    let ports: Vec<String> = list(spec, "ports")
        .iter()
        .map(|p| {
            let (port, protocol) = (p["port"].as_i64().unwrap_or(0), text(p, "protocol"));
            match p["nodePort"].as_i64().unwrap_or(0) {
                0 => format!("{port}/{protocol}"),
                node => format!("{port}:{node}/{protocol}"),
            }
        })
        .collect();
    vec![
        name(o),
        json!(text(spec, "type")),
        or(&spec["clusterIPs"][0], "<none>"),
        json!(external_ip(o)),
        json!(if ports.is_empty() { "<none>".to_owned() } else { ports.join(",") }),
        age(o, now),
        labels(spec, "selector"),
    ]
}

fn endpoints(o: &Value, now: i64) -> Vec<Value> {
    let mut points = Vec::new();
    for subset in list(o, "subsets") {
        let ports = list(subset, "ports");
        if ports.is_empty() {
            points.extend(list(subset, "addresses").iter().map(|a| text(a, "ip").to_owned()));
        }
        for port in ports {
            let number = port["port"].as_i64().unwrap_or(0);
            points.extend(list(subset, "addresses").iter().map(|a| match text(a, "ip") {
                ip if ip.contains(':') => format!("[{ip}]:{number}"),
                ip => format!("{ip}:{number}"),
            }));
        }
    }
    let shown = if list(o, "subsets").is_empty() { "<none>".to_owned() } else { shortened(&points, 3) };
    vec![name(o), json!(shown), age(o, now)]
}

fn endpoint_slice(o: &Value, now: i64) -> Vec<Value> {
    let ports: Vec<String> = list(o, "ports")
        .iter()
        .map(|p| match (p["port"].as_i64(), p["name"].as_str()) {
            (Some(port), _) => port.to_string(),
            (None, Some(name)) => name.to_owned(),
            (None, None) => "*".to_owned(),
        })
        .collect();
    let addresses: Vec<String> = list(o, "endpoints")
        .iter()
        .flat_map(|e| list(e, "addresses"))
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    let shown = |items: &[String]| match shortened(items, 3) {
        text if text.is_empty() => "<unset>".to_owned(),
        text => text,
    };
    vec![name(o), json!(text(o, "addressType")), json!(shown(&ports)), json!(shown(&addresses)), age(o, now)]
}

fn ingress(o: &Value, now: i64) -> Vec<Value> {
    let spec = &o["spec"];
    let rules = list(spec, "rules");
    let mut hosts: Vec<&str> = Vec::new();
    let mut more = false;
    for rule in rules {
        more |= hosts.len() == 3;
        if !more && !text(rule, "host").is_empty() {
            hosts.push(text(rule, "host"));
        }
    }
    let mut shown = if hosts.is_empty() { "*".to_owned() } else { hosts.join(",") };
    if more {
        shown = format!("{shown} + {} more...", rules.len() - 3);
    }
    let ports = if list(spec, "tls").is_empty() { "80" } else { "80, 443" };
    vec![
        name(o),
        or(&spec["ingressClassName"], "<none>"),
        json!(shown),
        json!(load_balancer(&o["status"])),
        json!(ports),
        age(o, now),
    ]
}

fn ingress_class(o: &Value, now: i64) -> Vec<Value> {
    let parameters = &o["spec"]["parameters"];
    let shown = if parameters.is_null() {
        "<none>".to_owned()
    } else {
        let kind = text(parameters, "kind");
        let kind = if is_set(parameters, "apiGroup") {
            format!("{kind}.{}", text(parameters, "apiGroup"))
        } else {
            kind.to_owned()
        };
        format!("{kind}/{}", text(parameters, "name"))
    };
    vec![name(o), json!(text(&o["spec"], "controller")), json!(shown), age(o, now)]
}
