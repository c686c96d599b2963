//! Pods and pod templates.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::container;
use super::volume;
use crate::field::{Errors, Path, entries, is_set, list, text};
use crate::validate::common_rules::{self, label, labels, subdomain};
use crate::validate::ip;
use crate::validate::resources;

pub(crate) fn pod(errors: &mut Errors, pod: &Value) {
    let path = Path::new("spec");
    pod_annotations(
        errors,
        &Path::new("metadata.annotations"),
        &pod["metadata"]["annotations"],
        &pod["spec"],
    );
    spec(errors, &path, &pod["spec"]);
    projected_tokens(errors, &path, &pod["spec"]);
    for list_name in ["containers", "initContainers"] {
        for (at, container) in list(&pod["spec"], list_name).iter().enumerate() {
            let image = text(container, "image");
            if image.trim() != image {
                let path = path.child(list_name).index(at).child("image");
                errors.invalid(&path, image, "must not have leading or trailing whitespace");
            }
        }
    }
    for (at, volume) in list(&pod["spec"], "volumes").iter().enumerate() {
        let (owner, name) = (text(&pod["metadata"], "name"), text(volume, "name"));
        if !is_set(volume, "ephemeral") || owner.is_empty() {
            continue;
        }
        // The name of the generated claim must be valid as well.
        let claim = format!("{owner}-{name}");
        for why in common_rules::messages(fl_types::check_dns1123_subdomain(&claim)) {
            let path = path.child("volumes").index(at).child("name");
            errors.invalid(&path, name, format!("PVC name {}: {why}", fl_go::quote(&claim)));
        }
    }
    if !list(&pod["spec"], "ephemeralContainers").is_empty() && !is_set(&pod["metadata"], "resourceVersion") {
        errors.forbidden(&path.child("ephemeralContainers"), "cannot be set on create");
    }
}

fn pod_annotations(errors: &mut Errors, path: &Path, annotations: &Value, spec: &Value) {
    const MIRROR: &str = "kubernetes.io/config.mirror";
    if let (Some(value), "") = (annotations[MIRROR].as_str(), text(spec, "nodeName")) {
        errors.invalid(&path.key(MIRROR), value, "must set spec.nodeName if mirror pod annotation is set");
    }
    const COST: &str = "controller.kubernetes.io/pod-deletion-cost";
    if let Some(value) = annotations[COST].as_str().filter(|v| v.parse::<i32>().is_err()) {
        errors.invalid(&path.key(COST), value, "must be a 32bit integer");
    }
}

/// Validates the labels, annotations and spec of a pod template.
pub(crate) fn template(errors: &mut Errors, path: &Path, template: &Value) {
    labels(errors, &path.child("labels"), &template["metadata"]["labels"]);
    common_rules::annotations(errors, &path.child("annotations"), &template["metadata"]["annotations"]);
    pod_annotations(
        errors,
        &path.child("annotations"),
        &template["metadata"]["annotations"],
        &template["spec"],
    );
    spec(errors, &path.child("spec"), &template["spec"]);
    if !list(&template["spec"], "ephemeralContainers").is_empty() {
        errors.forbidden(
            &path.at("spec.ephemeralContainers"),
            "ephemeral containers not allowed in pod template",
        );
    }
}

