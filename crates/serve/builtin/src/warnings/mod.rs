//! `Warning` headers of writes.

mod crd;
mod ip_addresses;
mod pod_template;

pub(super) use crd::definition;

use serde_json::Value;

use crate::field::{Path, is_set, list, text};
use crate::validate::common_rules::messages;
use ip_addresses::{address, network};
use pod_template::{deprecated_label, deprecated_volumes, fractional, node_term, template};

const SURPRISING: &str = "which can result in surprising behavior; a DNS label is recommended";

fn name_warning(object: &Value, used_in: &str) -> Option<String> {
    let found = messages(fl_types::check_dns1123_label(text(&object["metadata"], "name")));
    (!found.is_empty())
        .then(|| format!("metadata.name: this is used in {used_in}, {SURPRISING}: [{}]", found.join(" ")))
}

fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["annotations"][key].as_str()
}

pub(super) fn pod(object: &Value, old: Option<&Value>) -> Vec<String> {
    if old.is_some() {
        return Vec::new();
    }
    let mut found: Vec<String> = name_warning(object, "the Pod's hostname").into_iter().collect();
    found.extend(template(&Path::new(""), object, false));
    found
}

/// Warnings about a PodTemplate, on create and when the template changes.
pub(super) fn pod_template(object: &Value, old: Option<&Value>) -> Vec<String> {
    if old.is_some_and(|old| old["template"] == object["template"]) {
        return Vec::new();
    }
    template(&Path::new("template"), &object["template"], true)
}

/// Warnings about workloads, on create and when the spec changes.
pub(super) fn workload(object: &Value, old: Option<&Value>) -> Vec<String> {
    let kind = text(object, "kind");
    let (path, holder) = match kind {
        "CronJob" => ("spec.jobTemplate.spec.template", &object["spec"]["jobTemplate"]["spec"]),
        _ => ("spec.template", &object["spec"]),
    };
    let mut found = Vec::new();
    if old.is_none()
        && matches!(kind, "Deployment" | "ReplicaSet" | "Job" | "CronJob" | "ReplicationController")
    {
        found.extend(name_warning(object, "Pod names and hostnames"));
    }
    let unchanged = |old: &Value| match kind {
        // Only a change of the template counts for a DaemonSet.
        "DaemonSet" => old["spec"]["template"] == object["spec"]["template"],
        _ => old["spec"] == object["spec"],
    };
    if !old.is_some_and(unchanged) {
        found.extend(template(&Path::new(path), &holder["template"], true));
    }
    if kind == "StatefulSet" {
        stateful_set(&mut found, object, old);
    }
    if kind == "CronJob" && old.is_some() && text(&object["spec"], "schedule").contains("TZ") {
        found.push("cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details".to_owned());
    }
    found
}

fn stateful_set(found: &mut Vec<String>, object: &Value, old: Option<&Value>) {
    let claims = Path::new("spec").child("volumeClaimTemplates");
    for (at, claim) in list(&object["spec"], "volumeClaimTemplates").iter().enumerate() {
        // Upstream has different paths of a claim on create and on update.
        let path = if old.is_some() { claims.index(at).child("Spec") } else { claims.index(at) };
        claim_spec(found, &path, &claim["spec"]);
    }
    if object["spec"]["revisionHistoryLimit"].as_i64().is_some_and(|n| n < 0) {
        let why = "a negative value retains all historical revisions; a value >= 0 is recommended";
        found.push(format!("spec.revisionHistoryLimit: {why}"));
    }
}

/// Warns about fractional byte quantities of a claim.
fn claim_spec(found: &mut Vec<String>, path: &Path, spec: &Value) {
    for key in ["requests", "limits"] {
        let path = path.child("resources").child(key).key("storage");
        fractional(found, &path, &spec["resources"][key]["storage"]);
    }
}

const DEPRECATED_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

pub(super) fn claim(object: &Value, _old: Option<&Value>) -> Vec<String> {
    let mut found = Vec::new();
    if annotation(object, DEPRECATED_CLASS).is_some() {
        found.push(format!(
            "metadata.annotations[{DEPRECATED_CLASS}]: deprecated since v1.8; use \"storageClassName\" attribute instead"
        ));
    }
    claim_spec(&mut found, &Path::new("spec"), &object["spec"]);
    found
}

pub(super) fn volume(object: &Value, _old: Option<&Value>) -> Vec<String> {
    let spec = &object["spec"];
    let mut found = Vec::new();
    const DEPRECATED_OPTIONS: &str = "volume.beta.kubernetes.io/mount-options";
    for (key, why) in [
        (DEPRECATED_CLASS, "deprecated since v1.8; use \"storageClassName\" attribute instead"),
        (DEPRECATED_OPTIONS, "deprecated since v1.31; use \"mountOptions\" attribute instead"),
    ] {
        if annotation(object, key).is_some() {
            found.push(format!("metadata.annotations[{key}]: {why}"));
        }
    }
    if text(spec, "persistentVolumeReclaimPolicy") == "Recycle" {
        found.push("spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.".to_owned());
    }
    let terms = Path::new("spec").at("nodeAffinity.required.nodeSelectorTerms");
    for (at, term) in list(&spec["nodeAffinity"]["required"], "nodeSelectorTerms").iter().enumerate() {
        node_term(&mut found, &terms.index(at), term, false);
    }
    deprecated_volumes(&mut found, &Path::new("spec"), spec, &["gitRepo", "flocker", "quobyte"]);
    found
}

