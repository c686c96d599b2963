//! Checks of the pod security standards, in the order in which they are reported.

use std::collections::BTreeSet;

use serde_json::Value;

type Violations = Vec<(String, String)>;

/// The pod to check.
struct Pod<'a> {
    metadata: &'a Value,
    spec: &'a Value,
    containers: Vec<&'a Value>,
}

/// The violations of a pod. `minor` is the version of the standards.
pub(super) fn run(metadata: &Value, spec: &Value, minor: u32, restricted: bool) -> Violations {
    let containers = ["initContainers", "containers", "ephemeralContainers"]
        .into_iter()
        .flat_map(|key| spec[key].as_array().into_iter().flatten())
        .collect();
    let pod = Pod { metadata, spec, containers };
    let windows = minor >= 25 && spec["os"]["name"] == "windows";
    let mut found = Vec::new();
    app_armor(&pod, &mut found);
    if !restricted || minor < 22 {
        capabilities(&pod, &mut found);
    }
    host_namespaces(&pod, &mut found);
    if !restricted {
        host_paths(&pod, &mut found);
    }
    host_ports(&pod, &mut found);
    if minor >= 34 {
        probe_hosts(&pod, &mut found);
    }
    privileged(&pod, &mut found);
    proc_mount(&pod, &mut found);
    se_linux(&pod, &mut found, minor);
    if minor >= 19 && !restricted {
        seccomp(&pod, &mut found, false);
    }
    sysctls(&pod, &mut found, minor);
    host_process(&pod, &mut found);
    if restricted {
        if minor >= 8 && !windows {
            escalation(&pod, &mut found);
        }
        if minor >= 22 && !windows {
            dropped_capabilities(&pod, &mut found);
        }
        volumes(&pod, &mut found);
        non_root(&pod, &mut found);
        if minor >= 23 {
            root_user(&pod, &mut found);
        }
        if minor >= 19 && !windows {
            seccomp(&pod, &mut found, true);
        }
    }
    found
}

fn add(found: &mut Violations, reason: &str, detail: String) {
    found.push((reason.to_owned(), detail));
}

fn name(container: &Value) -> &str {
    container["name"].as_str().unwrap_or_default()
}

fn quoted<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| format!("\"{item}\"")).collect();
    items.join(", ")
}

fn plural(one: &'static str, many: &'static str, count: usize) -> &'static str {
    if count == 1 { one } else { many }
}

fn containers_text(bad: &[&str]) -> String {
    format!("{} {}", plural("container", "containers", bad.len()), quoted(bad.iter().copied()))
}

impl<'a> Pod<'a> {
    /// Names of the containers that match.
    fn where_(&self, bad: impl Fn(&Value) -> bool) -> Vec<&'a str> {
        self.containers.iter().filter(|c| bad(&c["securityContext"])).map(|c| name(c)).collect()
    }

    /// The pod and the containers that match, as the subject of a message.
    fn setters(&self, bad: impl Fn(&Value) -> bool) -> Vec<String> {
        let mut setters = Vec::new();
        if bad(&self.spec["securityContext"]) {
            setters.push("pod".to_owned());
        }
        let containers = self.where_(bad);
        if !containers.is_empty() {
            setters.push(containers_text(&containers));
        }
        setters
    }

    /// All bad values at a path of the security contexts.
    fn values(&self, pointer: &str, bad: impl Fn(&str) -> bool) -> BTreeSet<&'a str> {
        let contexts = std::iter::once(&self.spec["securityContext"])
            .chain(self.containers.iter().map(|c| &c["securityContext"]));
        contexts.filter_map(|c| c.pointer(pointer)?.as_str()).filter(|value| bad(value)).collect()
    }
}