pub(crate) fn spec(errors: &mut Errors, path: &Path, spec: &Value) {
    let usable = volume::volumes(errors, &path.child("volumes"), list(spec, "volumes"));
    container::containers(errors, path, spec, &usable);
    super::resource_claims::resources(errors, path, spec);
    host_network(errors, path, spec);
    required_one_of(
        errors,
        &path.child("restartPolicy"),
        text(spec, "restartPolicy"),
        &["Always", "OnFailure", "Never"],
    );
    dns(errors, path, spec);
    labels(errors, &path.child("nodeSelector"), &spec["nodeSelector"]);
    security_context(errors, &path.child("securityContext"), &spec["securityContext"]);
    super::scheduling::affinity(errors, &path.child("affinity"), &spec["affinity"]);
    for (at, gate) in list(spec, "readinessGates").iter().enumerate() {
        common_rules::qualified_name(
            errors,
            &path.child("readinessGates").index(at).child("conditionType"),
            text(gate, "conditionType"),
        );
    }
    let mut gates = HashSet::new();
    for (at, gate) in list(spec, "schedulingGates").iter().enumerate() {
        let (path, name) = (path.child("schedulingGates").index(at), text(gate, "name"));
        common_rules::qualified_name(errors, &path, name);
        if !gates.insert(name) {
            errors.duplicate(&path, name);
        }
    }
    super::scheduling::spread(
        errors,
        &path.child("topologySpreadConstraints"),
        list(spec, "topologySpreadConstraints"),
    );
    names(errors, path, spec);
    if let Some(seconds) = spec["activeDeadlineSeconds"].as_i64()
        && !(1..=i64::from(i32::MAX)).contains(&seconds)
    {
        let why = "must be between 1 and 2147483647, inclusive";
        errors.invalid(&path.child("activeDeadlineSeconds"), seconds, why);
    }
    super::scheduling::tolerations(errors, &path.child("tolerations"), list(spec, "tolerations"));
    for (at, alias) in list(spec, "hostAliases").iter().enumerate() {
        let path = path.child("hostAliases").index(at);
        ip::ip(errors, &path.child("ip"), text(alias, "ip"));
        for (i, name) in list(alias, "hostnames").iter().filter_map(Value::as_str).enumerate() {
            subdomain(errors, &path.child("hostnames").index(i), name);
        }
    }
    if let Some(policy) = spec["preemptionPolicy"].as_str() {
        errors.one_of(&path.child("preemptionPolicy"), policy, &["PreemptLowerPriority", "Never"]);
    }
    for (name, amount) in entries(spec, "overhead") {
        let path = path.child("overhead").key(name);
        resources::resource_name(errors, &path, name);
        resources::resource_amount(errors, &path, name, amount);
    }
    host_namespaces(errors, path, spec);
    operating_system(errors, path, spec);
}

/// A required enum value. It has a default, so that it is only empty if a client sent it empty.
pub(crate) fn required_one_of(errors: &mut Errors, path: &Path, value: &str, supported: &[&str]) {
    if value.is_empty() {
        errors.required(path, "");
    } else {
        errors.one_of(path, value, supported);
    }
}

fn names(errors: &mut Errors, path: &Path, spec: &Value) {
    for key in ["serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName"] {
        let name = text(spec, key);
        if !name.is_empty() {
            subdomain(errors, &path.child(key), name);
        }
    }
    for key in ["hostname", "subdomain"] {
        let name = text(spec, key);
        if !name.is_empty() {
            label(errors, &path.child(key), name);
        }
    }
}

fn host_network(errors: &mut Errors, path: &Path, spec: &Value) {
    if spec["hostNetwork"] != true {
        return;
    }
    for list_name in ["containers", "initContainers"] {
        for (at, container) in list(spec, list_name).iter().enumerate() {
            for (i, port) in list(container, "ports").iter().enumerate() {
                let host = port["hostPort"].as_i64().unwrap_or(0);
                // A template may omit it: the pod gets the container port as default.
                if host != 0 && host != port["containerPort"].as_i64().unwrap_or(0) {
                    let path = path.child(list_name).index(at).child("ports").index(i).child("hostPort");
                    errors.invalid(&path, host, "must match `containerPort` when `hostNetwork` is true");
                }
            }
        }
    }
}

