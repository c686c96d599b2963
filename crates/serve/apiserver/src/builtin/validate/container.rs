//! Containers: names, images, ports, environment, mounts, probes, security.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::pod::{app_armor, required_one_of, seccomp, user_or_group};
use crate::builtin::checks::{self, config_key, label, subdomain};
use crate::builtin::field::{Errors, Path, is_set, list, text};

/// All containers of a pod.
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
        running(errors, &path, container, grace);
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
            running(errors, &path, container, grace);
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
    checks::resource_requirements(errors, &path.child("resources"), &container["resources"]);
    resize(errors, &path.child("resizePolicy"), list(container, "resizePolicy"), spec);
    security(errors, &path.child("securityContext"), &container["securityContext"]);
}

fn ports(errors: &mut Errors, path: &Path, ports: &[Value]) {
    let mut names = HashSet::new();
    for (at, port) in ports.iter().enumerate() {
        let path = path.index(at);
        let name = text(port, "name");
        if !name.is_empty() {
            let found = checks::port_name(name);
            errors.each_invalid(&path.child("name"), name, &found);
            if found.is_empty() && !names.insert(name) {
                errors.duplicate(&path.child("name"), name);
            }
        }
        match port["containerPort"].as_i64().unwrap_or(0) {
            0 => errors.required(&path.child("containerPort"), ""),
            number if !checks::is_port(number) => {
                errors.invalid(&path.child("containerPort"), number, checks::PORT_RANGE);
            }
            _ => {}
        }
        if port["hostPort"].as_i64().is_some_and(|p| p != 0) {
            checks::port(errors, &path.child("hostPort"), &port["hostPort"]);
        }
        required_one_of(errors, &path.child("protocol"), text(port, "protocol"), &["SCTP", "TCP", "UDP"]);
    }
}

/// Any printable ASCII but `=`.
fn environment_name(name: &str) -> Vec<String> {
    let ok = name.bytes().all(|b| (0x20..0x7f).contains(&b) && b != b'=');
    if ok {
        return Vec::new();
    }
    vec![
        "a valid environment variable name must consist only of printable ASCII characters other than '='"
            .to_owned(),
    ]
}

fn environment(errors: &mut Errors, path: &Path, variables: &[Value]) {
    for (at, variable) in variables.iter().enumerate() {
        let path = path.index(at);
        let name = text(variable, "name");
        if name.is_empty() {
            errors.required(&path.child("name"), "");
        } else {
            errors.each_invalid(&path.child("name"), name, &environment_name(name));
        }
        if is_set(variable, "valueFrom") {
            value_from(errors, &path.child("valueFrom"), variable);
        }
    }
}

