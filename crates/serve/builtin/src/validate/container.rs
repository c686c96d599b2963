//! Containers: names, images, ports, environment, mounts, probes, security.

use std::collections::HashSet;

use serde_json::Value;

use super::environment::{environment, environment_from};
use super::pod::{app_armor, required_one_of, seccomp, user_or_group};
use crate::field::{Errors, Path, is_set, list, text};
use crate::validate::common_rules::{self, label};
use crate::validate::resources;

/// Validates all containers of a pod.
pub(super) fn containers(errors: &mut Errors, path: &Path, spec: &Value, volumes: &HashSet<&str>) {
    let at = path.child("containers");
    let regular = list(spec, "containers");
    if regular.is_empty() {
        errors.required(&at, "");
    }
    let grace = spec["terminationGracePeriodSeconds"].as_i64().unwrap_or(30);
    let mut names = HashSet::new();
    for (i, container) in regular.iter().enumerate() {
        let path = at.index(i);
        common(errors, &path, container, spec, volumes);
        if !names.insert(text(container, "name")) {
            errors.duplicate(&path.child("name"), text(container, "name"));
        }
        lifecycle_and_probes(errors, &path, container, grace);
    }
    host_ports(errors, &at, regular);
    let at = path.child("initContainers");
    for (i, container) in list(spec, "initContainers").iter().enumerate() {
        let path = at.index(i);
        common(errors, &path, container, spec, volumes);
        let sidecar = text(container, "restartPolicy") == "Always";
        if let Some(policy) = container["restartPolicy"].as_str() {
            errors.one_of(&path.child("restartPolicy"), policy, &["Always"]);
        }
        let name = text(container, "name");
        if names.contains(name) {
            errors.duplicate(&path.child("name"), name);
        } else if !name.is_empty() {
            names.insert(name);
        }
        if sidecar {
            lifecycle_and_probes(errors, &path, container, grace);
        } else {
            for key in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
                if is_set(container, key) {
                    let why = "may not be set for init containers without restartPolicy=Always";
                    errors.forbidden(&path.child(key), why);
                }
            }
        }
        host_ports(errors, &at, std::slice::from_ref(container));
    }
}

fn host_ports(errors: &mut Errors, path: &Path, containers: &[Value]) {
    let mut seen = HashSet::new();
    for (i, container) in containers.iter().enumerate() {
        for (j, port) in list(container, "ports").iter().enumerate() {
            let number = port["hostPort"].as_i64().unwrap_or(0);
            if number == 0 {
                continue;
            }
            let key = format!("{}/{}/{number}", text(port, "protocol"), text(port, "hostIP"));
            if !seen.insert(key.clone()) {
                errors.duplicate(&path.index(i).child("ports").index(j).child("hostPort"), key);
            }
        }
    }
}

fn common(errors: &mut Errors, path: &Path, container: &Value, spec: &Value, volumes: &HashSet<&str>) {
    let name = text(container, "name");
    if name.is_empty() {
        errors.required(&path.child("name"), "");
    } else {
        label(errors, &path.child("name"), name);
    }
    if text(container, "image").is_empty() {
        errors.required(&path.child("image"), "");
    }
    let policy = text(container, "terminationMessagePolicy");
    required_one_of(
        errors,
        &path.child("terminationMessagePolicy"),
        policy,
        &["File", "FallbackToLogsOnError"],
    );
    ports(errors, &path.child("ports"), list(container, "ports"));
    environment(errors, &path.child("env"), list(container, "env"));
    environment_from(errors, &path.child("envFrom"), list(container, "envFrom"));
    mounts(errors, path, container, volumes);
    devices(errors, path, container, spec);
    let pull = text(container, "imagePullPolicy");
    required_one_of(errors, &path.child("imagePullPolicy"), pull, &["Always", "IfNotPresent", "Never"]);
    resources::resource_requirements(errors, &path.child("resources"), &container["resources"]);
    resize(errors, &path.child("resizePolicy"), list(container, "resizePolicy"), spec);
    security(errors, &path.child("securityContext"), &container["securityContext"]);
}

fn ports(errors: &mut Errors, path: &Path, ports: &[Value]) {
    let mut names = HashSet::new();
    for (at, port) in ports.iter().enumerate() {
        let path = path.index(at);
        let name = text(port, "name");
        if !name.is_empty() {
            let found = common_rules::port_name(name);
            errors.each_invalid(&path.child("name"), name, &found);
            if found.is_empty() && !names.insert(name) {
                errors.duplicate(&path.child("name"), name);
            }
        }
        match port["containerPort"].as_i64().unwrap_or(0) {
            0 => errors.required(&path.child("containerPort"), ""),
            number if !common_rules::is_port(number) => {
                errors.invalid(&path.child("containerPort"), number, common_rules::PORT_RANGE);
            }
            _ => {}
        }
        if port["hostPort"].as_i64().is_some_and(|p| p != 0) {
            common_rules::port(errors, &path.child("hostPort"), &port["hostPort"]);
        }
        required_one_of(errors, &path.child("protocol"), text(port, "protocol"), &["SCTP", "TCP", "UDP"]);
    }
}