fn dns(errors: &mut Errors, path: &Path, spec: &Value) {
    let policy = text(spec, "dnsPolicy");
    let known = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    required_one_of(errors, &path.child("dnsPolicy"), policy, &known);
    let (path, config) = (path.child("dnsConfig"), &spec["dnsConfig"]);
    if policy == "None" {
        if config.is_null() {
            errors.required(&path, "must provide `dnsConfig` when `dnsPolicy` is None");
            return;
        }
        if list(config, "nameservers").is_empty() {
            let why = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            errors.required(&path.child("nameservers"), why);
            return;
        }
    }
    let servers = list(config, "nameservers");
    if servers.len() > 3 {
        errors.invalid(&path.child("nameservers"), json!(servers), "must not have more than 3 nameservers");
    }
    for (at, server) in servers.iter().filter_map(Value::as_str).enumerate() {
        ip::ip(errors, &path.child("nameservers").index(at), server);
    }
    let searches: Vec<&str> = list(config, "searches").iter().filter_map(Value::as_str).collect();
    if searches.len() > 32 {
        errors.invalid(&path.child("searches"), json!(searches), "must not have more than 32 search paths");
    }
    if searches.join(" ").len() > 2048 {
        let why = "must not have more than 2048 characters (including spaces) in the search list";
        errors.invalid(&path.child("searches"), json!(searches), why);
    }
    for (at, search) in searches.iter().enumerate().filter(|(_, s)| **s != ".") {
        let search = search.strip_suffix('.').unwrap_or(search);
        common_rules::search_path(errors, &path.child("searches").index(at), search);
    }
    for (at, option) in list(config, "options").iter().enumerate() {
        if text(option, "name").is_empty() {
            errors.required(&path.child("options").index(at), "must not be empty");
        }
    }
}

const ID_RANGE: &str = "must be between 0 and 2147483647, inclusive";

pub(super) fn user_or_group(errors: &mut Errors, path: &Path, value: &Value) {
    if let Some(id) = value.as_i64().filter(|id| !(0..=i64::from(i32::MAX)).contains(id)) {
        errors.invalid(path, id, ID_RANGE);
    }
}

fn security_context(errors: &mut Errors, path: &Path, context: &Value) {
    for key in ["fsGroup", "runAsUser", "runAsGroup"] {
        user_or_group(errors, &path.child(key), &context[key]);
    }
    for (at, group) in list(context, "supplementalGroups").iter().enumerate() {
        user_or_group(errors, &path.child("supplementalGroups").index(at), group);
    }
    let mut seen = HashSet::new();
    for (at, sysctl) in list(context, "sysctls").iter().enumerate() {
        let (path, name) = (path.child("sysctls").index(at), text(sysctl, "name"));
        if name.is_empty() {
            errors.required(&path.child("name"), "");
        } else if !is_sysctl(name) {
            let why = "must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
            errors.invalid(&path.child("name"), name, why);
        } else if !seen.insert(name) {
            errors.duplicate(&path.child("name"), name);
        }
    }
    if let Some(policy) = context["fsGroupChangePolicy"].as_str() {
        errors.one_of(&path.child("fsGroupChangePolicy"), policy, &["Always", "OnRootMismatch"]);
    }
    if let Some(policy) = context["supplementalGroupsPolicy"].as_str() {
        errors.one_of(&path.child("supplementalGroupsPolicy"), policy, &["Merge", "Strict"]);
    }
    if let Some(policy) = context["seLinuxChangePolicy"].as_str() {
        errors.one_of(&path.child("seLinuxChangePolicy"), policy, &["Recursive"]);
    }
    super::resource_claims::windows_options(
        errors,
        &path.child("windowsOptions"),
        &context["windowsOptions"],
    );
    seccomp(errors, &path.child("seccompProfile"), &context["seccompProfile"]);
    app_armor(errors, &path.child("appArmorProfile"), &context["appArmorProfile"]);
}

fn is_sysctl(name: &str) -> bool {
    name.len() <= 253
        && name.split(['.', '/']).all(|part| {
            let edge = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
            let bytes = part.as_bytes();
            edge(bytes.first())
                && edge(bytes.last())
                && bytes.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_".contains(b))
        })
}

pub(super) fn seccomp(errors: &mut Errors, path: &Path, profile: &Value) {
    if profile.is_null() {
        return;
    }
    let kind = text(profile, "type");
    match kind {
        "" => errors.required(&path.child("type"), "type is required when seccompProfile is set"),
        _ => errors.one_of(&path.child("type"), kind, &["Localhost", "RuntimeDefault", "Unconfined"]),
    }
    let local = path.child("localhostProfile");
    match profile["localhostProfile"].as_str() {
        None if kind == "Localhost" => errors.required(&local, "must be set when seccomp type is Localhost"),
        Some(profile) if kind == "Localhost" => common_rules::relative_path(errors, &local, profile),
        Some(name) => {
            let shown = format!("{{\"Type\":{},\"LocalhostProfile\":{}}}", json!(kind), json!(name));
            errors.invalid_printed(&local, shown, "can only be set when seccomp type is Localhost");
        }
        None => {}
    }
}