pub(super) fn storage_class(object: &Value, _old: Option<&Value>) -> Vec<String> {
    let mut found = Vec::new();
    for (i, topology) in list(object, "allowedTopologies").iter().enumerate() {
        for (j, expression) in list(topology, "matchLabelExpressions").iter().enumerate() {
            if let Some(why) = deprecated_label(text(expression, "key")) {
                found.push(format!("allowedTopologies[{i}].matchLabelExpressions[{j}].key: {why}"));
            }
        }
    }
    found
}

pub(super) fn storage_capacity(object: &Value, _old: Option<&Value>) -> Vec<String> {
    let mut found = Vec::new();
    let selector = &object["nodeTopology"];
    node_term(&mut found, &Path::new("nodeTopology"), selector, false);
    for key in selector["matchLabels"].as_object().into_iter().flatten().map(|(key, _)| key) {
        if let Some(why) = deprecated_label(key) {
            found.push(format!("nodeTopology.matchLabels.{key}: {why}"));
        }
    }
    found
}

pub(super) fn runtime_class(object: &Value, _old: Option<&Value>) -> Vec<String> {
    let labels = object["scheduling"]["nodeSelector"].as_object().into_iter().flatten();
    labels
        .filter_map(|(key, _)| Some(format!("scheduling.nodeSelector: {}", deprecated_label(key)?)))
        .collect()
}

pub(super) fn node(object: &Value, _old: Option<&Value>) -> Vec<String> {
    let spec = &object["spec"];
    let mut found = Vec::new();
    if is_set(spec, "configSource") {
        found.push("spec.configSource: the feature is removed".to_owned());
    }
    if !text(spec, "externalID").is_empty() {
        found.push("spec.externalID: this field is deprecated, and is unused by Kubernetes".to_owned());
    }
    for (at, cidr) in list(spec, "podCIDRs").iter().enumerate() {
        let path = Path::new("spec").child("podCIDRs").index(at);
        found.extend(network(&path, cidr.as_str().unwrap_or_default()));
    }
    found
}

pub(super) fn service_account(object: &Value, old: Option<&Value>) -> Vec<String> {
    const ENFORCE: &str = "kubernetes.io/enforce-mountable-secrets";
    if annotation(object, ENFORCE).is_none() || old.is_some_and(|old| annotation(old, ENFORCE).is_some()) {
        return Vec::new();
    }
    vec![format!(
        "metadata.annotations[{ENFORCE}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
    )]
}

pub(super) fn ingress(object: &Value, old: Option<&Value>) -> Vec<String> {
    const CLASS: &str = "kubernetes.io/ingress.class";
    if old.is_some() || annotation(object, CLASS).is_none() || is_set(&object["spec"], "ingressClassName") {
        return Vec::new();
    }
    vec![format!("annotation {CLASS:?} is deprecated, please use 'spec.ingressClassName' instead")]
}

pub(super) fn network_policy(object: &Value, _old: Option<&Value>) -> Vec<String> {
    let mut found = Vec::new();
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for (i, rule) in list(&object["spec"], direction).iter().enumerate() {
            for (j, peer) in list(rule, peers).iter().enumerate() {
                let block = &peer["ipBlock"];
                let path = Path::new("spec").child(direction).index(i).child(peers).index(j).child("ipBlock");
                found.extend(network(&path.child("cidr"), text(block, "cidr")));
                for (k, except) in list(block, "except").iter().enumerate() {
                    let path = path.child("except").index(k);
                    found.extend(network(&path, except.as_str().unwrap_or_default()));
                }
            }
        }
    }
    found
}

/// Whether one of Kubernetes' own controllers wrote the addresses, which need no warning.
fn is_managed_by(object: &Value, label: &str, by: &[&str]) -> bool {
    object["metadata"]["labels"][label].as_str().is_some_and(|name| by.contains(&name))
}

pub(super) fn endpoints(object: &Value, _old: Option<&Value>) -> Vec<String> {
    let mut found = Vec::new();
    if is_managed_by(object, "endpoints.kubernetes.io/managed-by", &["endpoint-controller"]) {
        return found;
    }
    for (i, subset) in list(object, "subsets").iter().enumerate() {
        for kind in ["addresses", "notReadyAddresses"] {
            for (j, one) in list(subset, kind).iter().enumerate() {
                let path = Path::new("subsets").index(i).child(kind).index(j).child("ip");
                found.extend(address(&path, text(one, "ip")));
            }
        }
    }
    found
}