fn value_from(errors: &mut Errors, path: &Path, variable: &Value) {
    let from = &variable["valueFrom"];
    let mut sources = 0;
    if is_set(from, "fieldRef") {
        sources += 1;
        field_reference(errors, &path.child("fieldRef"), &from["fieldRef"], ENV_FIELDS);
    }
    if is_set(from, "resourceFieldRef") {
        sources += 1;
        resource_reference(errors, &path.child("resourceFieldRef"), &from["resourceFieldRef"], false);
    }
    for key in ["configMapKeyRef", "secretKeyRef"] {
        if is_set(from, key) {
            sources += 1;
            key_reference(errors, &path.child(key), &from[key]);
        }
    }
    if is_set(from, "fileKeyRef") {
        sources += 1;
    }
    if sources == 0 {
        let why = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`";
        errors.invalid(path, "", why);
    } else if !text(variable, "value").is_empty() {
        errors.invalid(path, "", "may not be specified when `value` is not empty");
    } else if sources > 1 {
        errors.invalid(path, "", "may not have more than one field specified at a time");
    }
}

const ENV_FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// Paths that the pod type converts but neither place may use.
const KNOWN_FIELDS: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
    "spec.host",
];

pub(super) fn field_reference(errors: &mut Errors, path: &Path, reference: &Value, supported: &[&str]) {
    if text(reference, "apiVersion").is_empty() {
        errors.required(&path.child("apiVersion"), "");
        return;
    }
    let field = text(reference, "fieldPath");
    let at = path.child("fieldPath");
    if field.is_empty() {
        errors.required(&at, "");
        return;
    }
    let subscript =
        field.strip_suffix(']').and_then(|f| f.strip_suffix('\'')).and_then(|f| f.split_once("['"));
    match subscript {
        Some(("metadata.annotations", key)) => {
            let found = checks::messages(fl_types::check_qualified_name(&key.to_lowercase()));
            errors.each_invalid(path, key, &found);
        }
        Some(("metadata.labels", key)) => checks::qualified_name(errors, path, key),
        Some(_) => {
            let why = format!("error converting fieldPath: field label does not support subscript: {field}");
            errors.invalid(&at, field, why);
        }
        None if !KNOWN_FIELDS.contains(&field) => {
            errors.invalid(
                &at,
                field,
                format!("error converting fieldPath: field label not supported: {field}"),
            );
        }
        None => errors.one_of(&at, field, supported),
    }
}

pub(super) fn resource_reference(errors: &mut Errors, path: &Path, reference: &Value, in_volume: bool) {
    if in_volume && text(reference, "containerName").is_empty() {
        errors.required(&path.child("containerName"), "");
        return;
    }
    let name = text(reference, "resource");
    if name.is_empty() {
        errors.required(&path.child("resource"), "");
        return;
    }
    const SUPPORTED: &[&str] = &[
        "limits.cpu",
        "limits.ephemeral-storage",
        "limits.memory",
        "requests.cpu",
        "requests.ephemeral-storage",
        "requests.memory",
    ];
    if !SUPPORTED.contains(&name) && !name.contains("hugepages-") {
        errors.not_supported(&path.child("resource"), name, SUPPORTED);
        return;
    }
    let divisor = text(reference, "divisor");
    if divisor == "0" || divisor.is_empty() {
        return;
    }
    const SIZES: &[&str] =
        &["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];
    let sizes = |what: &str| {
        format!(
            "only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the {what} resource"
        )
    };
    let why = match name.split_once('.').map_or(name, |(_, rest)| rest) {
        "cpu" if !matches!(divisor, "1m" | "1") => {
            "only divisor's values 1m and 1 are supported with the cpu resource".to_owned()
        }
        "memory" if !SIZES.contains(&divisor) => sizes("memory"),
        "ephemeral-storage" if !SIZES.contains(&divisor) => sizes("local ephemeral storage"),
        other if other.starts_with("hugepages-") && !SIZES.contains(&divisor) => sizes("hugepages"),
        _ => return,
    };
    errors.invalid(&path.child("divisor"), name, why);
}

/// One key of a ConfigMap or Secret.
fn key_reference(errors: &mut Errors, path: &Path, reference: &Value) {
    subdomain(errors, &path.child("name"), text(reference, "name"));
    let key = text(reference, "key");
    if key.is_empty() {
        errors.required(&path.child("key"), "");
    } else {
        errors.each_invalid(&path.child("key"), key, &config_key(key));
    }
}

fn environment_from(errors: &mut Errors, path: &Path, sources: &[Value]) {
    for (at, source) in sources.iter().enumerate() {
        let here = path.index(at);
        let prefix = text(source, "prefix");
        if !prefix.is_empty() {
            errors.each_invalid(&here.child("prefix"), prefix, &environment_name(prefix));
        }
        let mut found = 0;
        for key in ["configMapRef", "secretRef"] {
            if !is_set(source, key) {
                continue;
            }
            found += 1;
            let name = text(&source[key], "name");
            let at = here.child(key).child("name");
            if name.is_empty() {
                errors.required(&at, "");
            } else {
                subdomain(errors, &at, name);
            }
        }
        if found == 0 {
            errors.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`");
        } else if found > 1 {
            errors.invalid(path, "", "may not have more than one field specified at a time");
        }
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
            checks::relative_path(errors, &at.child("subPath"), sub);
        }
        if !expression.is_empty() {
            if !sub.is_empty() {
                let why = "subPathExpr and subPath are mutually exclusive";
                errors.invalid(&path.child("subPathExpr"), expression, why);
            }
            checks::relative_path(errors, &at.child("subPathExpr"), expression);
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

/// The context as upstream prints it: its internal type has Go's names and writes out what is not set.
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

/// Lifecycle and probes of a container that keeps running.
fn running(errors: &mut Errors, path: &Path, container: &Value, grace: i64) {
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
                checks::port_or_name(errors, &path.child("port"), &action["port"]);
                errors.one_of(&path.child("scheme"), text(action, "scheme"), &["HTTP", "HTTPS"]);
                for header in list(action, "httpHeaders") {
                    let name = text(header, "name");
                    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
                        let why = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";
                        errors.invalid(&path.child("httpHeaders"), name, why);
                    }
                }
            }
            "tcpSocket" => checks::port_or_name(errors, &path.child("port"), &action["port"]),
            "grpc" => checks::port(errors, &path.child("port"), &action["port"]),
            _ => {}
        }
    }
    if found == 0 {
        errors.required(path, "must specify a handler type");
    }
}

/// Texts that warn about environment variables set twice.
pub(in crate::builtin) fn duplicate_environment(
    path: &Path,
    containers: &Value,
    list_name: &str,
) -> Vec<String> {
    let mut warnings = Vec::new();
    for (at, container) in list(containers, list_name).iter().enumerate() {
        let mut seen = HashSet::new();
        for (i, variable) in list(container, "env").iter().enumerate() {
            let name = text(variable, "name");
            let (value, reference) = (text(variable, "value"), format!("$({name})"));
            // A value that builds on the one before it is meant.
            let builds = !is_set(variable, "valueFrom") && value != reference && value.contains(&reference);
            if !seen.insert(name) && !builds {
                let here = path.child(list_name).index(at).child("env").index(i);
                let quoted = json!(name);
                warnings.push(format!(
                    "{}: hides previous definition of {quoted}, which may be dropped when using apply",
                    here.as_str()
                ));
            }
        }
    }
    warnings
}