fn app_armor(pod: &Pod<'_>, found: &mut Violations) {
    let bad = |kind: &str| !matches!(kind, "RuntimeDefault" | "Localhost");
    let pointer = "/appArmorProfile/type";
    let mut setters =
        pod.setters(|context| context.pointer(pointer).and_then(Value::as_str).is_some_and(bad));
    let mut values: Vec<String> = pod.values(pointer, bad).into_iter().map(str::to_owned).collect();
    let mut annotations: Vec<String> = pod.metadata["annotations"]
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key, value.as_str()?)))
        .filter(|(key, value)| {
            key.starts_with("container.apparmor.security.beta.kubernetes.io/")
                && !(value.is_empty() || *value == "runtime/default" || value.starts_with("localhost/"))
        })
        .map(|(key, value)| format!("{key}={value:?}"))
        .collect();
    if !annotations.is_empty() {
        annotations.sort_unstable();
        setters.push(plural("annotation", "annotations", annotations.len()).to_owned());
        values.extend(annotations);
    }
    if !setters.is_empty() {
        let reason = plural("forbidden AppArmor profile", "forbidden AppArmor profiles", values.len());
        let values = quoted(values.iter().map(String::as_str));
        let detail = format!("{} must not set AppArmor profile type to {values}", setters.join(" and "));
        add(found, reason, detail);
    }
}

const DEFAULT_CAPABILITIES: &[&str] = &[
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// Containers that add forbidden capabilities, and which.
fn added<'a>(pod: &Pod<'a>, allowed: &[&str]) -> (Vec<&'a str>, BTreeSet<&'a str>) {
    let (mut containers, mut values) = (Vec::new(), BTreeSet::new());
    for container in &pod.containers {
        let adds = container["securityContext"]["capabilities"]["add"].as_array().into_iter().flatten();
        let bad: Vec<&str> = adds.filter_map(Value::as_str).filter(|c| !allowed.contains(c)).collect();
        if !bad.is_empty() {
            containers.push(name(container));
            values.extend(bad);
        }
    }
    (containers, values)
}

fn capabilities(pod: &Pod<'_>, found: &mut Violations) {
    let (containers, values) = added(pod, DEFAULT_CAPABILITIES);
    if !containers.is_empty() {
        let detail = format!(
            "{} must not include {} in securityContext.capabilities.add",
            containers_text(&containers),
            quoted(values)
        );
        add(found, "non-default capabilities", detail);
    }
}

fn dropped_capabilities(pod: &Pod<'_>, found: &mut Violations) {
    let keeps = pod.where_(|context| {
        let drops = context["capabilities"]["drop"].as_array();
        !drops.is_some_and(|drops| drops.iter().any(|c| c == "ALL"))
    });
    let mut details = Vec::new();
    if !keeps.is_empty() {
        let subject = containers_text(&keeps);
        details.push(format!("{subject} must set securityContext.capabilities.drop=[\"ALL\"]"));
    }
    let (containers, values) = added(pod, &["NET_BIND_SERVICE"]);
    if !containers.is_empty() {
        details.push(format!(
            "{} must not include {} in securityContext.capabilities.add",
            containers_text(&containers),
            quoted(values)
        ));
    }
    if !details.is_empty() {
        add(found, "unrestricted capabilities", details.join("; "));
    }
}

fn host_namespaces(pod: &Pod<'_>, found: &mut Violations) {
    let shared: Vec<String> = ["hostNetwork", "hostPID", "hostIPC"]
        .into_iter()
        .filter(|key| pod.spec[*key] == true)
        .map(|key| format!("{key}=true"))
        .collect();
    if !shared.is_empty() {
        add(found, "host namespaces", shared.join(", "));
    }
}

fn volumes_of<'a>(pod: &Pod<'a>) -> impl Iterator<Item = &'a Value> {
    pod.spec["volumes"].as_array().into_iter().flatten()
}

fn host_paths(pod: &Pod<'_>, found: &mut Violations) {
    let bad: Vec<&str> = volumes_of(pod).filter(|v| !v["hostPath"].is_null()).map(name).collect();
    if !bad.is_empty() {
        let word = plural("volume", "volumes", bad.len());
        add(found, "hostPath volumes", format!("{word} {}", quoted(bad)));
    }
}

fn volumes(pod: &Pod<'_>, found: &mut Violations) {
    const ALLOWED: &[&str] = &[
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ];
    let (mut bad, mut kinds) = (Vec::new(), BTreeSet::new());
    for volume in volumes_of(pod) {
        let source = volume
            .as_object()
            .into_iter()
            .flatten()
            .find(|(key, value)| *key != "name" && !value.is_null())
            .map_or("unknown", |(key, _)| key.as_str());
        if !ALLOWED.contains(&source) {
            bad.push(name(volume));
            kinds.insert(source);
        }
    }
    if !bad.is_empty() {
        let detail = format!(
            "{} {} {} {} {}",
            plural("volume", "volumes", bad.len()),
            quoted(bad.iter().copied()),
            plural("uses", "use", bad.len()),
            plural("restricted volume type", "restricted volume types", kinds.len()),
            quoted(kinds)
        );
        add(found, "restricted volume types", detail);
    }
}