pub(super) fn app_armor(errors: &mut Errors, path: &Path, profile: &Value) {
    if profile.is_null() {
        return;
    }
    let kind = text(profile, "type");
    let local = path.child("localhostProfile");
    match (kind, profile["localhostProfile"].as_str()) {
        ("", _) => errors.required(&path.child("type"), "type is required when appArmorProfile is set"),
        ("Localhost", None) => {
            errors.required(&local, "must be set when AppArmor type is Localhost");
        }
        ("Localhost", Some(name)) if name.trim().is_empty() => {
            errors.required(&local, "must be set when AppArmor type is Localhost");
        }
        ("Localhost", Some(_)) => {}
        ("RuntimeDefault" | "Unconfined", Some(name)) => {
            errors.invalid(&local, name, "can only be set when AppArmor type is Localhost");
        }
        ("RuntimeDefault" | "Unconfined", None) => {}
        _ => {
            errors.one_of(&path.child("type"), kind, &["Localhost", "RuntimeDefault", "Unconfined"]);
        }
    }
}

fn operating_system(errors: &mut Errors, path: &Path, spec: &Value) {
    if !is_set(spec, "os") {
        return;
    }
    let name = text(&spec["os"], "name");
    let at = path.child("os");
    match name {
        "" => errors.required(&at.child("name"), "cannot be empty"),
        "linux" => {
            if is_set(&spec["securityContext"], "windowsOptions") {
                let at = path.at("securityContext.windowsOptions");
                errors.forbidden(&at, "windows options cannot be set for a linux pod");
            }
        }
        "windows" => windows(errors, path, spec),
        _ => errors.one_of(&at, name, &["linux", "windows"]),
    }
}

/// Rejects fields that exist only on Linux.
fn windows(errors: &mut Errors, path: &Path, spec: &Value) {
    let why = "cannot be set for a windows pod";
    for key in ["hostPID", "hostIPC", "shareProcessNamespace"] {
        if spec[key] == true {
            errors.forbidden(&path.child(key), why);
        }
    }
    let context = &spec["securityContext"];
    for key in [
        "seLinuxOptions",
        "seccompProfile",
        "appArmorProfile",
        "fsGroup",
        "fsGroupChangePolicy",
        "sysctls",
        "runAsUser",
        "runAsGroup",
        "supplementalGroups",
        "supplementalGroupsPolicy",
    ] {
        if is_set(context, key) {
            errors.forbidden(&path.child("securityContext").child(key), why);
        }
    }
}

/// Validates pods that use host namespaces.
fn host_namespaces(errors: &mut Errors, path: &Path, spec: &Value) {
    if spec["hostUsers"] == false {
        for key in ["hostNetwork", "hostPID", "hostIPC"] {
            if spec[key] == true {
                errors.forbidden(&path.child(key), "when `hostUsers` is false");
            }
        }
    } else {
        for key in ["containers", "initContainers"] {
            for (at, container) in list(spec, key).iter().enumerate() {
                if container["securityContext"]["procMount"] == "Unmasked" {
                    let at = path.child(key).index(at).at("securityContext.procMount");
                    errors.invalid(&at, "Unmasked", "`hostUsers` must be false to use `Unmasked`");
                }
            }
        }
    }
    if spec["shareProcessNamespace"] == true && spec["hostPID"] == true {
        let why = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.invalid(&path.at("securityContext.shareProcessNamespace"), true, why);
    }
    let host_process = |context: &Value| context["windowsOptions"]["hostProcess"] == true;
    let any = host_process(&spec["securityContext"])
        || ["containers", "initContainers"]
            .iter()
            .any(|name| list(spec, name).iter().any(|c| host_process(&c["securityContext"])));
    if any && spec["hostNetwork"] != true {
        let why = "hostNetwork must be true if pod contains any hostProcess containers";
        errors.invalid(&path.child("hostNetwork"), false, why);
    }
}