pub(super) fn endpoint_slice(object: &Value, old: Option<&Value>) -> Vec<String> {
    let mut found = Vec::new();
    if old.is_none() && text(object, "addressType") == "FQDN" {
        found.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
    }
    const BY: &[&str] = &["endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"];
    if is_managed_by(object, "endpointslice.kubernetes.io/managed-by", BY) {
        return found;
    }
    for (i, endpoint) in list(object, "endpoints").iter().enumerate() {
        for (j, one) in list(endpoint, "addresses").iter().enumerate() {
            let path = Path::new("endpoints").index(i).child("addresses").index(j);
            found.extend(address(&path, one.as_str().unwrap_or_default()));
        }
    }
    found
}

/// Warnings about the IP addresses of a status.
pub(super) fn status(object: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let status = &object["status"];
    match text(object, "kind") {
        "Service" | "Ingress" => {
            for (at, one) in list(&status["loadBalancer"], "ingress").iter().enumerate() {
                let path = Path::new("status").at("loadBalancer.ingress").index(at);
                found.extend(address(&path, text(one, "ip")));
            }
        }
        "Pod" => {
            for key in ["podIPs", "hostIPs"] {
                for (at, one) in list(status, key).iter().enumerate() {
                    let path = Path::new("status").child(key).index(at).child("ip");
                    found.extend(address(&path, text(one, "ip")));
                }
            }
        }
        _ => {}
    }
    found
}

pub(super) fn service(object: &Value, _old: Option<&Value>) -> Vec<String> {
    let spec = &object["spec"];
    let mut found = Vec::new();
    const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
    if object["metadata"]["annotations"][HINTS].is_string() {
        found.push(format!(
            "annotation {HINTS} is deprecated, please use service.kubernetes.io/topology-mode instead"
        ));
    }
    if text(spec, "type") != "ExternalName" && text(spec, "clusterIP") != "None" {
        addresses_of(&mut found, spec, "clusterIPs");
    }
    if text(spec, "type") == "ClusterIP" && text(spec, "clusterIP") == "None" {
        if !text(spec, "loadBalancerIP").is_empty() {
            found.push("spec.loadBalancerIP is ignored for headless services".to_owned());
        }
        if !list(spec, "externalIPs").is_empty() {
            found.push("spec.externalIPs is ignored for headless services".to_owned());
        }
        if text(spec, "sessionAffinity") != "None" {
            found.push("spec.SessionAffinity is ignored for headless services".to_owned());
        }
    }
    addresses_of(&mut found, spec, "externalIPs");
    found.extend(address(&Path::new("spec").child("loadBalancerIP"), text(spec, "loadBalancerIP")));
    for (at, range) in list(spec, "loadBalancerSourceRanges").iter().enumerate() {
        let path = Path::new("spec").child("loadBalancerSourceRanges").index(at);
        found.extend(network(&path, range.as_str().unwrap_or_default()));
    }
    match text(spec, "type") {
        "ExternalName" if !list(spec, "externalIPs").is_empty() => {
            found.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_owned());
        }
        "ExternalName" => {}
        _ if !text(spec, "externalName").is_empty() => {
            found.push("spec.externalName is ignored when spec.type is not \"ExternalName\"".to_owned());
        }
        _ => {}
    }
    found
}

fn addresses_of(found: &mut Vec<String>, spec: &Value, key: &str) {
    for (at, one) in list(spec, key).iter().enumerate() {
        found.extend(address(&Path::new("spec").child(key).index(at), one.as_str().unwrap_or_default()));
    }
}

/// Warns about a TLS secret whose certificate and key are unusable.
pub(super) fn secret(object: &Value, _old: Option<&Value>) -> Vec<String> {
    use base64::Engine as _;
    if text(object, "type") != "kubernetes.io/tls" {
        return Vec::new();
    }
    let data = |key: &str| {
        let bytes = base64::engine::general_purpose::STANDARD.decode(text(&object["data"], key));
        String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
    };
    let has = |text: &str, what: fn(&str) -> bool| {
        text.lines().filter_map(|l| l.strip_prefix("-----BEGIN ")?.strip_suffix("-----")).any(what)
    };
    let (certificate, key) = (data("tls.crt"), data("tls.key"));
    let why = if !has(&certificate, |_| true) {
        "tls: failed to find any PEM data in certificate input"
    } else if !has(&certificate, |kind| kind == "CERTIFICATE") {
        "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched"
    } else if !has(&key, |_| true) {
        "tls: failed to find any PEM data in key input"
    } else if !has(&key, |kind| kind == "PRIVATE KEY" || kind.ends_with(" PRIVATE KEY")) {
        "tls: found a certificate rather than a key in the PEM for the private key"
    } else {
        return Vec::new();
    };
    vec![why.to_owned()]
}