fn mounts(errors: &mut Errors, path: &Path, container: &Value, volumes: &HashSet<&str>) {
    let at = path.child("volumeMounts");
    let devices = list(container, "volumeDevices");
    let mut points = HashSet::new();
    for (i, mount) in list(container, "volumeMounts").iter().enumerate() {
        let path = at.index(i);
        let (name, point) = (text(mount, "name"), text(mount, "mountPath"));
        if name.is_empty() {
            errors.required(&path.child("name"), "");
        }
        if !volumes.contains(name) {
            errors.not_found(&path.child("name"), name);
        }
        if point.is_empty() {
            errors.required(&path.child("mountPath"), "");
        }
        if !points.insert(point) {
            errors.invalid(&path.child("mountPath"), point, "must be unique");
        }
        if devices.iter().any(|d| text(d, "name") == name) {
            errors.invalid(&path.child("name"), name, "must not already exist in volumeDevices");
        }
        if devices.iter().any(|d| text(d, "devicePath") == point) {
            errors.invalid(
                &path.child("mountPath"),
                point,
                "must not already exist as a path in volumeDevices",
            );
        }
        let (sub, expression) = (text(mount, "subPath"), text(mount, "subPathExpr"));
        if !sub.is_empty() {
            common_rules::relative_path(errors, &at.child("subPath"), sub);
        }
        if !expression.is_empty() {
            if !sub.is_empty() {
                let why = "subPathExpr and subPath are mutually exclusive";
                errors.invalid(&path.child("subPathExpr"), expression, why);
            }
            common_rules::relative_path(errors, &at.child("subPathExpr"), expression);
        }
        if let Some(propagation) = mount["mountPropagation"].as_str() {
            let at = at.child("mountPropagation");
            errors.one_of(&at, propagation, &["Bidirectional", "HostToContainer", "None"]);
            let privileged = container["securityContext"]["privileged"] == true;
            if propagation == "Bidirectional" && !privileged {
                errors.forbidden(
                    &at,
                    "Bidirectional mount propagation is available only to privileged containers",
                );
            }
        }
        if let Some(mode) = mount["recursiveReadOnly"].as_str() {
            let at = at.child("recursiveReadOnly");
            if mode != "Disabled" && mount["readOnly"] != true {
                errors.forbidden(&at, "may only be specified when readOnly is true");
            }
            errors.one_of(&at, mode, &["Disabled", "Enabled", "IfPossible"]);
        }
    }
}

fn devices(errors: &mut Errors, path: &Path, container: &Value, spec: &Value) {
    let mut names = HashSet::new();
    let mut paths = HashSet::new();
    for (i, device) in list(container, "volumeDevices").iter().enumerate() {
        let path = path.child("volumeDevices").index(i);
        let (name, point) = (text(device, "name"), text(device, "devicePath"));
        if name.is_empty() {
            errors.required(&path.child("name"), "");
        }
        if !names.insert(name) {
            errors.invalid(&path.child("name"), name, "must be unique");
        }
        let mounts = list(container, "volumeMounts");
        if mounts.iter().any(|mount| text(mount, "name") == name) {
            errors.invalid(&path.child("name"), name, "must not already exist in volumeMounts");
        }
        if mounts.iter().any(|mount| text(mount, "mountPath") == point) {
            let why = "must not already exist as a path in volumeMounts";
            errors.invalid(&path.child("devicePath"), point, why);
        }
        match list(spec, "volumes").iter().find(|v| text(v, "name") == name) {
            None => errors.not_found(&path.child("name"), name),
            Some(volume) if !is_set(volume, "persistentVolumeClaim") && !is_set(volume, "ephemeral") => {
                let why =
                    "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                errors.invalid(&path.child("name"), name, why);
            }
            Some(_) => {}
        }
        if point.is_empty() {
            errors.required(&path.child("devicePath"), "");
        } else if !paths.insert(point) {
            errors.invalid(&path.child("devicePath"), point, "must be unique");
        } else if point.contains("..") {
            errors.invalid(&path.child("devicePath"), point, "can not contain backsteps ('..')");
        }
    }
}

fn resize(errors: &mut Errors, path: &Path, policies: &[Value], spec: &Value) {
    let mut seen = HashSet::new();
    for (at, policy) in policies.iter().enumerate() {
        let (name, restart) = (text(policy, "resourceName"), text(policy, "restartPolicy"));
        if !seen.insert(name) {
            errors.duplicate(&path.index(at), name);
        }
        required_one_of(errors, path, name, &["cpu", "memory"]);
        required_one_of(errors, path, restart, &["NotRequired", "RestartContainer"]);
        if text(spec, "restartPolicy") == "Never" && restart == "RestartContainer" {
            errors.invalid(path, restart, "must be 'NotRequired' when `restartPolicy` is 'Never'");
        }
    }
}

