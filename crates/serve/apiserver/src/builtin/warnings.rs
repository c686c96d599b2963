//! Texts of `Warning` headers for writes.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::checks::{messages, quantity};
use super::field::{Path, is_set, list, text};
use super::validate::duplicate_environment;

const SURPRISING: &str = "which can result in surprising behavior; a DNS label is recommended";

fn name_warning(object: &Value, used_in: &str) -> Option<String> {
    let found = messages(fl_types::check_dns1123_label(text(&object["metadata"], "name")));
    (!found.is_empty())
        .then(|| format!("metadata.name: this is used in {used_in}, {SURPRISING}: [{}]", found.join(" ")))
}

/// Volume kinds that are on their way out or gone.
const OLD_VOLUMES: &[(&str, &str, &str)] = &[
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

/// Node labels that have a successor.
const OLD_LABELS: &[(&str, &str)] = &[
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    (
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "deprecated since v1.22; use Taints and Tolerations instead",
    ),
    ("node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"),
];

fn old_label(key: &str) -> Option<&'static str> {
    OLD_LABELS.iter().find(|(old, _)| *old == key).map(|(_, why)| *why)
}

fn template(path: &Path, spec: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for (key, _) in spec["nodeSelector"].as_object().into_iter().flatten() {
        if let Some(why) = old_label(key) {
            found.push(format!("{}: {why}", path.child("nodeSelector").key(key).as_str()));
        }
    }
    for (at, constraint) in list(spec, "topologySpreadConstraints").iter().enumerate() {
        let path = path.child("topologySpreadConstraints").index(at);
        let key = text(constraint, "topologyKey");
        if let Some(why) = old_label(key) {
            found.push(format!("{}: {key} is {why}", path.child("topologyKey").as_str()));
        }
        if !is_set(constraint, "labelSelector") {
            let at = path.child("labelSelector");
            found.push(format!("{}: a null labelSelector results in matching no pod", at.as_str()));
        }
    }
    for (at, volume) in list(spec, "volumes").iter().enumerate() {
        for (_, shown, why) in OLD_VOLUMES.iter().filter(|(key, _, _)| is_set(volume, key)) {
            found.push(format!("{}: {why}", path.child("volumes").index(at).child(shown).as_str()));
        }
    }
    repeated(&mut found, path, spec, "hostAliases", "ip");
    repeated(&mut found, path, spec, "imagePullSecrets", "name");
    for (at, secret) in list(spec, "imagePullSecrets").iter().enumerate() {
        if text(secret, "name").is_empty() {
            let at = path.child("imagePullSecrets").index(at).child("name");
            found.push(format!("{}: invalid empty name \"\"", at.as_str()));
        }
    }
    fractions(&mut found, path, spec);
    found.extend(duplicate_environment(path, spec, "initContainers"));
    found.extend(duplicate_environment(path, spec, "containers"));
    ports(&mut found, path, spec);
    for kind in ["podAffinity", "podAntiAffinity"] {
        affinity(&mut found, &path.child("affinity").child(kind), &spec["affinity"][kind]);
    }
    found
}

/// A value that stands twice in a list that should hold it once.
fn repeated(found: &mut Vec<String>, path: &Path, spec: &Value, name: &str, key: &str) {
    let mut seen = HashSet::new();
    for (at, item) in list(spec, name).iter().enumerate() {
        let value = text(item, key);
        if !seen.insert(value) {
            let at = path.child(name).index(at).child(key);
            found.push(format!("{}: duplicate {key} {value:?}", at.as_str()));
        }
    }
}

fn containers(spec: &Value) -> impl Iterator<Item = (&'static str, usize, &Value)> {
    ["initContainers", "containers"].into_iter().flat_map(move |name| {
        list(spec, name).iter().enumerate().map(move |(at, container)| (name, at, container))
    })
}

/// Bytes come in whole pieces.
fn fractions(found: &mut Vec<String>, path: &Path, spec: &Value) {
    for (name, at, container) in containers(spec) {
        for resource in ["memory", "ephemeral-storage"] {
            for key in ["limits", "requests"] {
                let Some(amount) = quantity(&container["resources"][key][resource]) else { continue };
                if amount.milli_value().is_some_and(|m| m % 1000 != 0) {
                    let at = path.child(name).index(at).child("resources").child(key).key(resource);
                    let shown = amount.to_string();
                    let why = format!("fractional byte value {shown:?} is invalid, must be an integer");
                    found.push(format!("{}: {why}", at.as_str()));
                }
            }
        }
    }
}

