//! Warnings about pods and pod templates.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::claim_spec;
use super::ip_addresses::address;
use crate::field::{Path, is_set, list, text};
use crate::validate::common_rules::messages;
use crate::validate::duplicate_environment;
use crate::validate::resources::quantity;

/// Deprecated and removed volume sources.
const DEPRECATED_VOLUMES: &[(&str, &str, &str)] = &[
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

/// Deprecated node labels and their replacements.
const DEPRECATED_LABELS: &[(&str, &str)] = &[
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

pub(super) fn deprecated_label(key: &str) -> Option<&'static str> {
    DEPRECATED_LABELS.iter().find(|(old, _)| *old == key).map(|(_, why)| *why)
}

/// Annotations that have been replaced by fields.
const DEPRECATED_ANNOTATIONS: &[(&str, &str)] = &[
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    ("security.alpha.kubernetes.io/sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
];

const DEPRECATED_SECCOMP: &str = "non-functional in v1.27+; use the \"seccompProfile\" field instead";
const DEPRECATED_APP_ARMOR: &str = "deprecated since v1.30; use the \"appArmorProfile\" field instead";

/// Warnings about the deprecated sources of a volume, except the given ones.
pub(super) fn deprecated_volumes(found: &mut Vec<String>, path: &Path, volume: &Value, without: &[&str]) {
    for (key, shown, why) in DEPRECATED_VOLUMES {
        if is_set(volume, key) && !without.contains(key) {
            found.push(format!("{}: {why}", path.child(shown).as_str()));
        }
    }
}

/// Warnings about a pod or a pod template; `embedded` if it is part of another object.
pub(super) fn template(at: &Path, object: &Value, embedded: bool) -> Vec<String> {
    let spec = &object["spec"];
    let path = &at.child("spec");
    let mut found = Vec::new();
    for (key, _) in spec["nodeSelector"].as_object().into_iter().flatten() {
        if let Some(why) = deprecated_label(key) {
            found.push(format!("{}: {why}", path.child("nodeSelector").key(key).as_str()));
        }
    }
    node_affinity(&mut found, &path.at("affinity.nodeAffinity"), &spec["affinity"]["nodeAffinity"]);
    for (at, constraint) in list(spec, "topologySpreadConstraints").iter().enumerate() {
        let path = path.child("topologySpreadConstraints").index(at);
        let key = text(constraint, "topologyKey");
        if let Some(why) = deprecated_label(key) {
            found.push(format!("{}: {key} is {why}", path.child("topologyKey").as_str()));
        }
        if !is_set(constraint, "labelSelector") {
            let at = path.child("labelSelector");
            found.push(format!("{}: a null labelSelector results in matching no pod", at.as_str()));
        }
    }
    annotations(&mut found, &at.at("metadata.annotations"), object, embedded);
    for (at, volume) in list(spec, "volumes").iter().enumerate() {
        let path = path.child("volumes").index(at);
        deprecated_volumes(&mut found, &path, volume, &[]);
        let claim = &volume["ephemeral"]["volumeClaimTemplate"]["spec"];
        claim_spec(&mut found, &path.at("ephemeral.volumeClaimTemplate.spec"), claim);
        overlapping_paths(&mut found, volume);
    }
    duplicates(&mut found, path, spec, "hostAliases", "ip");
    duplicates(&mut found, path, spec, "imagePullSecrets", "name");
    for (at, secret) in list(spec, "imagePullSecrets").iter().enumerate() {
        if text(secret, "name").is_empty() {
            let at = path.child("imagePullSecrets").index(at).child("name");
            found.push(format!("{}: invalid empty name \"\"", at.as_str()));
        }
    }
    fractional_resources(&mut found, path, spec);
    found.extend(duplicate_environment(path, spec, "initContainers"));
    found.extend(duplicate_environment(path, spec, "containers"));
    ports(&mut found, path, spec);
    if spec["terminationGracePeriodSeconds"].as_i64().is_some_and(|n| n < 0) {
        let path = path.child("terminationGracePeriodSeconds");
        let why = "must be >= 0; negative values are invalid and will be treated as 1";
        found.push(format!("{}: {why}", path.as_str()));
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        affinity(&mut found, &path.child("affinity").child(kind), &spec["affinity"][kind]);
    }
    for (at, one) in list(&spec["dnsConfig"], "nameservers").iter().enumerate() {
        let path = path.at("dnsConfig.nameservers").index(at);
        found.extend(address(&path, one.as_str().unwrap_or_default()));
    }
    for (at, alias) in list(spec, "hostAliases").iter().enumerate() {
        found.extend(address(&path.child("hostAliases").index(at).child("ip"), text(alias, "ip")));
    }
    found
}

fn annotations(found: &mut Vec<String>, path: &Path, object: &Value, embedded: bool) {
    let (spec, held) = (&object["spec"], &object["metadata"]["annotations"]);
    let mut warn = |key: &str, why: &str| {
        if held[key].is_string() {
            found.push(format!("{}: {why}", path.key(key).as_str()));
        }
    };
    for (key, why) in DEPRECATED_ANNOTATIONS {
        warn(key, why);
    }
    if !is_set(&spec["securityContext"], "seccompProfile") {
        warn("seccomp.security.alpha.kubernetes.io/pod", DEPRECATED_SECCOMP);
    }
    for (_, _, container) in containers(spec) {
        let (name, context) = (text(container, "name"), &container["securityContext"]);
        if !is_set(context, "seccompProfile") {
            warn(&format!("container.seccomp.security.alpha.kubernetes.io/{name}"), DEPRECATED_SECCOMP);
        }
        if embedded && !is_set(context, "appArmorProfile") {
            warn(&format!("container.apparmor.security.beta.kubernetes.io/{name}"), DEPRECATED_APP_ARMOR);
        }
    }
}

/// Warnings about a node selector term: deprecated labels and, if asked for, values that are not label
/// values.
pub(super) fn node_term(found: &mut Vec<String>, path: &Path, term: &Value, values: bool) {
    for (at, expression) in list(term, "matchExpressions").iter().enumerate() {
        let path = path.child("matchExpressions").index(at);
        let key = text(expression, "key");
        if let Some(why) = deprecated_label(key) {
            found.push(format!("{}: {key} is {why}", path.child("key").as_str()));
        }
        for (i, value) in list(expression, "values").iter().enumerate().filter(|_| values) {
            let value = value.as_str().unwrap_or_default();
            for why in messages(fl_types::check_label_value(value)) {
                let path = path.child("values").index(i);
                found.push(format!("{}: {value} is invalid, {why}", path.as_str()));
            }
        }
    }
}

fn node_affinity(found: &mut Vec<String>, path: &Path, affinity: &Value) {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
    for (at, term) in list(&affinity[REQUIRED], "nodeSelectorTerms").iter().enumerate() {
        node_term(found, &path.child(REQUIRED).child("nodeSelectorTerms").index(at), term, false);
    }
    for (at, term) in list(affinity, PREFERRED).iter().enumerate() {
        node_term(found, &path.child(PREFERRED).index(at).child("preference"), &term["preference"], true);
    }
}

/// Warns about files of one volume with overlapping paths.
fn overlapping_paths(found: &mut Vec<String>, volume: &Value) {
    let items = |holder: &Value, source: &str| -> Vec<(String, String)> {
        let paths = list(holder, "items").iter().map(|item| text(item, "path"));
        paths.map(|path| (path.trim_end_matches('/').to_owned(), source.to_owned())).collect()
    };
    let (paths, what) = if is_set(volume, "configMap") {
        let name = text(&volume["configMap"], "name");
        (items(&volume["configMap"], ""), format!("ConfigMap {name:?}"))
    } else if is_set(volume, "secret") {
        let name = text(&volume["secret"], "secretName");
        (items(&volume["secret"], ""), format!("Secret {name:?}"))
    } else if is_set(volume, "downwardAPI") {
        (items(&volume["downwardAPI"], ""), "DownwardAPI".to_owned())
    } else if is_set(volume, "projected") {
        let mut paths = Vec::new();
        for source in list(&volume["projected"], "sources") {
            if source.as_object().is_none_or(serde_json::Map::is_empty) {
                found.push(format!("volume {:?} (Projected) has no sources provided", text(volume, "name")));
            }
            let named = |kind: &str| format!("{kind} {:?}", text(&source[kind_key(kind)], "name"));
            paths.extend(items(&source["configMap"], &named("ConfigMap")));
            paths.extend(items(&source["secret"], &named("Secret")));
            paths.extend(items(&source["downwardAPI"], "DownwardAPI"));
            let token = text(&source["serviceAccountToken"], "path").trim_end_matches('/');
            paths.push((token.to_owned(), "ServiceAccountToken".to_owned()));
        }
        (paths, "Projected".to_owned())
    } else {
        return;
    };
    let shown = |(path, source): &(String, String)| {
        if source.is_empty() { format!("{path:?}") } else { format!("{path:?} ({source})") }
    };
    for (at, one) in paths.iter().enumerate().filter(|(_, one)| !one.0.is_empty()) {
        for other in paths[..at].iter().filter(|other| !other.0.is_empty()) {
            let (a, b) = (format!("{}/", one.0), format!("{}/", other.0));
            if a.starts_with(&b) || b.starts_with(&a) {
                let name = text(volume, "name");
                let (one, other) = (shown(one), shown(other));
                found.push(format!("volume {name:?} ({what}): overlapping paths: {one} with {other}"));
            }
        }
    }
}

fn kind_key(kind: &str) -> &'static str {
    if kind == "Secret" { "secret" } else { "configMap" }
}

/// Whether a quantity of bytes is fractional.
pub(super) fn fractional(found: &mut Vec<String>, path: &Path, value: &Value) {
    let Some(amount) = quantity(value) else { return };
    if amount.milli_value().is_some_and(|m| m % 1000 != 0) {
        let shown = amount.to_string();
        let why = format!("fractional byte value {shown:?} is invalid, must be an integer");
        found.push(format!("{}: {why}", path.as_str()));
    }
}

/// Warns about duplicate values of a list.
fn duplicates(found: &mut Vec<String>, path: &Path, spec: &Value, name: &str, key: &str) {
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

/// Warns about fractional byte quantities.
fn fractional_resources(found: &mut Vec<String>, path: &Path, spec: &Value) {
    for resource in ["memory", "ephemeral-storage"] {
        fractional(found, &path.child("overhead").key(resource), &spec["overhead"][resource]);
    }
    for (name, at, container) in containers(spec) {
        for resource in ["memory", "ephemeral-storage"] {
            for key in ["limits", "requests"] {
                let path = path.child(name).index(at).child("resources").child(key).key(resource);
                fractional(found, &path, &container["resources"][key][resource]);
            }
        }
    }
}

fn ports(found: &mut Vec<String>, path: &Path, spec: &Value) {
    let mut numbers: HashMap<String, Vec<(Path, &Value)>> = HashMap::new();
    for (name, at, container) in containers(spec) {
        for (i, port) in list(container, "ports").iter().enumerate() {
            let here = path.child(name).index(at).child("ports").index(i);
            if !text(port, "hostIP").is_empty() && port["hostPort"].as_i64().unwrap_or(0) == 0 {
                found.push(format!(
                    "{}: hostIP set without hostPort: {{Name:{} HostPort:0 ContainerPort:{} Protocol:{} HostIP:{}}}",
                    here.as_str(),
                    text(port, "name"),
                    port["containerPort"],
                    text(port, "protocol"),
                    text(port, "hostIP")
                ));
            }
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