fn security(errors: &mut Errors, path: &Path, context: &Value) {
    if context.is_null() {
        return;
    }
    user_or_group(errors, &path.child("runAsUser"), &context["runAsUser"]);
    user_or_group(errors, &path.child("runAsGroup"), &context["runAsGroup"]);
    if let Some(mount) = context["procMount"].as_str() {
        errors.one_of(&path.child("procMount"), mount, &["Default", "Unmasked"]);
    }
    seccomp(errors, &path.child("seccompProfile"), &context["seccompProfile"]);
    app_armor(errors, &path.child("appArmorProfile"), &context["appArmorProfile"]);
    if context["allowPrivilegeEscalation"] == false {
        if context["privileged"] == true {
            let why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
            errors.invalid_printed(path, internal_context(context), why);
        }
        if list(&context["capabilities"], "add").iter().any(|c| c == "CAP_SYS_ADMIN") {
            let why = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
            errors.invalid_printed(path, internal_context(context), why);
        }
    }
}

/// A security context as upstream prints its internal Go type, with unset fields written out.
fn internal_context(context: &Value) -> String {
    let capabilities = &context["capabilities"];
    let capabilities = if capabilities.is_null() {
        "null".to_owned()
    } else {
        format!("{{\"Add\":{},\"Drop\":{}}}", capabilities["add"], capabilities["drop"])
    };
    let rest: Vec<String> = [
        ("Privileged", "privileged"),
        ("SELinuxOptions", "seLinuxOptions"),
        ("WindowsOptions", "windowsOptions"),
        ("RunAsUser", "runAsUser"),
        ("RunAsGroup", "runAsGroup"),
        ("RunAsNonRoot", "runAsNonRoot"),
        ("ReadOnlyRootFilesystem", "readOnlyRootFilesystem"),
        ("AllowPrivilegeEscalation", "allowPrivilegeEscalation"),
        ("ProcMount", "procMount"),
        ("SeccompProfile", "seccompProfile"),
        ("AppArmorProfile", "appArmorProfile"),
    ]
    .iter()
    .map(|(go, name)| format!("\"{go}\":{}", context[*name]))
    .collect();
    format!("{{\"Capabilities\":{capabilities},{}}}", rest.join(","))
}

/// Validates lifecycle and probes of a container.
fn lifecycle_and_probes(errors: &mut Errors, path: &Path, container: &Value, grace: i64) {
    let lifecycle = &container["lifecycle"];
    for key in ["postStart", "preStop"] {
        if is_set(lifecycle, key) {
            let path = path.child("lifecycle").child(key);
            handler(errors, &path, &lifecycle[key]);
            if let Some(seconds) = lifecycle[key]["sleep"]["seconds"].as_i64()
                && !(0..=grace).contains(&seconds)
            {
                let why =
                    format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
                errors.invalid(&path.child("sleep"), seconds, why);
            }
        }
    }
    for key in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let (path, probe) = (path.child(key), &container[key]);
        if probe.is_null() {
            continue;
        }
        handler(errors, &path, probe);
        for number in
            ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
        {
            errors.non_negative(&path.child(number), &probe[number]);
        }
        let grace = path.child("terminationGracePeriodSeconds");
        match probe["terminationGracePeriodSeconds"].as_i64() {
            Some(seconds) if key == "readinessProbe" => {
                errors.invalid(&grace, seconds, "must not be set for readinessProbes");
            }
            Some(seconds) if seconds <= 0 => errors.invalid(&grace, seconds, "must be greater than 0"),
            _ => {}
        }
        let threshold = probe["successThreshold"].as_i64().unwrap_or(1);
        if key != "readinessProbe" && threshold != 1 {
            errors.invalid(&path.child("successThreshold"), threshold, "must be 1");
        }
    }
}

fn handler(errors: &mut Errors, path: &Path, handler: &Value) {
    let mut found = 0;
    for key in ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] {
        if !is_set(handler, key) {
            continue;
        }
        found += 1;
        let (path, action) = (path.child(key), &handler[key]);
        if found > 1 {
            errors.forbidden(&path, "may not specify more than 1 handler type");
            continue;
        }
        match key {
            "exec" if list(action, "command").is_empty() => errors.required(&path.child("command"), ""),
            "httpGet" => {
                if text(action, "path").is_empty() {
                    errors.required(&path.child("path"), "");
                }
                common_rules::port_or_name(errors, &path.child("port"), &action["port"]);
                errors.one_of(&path.child("scheme"), text(action, "scheme"), &["HTTP", "HTTPS"]);
                for header in list(action, "httpHeaders") {
                    let name = text(header, "name");
                    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
                        let why = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";
                        errors.invalid(&path.child("httpHeaders"), name, why);
                    }
                }
            }
            "tcpSocket" => common_rules::port_or_name(errors, &path.child("port"), &action["port"]),
            "grpc" => common_rules::port(errors, &path.child("port"), &action["port"]),
            _ => {}
        }
    }
    if found == 0 {
        errors.required(path, "must specify a handler type");
    }
}