fn host_ports(pod: &Pod<'_>, found: &mut Violations) {
    let (mut bad, mut ports) = (Vec::new(), BTreeSet::new());
    for container in &pod.containers {
        let held = container["ports"].as_array().into_iter().flatten();
        let used: Vec<String> = held
            .filter_map(|port| port["hostPort"].as_i64())
            .filter(|port| *port != 0)
            .map(|port| port.to_string())
            .collect();
        if !used.is_empty() {
            bad.push(name(container));
            ports.extend(used);
        }
    }
    if !bad.is_empty() {
        let detail = format!(
            "{} {} {} {}",
            containers_text(&bad),
            plural("uses", "use", bad.len()),
            plural("hostPort", "hostPorts", ports.len()),
            ports.into_iter().collect::<Vec<_>>().join(", ")
        );
        add(found, "hostPort", detail);
    }
}

fn probe_hosts(pod: &Pod<'_>, found: &mut Violations) {
    const HANDLERS: &[&str] =
        &["/livenessProbe", "/readinessProbe", "/startupProbe", "/lifecycle/postStart", "/lifecycle/preStop"];
    let (mut bad, mut hosts) = (BTreeSet::new(), BTreeSet::new());
    for container in &pod.containers {
        for handler in HANDLERS.iter().filter_map(|pointer| container.pointer(pointer)) {
            for kind in ["httpGet", "tcpSocket"] {
                if let Some(host) = handler[kind]["host"].as_str().filter(|host| !host.is_empty()) {
                    bad.insert(name(container));
                    hosts.insert(host);
                }
            }
        }
    }
    if !bad.is_empty() {
        let bad: Vec<&str> = bad.into_iter().collect();
        let detail = format!(
            "{} {} {} {}",
            containers_text(&bad),
            plural("uses", "use", bad.len()),
            plural("probe or lifecycle host", "probe or lifecycle hosts", hosts.len()),
            quoted(hosts)
        );
        add(found, "probe or lifecycle host", detail);
    }
}

fn privileged(pod: &Pod<'_>, found: &mut Violations) {
    let bad = pod.where_(|context| context["privileged"] == true);
    if !bad.is_empty() {
        let subject = containers_text(&bad);
        add(found, "privileged", format!("{subject} must not set securityContext.privileged=true"));
    }
}

fn proc_mount(pod: &Pod<'_>, found: &mut Violations) {
    let wrong = |kind: &str| kind != "Default";
    let bad = pod.where_(|context| context["procMount"].as_str().is_some_and(wrong));
    if !bad.is_empty() {
        let values = quoted(pod.values("/procMount", wrong));
        let subject = containers_text(&bad);
        add(found, "procMount", format!("{subject} must not set securityContext.procMount to {values}"));
    }
}

fn se_linux(pod: &Pod<'_>, found: &mut Violations, minor: u32) {
    let wrong = |kind: &str| match kind {
        "" | "container_t" | "container_init_t" | "container_kvm_t" => false,
        "container_engine_t" => minor < 31,
        _ => true,
    };
    let set = |context: &Value, key: &str| {
        context["seLinuxOptions"][key].as_str().is_some_and(|text| !text.is_empty())
    };
    let setters = pod.setters(|context| {
        context["seLinuxOptions"]["type"].as_str().is_some_and(wrong)
            || set(context, "user")
            || set(context, "role")
    });
    if setters.is_empty() {
        return;
    }
    let kinds = pod.values("/seLinuxOptions/type", wrong);
    let mut data = Vec::new();
    if !kinds.is_empty() {
        data.push(format!("{} {}", plural("type", "types", kinds.len()), quoted(kinds)));
    }
    for key in ["user", "role"] {
        if !pod.setters(|context| set(context, key)).is_empty() {
            data.push(format!("{key} may not be set"));
        }
    }
    let detail = format!(
        "{} set forbidden securityContext.seLinuxOptions: {}",
        setters.join(" and "),
        data.join("; ")
    );
    add(found, "seLinuxOptions", detail);
}