/// Projected tokens need a service account.
fn projected_tokens(errors: &mut Errors, path: &Path, spec: &Value) {
    if !text(spec, "serviceAccountName").is_empty() {
        return;
    }
    for (at, volume) in list(spec, "volumes").iter().enumerate() {
        for (i, source) in list(&volume["projected"], "sources").iter().enumerate() {
            if is_set(source, "serviceAccountToken") {
                let path = path.child("volumes").index(at).at("projected.sources").index(i);
                let why = "must not be specified when serviceAccountName is not set";
                errors.forbidden(&path.child("serviceAccountToken"), why);
            }
        }
    }
}

/// Validates the update of a pod.
pub(crate) fn pod_update(errors: &mut Errors, new: &Value, old: &Value) {
    pod(errors, new);
    let path = Path::new("spec");
    let (new_spec, old_spec) = (&new["spec"], &old["spec"]);
    for list_name in ["containers", "initContainers"] {
        let path = path.child(list_name);
        let (now, before) = (list(new_spec, list_name), list(old_spec, list_name));
        if now.len() != before.len() {
            errors.forbidden(&path, "pod updates may not add or remove containers");
            return;
        }
        for (at, container) in now.iter().enumerate() {
            if text(container, "image").is_empty() {
                errors.required(&path.index(at).child("image"), "");
            }
        }
    }
    let deadline = path.child("activeDeadlineSeconds");
    match (new_spec["activeDeadlineSeconds"].as_i64(), old_spec["activeDeadlineSeconds"].as_i64()) {
        (Some(now), Some(before)) if before < now => {
            errors.invalid(&deadline, now, "must be less than or equal to previous value");
            return;
        }
        (None, Some(_)) => {
            errors.invalid(&deadline, Value::Null, "must not update from a positive integer to nil value");
        }
        _ => {}
    }
    only_added_tolerations(errors, &path.child("tolerations"), new_spec, old_spec);
    for (at, gate) in list(new_spec, "schedulingGates").iter().enumerate() {
        let name = text(gate, "name");
        if !list(old_spec, "schedulingGates").iter().any(|g| text(g, "name") == name) {
            let why = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            errors.forbidden(&path.child("schedulingGates").index(at).child("name"), why);
        }
    }
    immutable_fields(errors, &path, new_spec, old_spec);
}

fn only_added_tolerations(errors: &mut Errors, path: &Path, new: &Value, old: &Value) {
    let bare = |toleration: &Value| {
        let mut bare = toleration.clone();
        if let Some(map) = bare.as_object_mut() {
            map.remove("tolerationSeconds");
        }
        bare
    };
    for before in list(old, "tolerations") {
        if !list(new, "tolerations").iter().any(|now| bare(now) == bare(before)) {
            errors.forbidden(path, "existing toleration can not be modified except its tolerationSeconds");
            return;
        }
    }
}

/// Rejects changes other than those of images, `activeDeadlineSeconds`, tolerations and scheduling gates.
fn immutable_fields(errors: &mut Errors, path: &Path, new: &Value, old: &Value) {
    let mut munged = new.clone();
    for list_name in ["containers", "initContainers"] {
        for (at, container) in
            munged.get_mut(list_name).and_then(Value::as_array_mut).into_iter().flatten().enumerate()
        {
            container["image"] = old[list_name][at]["image"].clone();
        }
    }
    for key in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        crate::strategy::copy_field(&mut munged, old, key);
    }
    let was_negative = old["terminationGracePeriodSeconds"].as_i64().is_some_and(|s| s < 0);
    if was_negative && munged["terminationGracePeriodSeconds"] == 1 {
        crate::strategy::copy_field(&mut munged, old, "terminationGracePeriodSeconds");
    }
    if munged == *old {
        return;
    }
    const UPDATABLE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
    let print = |value: &Value| crate::go_print::indented("PodSpec", value);
    let diff = common_rules::unified_diff(&print(old), &print(&munged));
    errors.forbidden(path, format!("pod updates may not change fields other than {UPDATABLE}\n{diff}"));
}