fn ports(found: &mut Vec<String>, path: &Path, spec: &Value) {
    let mut numbers: HashMap<String, Vec<(Path, &Value)>> = HashMap::new();
    for (name, at, container) in containers(spec) {
        for (i, port) in list(container, "ports").iter().enumerate() {
            let here = path.child(name).index(at).child("ports").index(i);
            let key = format!("{}/{}", port["containerPort"], text(port, "protocol"));
            let others = numbers.entry(key).or_default();
            let host = |port: &Value| port["hostPort"].as_i64().unwrap_or(0);
            let ip = |port: &Value| text(port, "hostIP").to_owned();
            for (there, other) in others.iter() {
                let kind = if ip(port) == ip(other) && host(port) == host(other) {
                    "duplicate"
                } else if host(port) == 0 || host(other) == 0 {
                    "overlapping"
                } else if host(port) == host(other) && ip(port).is_empty() != ip(other).is_empty() {
                    "dangerously ambiguous"
                } else {
                    continue;
                };
                found.push(format!("{}: {kind} port definition with {}", here.as_str(), there.as_str()));
            }
            others.push((here, port));
        }
    }
    let mut names: HashMap<&str, Path> = HashMap::new();
    for (name, at, container) in containers(spec) {
        for (i, port) in list(container, "ports").iter().enumerate() {
            let (here, port) = (path.child(name).index(at).child("ports").index(i), text(port, "name"));
            if port.is_empty() {
                continue;
            }
            match names.get(port) {
                Some(first) => found.push(format!(
                    "{}: duplicate port name {port:?} with {}, services and probes that select ports by name will use {}",
                    here.as_str(), first.as_str(), first.as_str()
                )),
                None => {
                    names.insert(port, here);
                }
            }
        }
    }
}

fn affinity(found: &mut Vec<String>, path: &Path, affinity: &Value) {
    let mut term = |path: Path, term: &Value| {
        if !is_set(term, "labelSelector") {
            let at = path.child("labelSelector");
            found.push(format!("{}: a null labelSelector results in matching no pod", at.as_str()));
        }
    };
    let required = path.child("requiredDuringSchedulingIgnoredDuringExecution");
    for (at, one) in list(affinity, "requiredDuringSchedulingIgnoredDuringExecution").iter().enumerate() {
        term(required.index(at), one);
    }
    let preferred = path.child("preferredDuringSchedulingIgnoredDuringExecution");
    for (at, one) in list(affinity, "preferredDuringSchedulingIgnoredDuringExecution").iter().enumerate() {
        term(preferred.index(at).child("podAffinityTerm"), &one["podAffinityTerm"]);
    }
}

pub(super) fn pod(object: &Value, old: Option<&Value>) -> Vec<String> {
    if old.is_some() {
        return Vec::new();
    }
    let mut found: Vec<String> = name_warning(object, "the Pod's hostname").into_iter().collect();
    found.extend(template(&Path::new("spec"), &object["spec"]));
    found
}

/// Controllers of pods: warned about on create and when the template changes.
pub(super) fn workload(object: &Value, old: Option<&Value>) -> Vec<String> {
    let kind = text(object, "kind");
    let (path, spec) = match kind {
        "CronJob" => (
            "spec.jobTemplate.spec.template.spec",
            &object["spec"]["jobTemplate"]["spec"]["template"]["spec"],
        ),
        _ => ("spec.template.spec", &object["spec"]["template"]["spec"]),
    };
    let mut found = Vec::new();
    match old {
        None if matches!(kind, "Deployment" | "ReplicaSet" | "Job" | "CronJob" | "ReplicationController") => {
            found.extend(name_warning(object, "Pod names and hostnames"));
        }
        Some(old) if old["spec"] == object["spec"] => return Vec::new(),
        _ => {}
    }
    found.extend(template(&Path::new(path), spec));
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
    if text(spec, "clusterIP") == "None" {
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

/// A TLS secret whose certificate and key cannot be used.
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