/// Seccomp profiles: not unconfined, and set if `demanded`.
fn seccomp(pod: &Pod<'_>, found: &mut Violations, demanded: bool) {
    let wrong = |kind: &str| !matches!(kind, "RuntimeDefault" | "Localhost");
    let pointer = "/seccompProfile/type";
    let setters = pod.setters(|context| context.pointer(pointer).and_then(Value::as_str).is_some_and(wrong));
    if !setters.is_empty() {
        let detail = format!(
            "{} must not set securityContext.seccompProfile.type to {}",
            setters.join(" and "),
            quoted(pod.values(pointer, wrong))
        );
        add(found, "seccompProfile", detail);
        return;
    }
    if demanded && pod.spec["securityContext"]["seccompProfile"].is_null() {
        let bare = pod.where_(|context| context["seccompProfile"].is_null());
        if !bare.is_empty() {
            let detail = format!(
                "pod or {} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"",
                containers_text(&bare)
            );
            add(found, "seccompProfile", detail);
        }
    }
}

fn sysctls(pod: &Pod<'_>, found: &mut Violations, minor: u32) {
    // Name and the version of the standards that allowed it.
    const ALLOWED: &[(&str, u32)] = &[
        ("kernel.shm_rmid_forced", 0),
        ("net.ipv4.ip_local_port_range", 0),
        ("net.ipv4.tcp_syncookies", 0),
        ("net.ipv4.ping_group_range", 0),
        ("net.ipv4.ip_unprivileged_port_start", 0),
        ("net.ipv4.ip_local_reserved_ports", 27),
        ("net.ipv4.tcp_keepalive_time", 29),
        ("net.ipv4.tcp_fin_timeout", 29),
        ("net.ipv4.tcp_keepalive_intvl", 29),
        ("net.ipv4.tcp_keepalive_probes", 29),
        ("net.ipv4.tcp_rmem", 32),
        ("net.ipv4.tcp_wmem", 32),
    ];
    let held = pod.spec["securityContext"]["sysctls"].as_array().into_iter().flatten();
    let bad: Vec<&str> = held
        .map(name)
        .filter(|sysctl| !ALLOWED.iter().any(|(allowed, since)| allowed == sysctl && *since <= minor))
        .collect();
    if !bad.is_empty() {
        add(found, "forbidden sysctls", bad.join(", "));
    }
}

fn host_process(pod: &Pod<'_>, found: &mut Violations) {
    let setters = pod.setters(|context| context["windowsOptions"]["hostProcess"] == true);
    if !setters.is_empty() {
        let detail =
            format!("{} must not set securityContext.windowsOptions.hostProcess=true", setters.join(" and "));
        add(found, "hostProcess", detail);
    }
}

fn escalation(pod: &Pod<'_>, found: &mut Violations) {
    let bad = pod.where_(|context| context["allowPrivilegeEscalation"] != false);
    if !bad.is_empty() {
        let subject = containers_text(&bad);
        let detail = format!("{subject} must set securityContext.allowPrivilegeEscalation=false");
        add(found, "allowPrivilegeEscalation != false", detail);
    }
}

fn non_root(pod: &Pod<'_>, found: &mut Violations) {
    const REASON: &str = "runAsNonRoot != true";
    let setters = pod.setters(|context| context["runAsNonRoot"] == false);
    if !setters.is_empty() {
        let detail = format!("{} must not set securityContext.runAsNonRoot=false", setters.join(" and "));
        add(found, REASON, detail);
    } else if pod.spec["securityContext"]["runAsNonRoot"] != true {
        let bare = pod.where_(|context| context["runAsNonRoot"].is_null());
        if !bare.is_empty() {
            let subject = containers_text(&bare);
            add(found, REASON, format!("pod or {subject} must set securityContext.runAsNonRoot=true"));
        }
    }
}

fn root_user(pod: &Pod<'_>, found: &mut Violations) {
    let setters = pod.setters(|context| context["runAsUser"] == 0);
    if !setters.is_empty() {
        add(found, "runAsUser=0", format!("{} must not set runAsUser=0", setters.join(" and ")));
    }
}
