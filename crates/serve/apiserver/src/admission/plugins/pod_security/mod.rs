//! `PodSecurity`: namespace labels decide which pods are allowed.

mod checks;

use fl_schema::FieldError;
use serde_json::Value;

use crate::admission::AdmissionAttributes;
use crate::object;
use crate::server::{Inner, RequestContext, Target};
use crate::status::{ApiError, ApiResult};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Privileged,
    Baseline,
    Restricted,
}

/// A level at a version of the standards; `None` is the latest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Standard {
    level: Level,
    minor: Option<u32>,
}

impl std::fmt::Display for Standard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let level = match self.level {
            Level::Privileged => "privileged",
            Level::Baseline => "baseline",
            Level::Restricted => "restricted",
        };
        match self.minor {
            None => write!(f, "{level}:latest"),
            Some(minor) => write!(f, "{level}:v1.{minor}"),
        }
    }
}

impl Standard {
    /// Violations of a pod: reason and detail.
    fn violations(self, metadata: &Value, spec: &Value) -> Vec<(String, String)> {
        match self.level {
            Level::Privileged => Vec::new(),
            Level::Baseline => checks::run(metadata, spec, self.minor.unwrap_or(u32::MAX), false),
            Level::Restricted => checks::run(metadata, spec, self.minor.unwrap_or(u32::MAX), true),
        }
    }

    /// All violations in one line; `None` if there are none.
    fn complaint(self, metadata: &Value, spec: &Value) -> Option<String> {
        let found = self.violations(metadata, spec);
        let parts: Vec<String> =
            found.iter().map(|(reason, detail)| format!("{reason} ({detail})")).collect();
        (!parts.is_empty()).then(|| format!("PodSecurity \"{self}\": {}", parts.join(", ")))
    }
}

const PREFIX: &str = "pod-security.kubernetes.io/";

struct Policy {
    enforce: Standard,
    warn: Standard,
    errors: Vec<FieldError>,
}

fn policy(labels: &Value) -> Policy {
    const OPEN: Standard = Standard { level: Level::Privileged, minor: None };
    let mut errors = Vec::new();
    let mut read = |mode: &str| {
        let mut standard = OPEN;
        let mut given = None;
        if let Some(text) = labels[format!("{PREFIX}{mode}")].as_str() {
            given = match text {
                "privileged" => Some(Level::Privileged),
                "baseline" => Some(Level::Baseline),
                "restricted" => Some(Level::Restricted),
                _ => None,
            };
            if given.is_none() {
                let why = "must be one of privileged, baseline, restricted";
                errors.push(wrong(mode, text, why));
            }
            // An invalid label enforces the strictest level, and neither audits nor warns.
            let fallback = if mode == "enforce" { Level::Restricted } else { Level::Privileged };
            standard.level = given.unwrap_or(fallback);
        }
        let key = format!("{mode}-version");
        let version = labels[format!("{PREFIX}{key}")].as_str();
        if let Some(text) = version.filter(|text| *text != "latest") {
            standard.minor = minor(text);
            if standard.minor.is_none() {
                errors.push(wrong(&key, text, "must be \"latest\" or \"v1.x\""));
            }
        }
        (standard, given, version.is_some())
    };
    let (enforce, enforced, _) = read("enforce");
    read("audit");
    let (mut warn, _, warn_version) = read("warn");
    let warn_set = labels[format!("{PREFIX}warn")].is_string();
    if !warn_set && enforced.is_some_and(|level| level > warn.level) {
        warn.level = enforce.level;
        if !warn_version {
            warn.minor = enforce.minor;
        }
    }
    Policy { enforce, warn, errors }
}

fn wrong(key: &str, value: &str, why: &str) -> FieldError {
    FieldError::invalid(format!("metadata.labels[{PREFIX}{key}]"), &Value::from(value), why)
}

/// The minor version in `v1.x`.
fn minor(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("v1.")?;
    let plain = digits == "0" || (!digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit()));
    if plain { digits.parse().ok() } else { None }
}

/// The pod template of a kind that creates pods.
fn template<'a>(target: &Target, object: &'a Value) -> Option<&'a Value> {
    let pointer = match (target.rt.group.as_str(), target.rt.plural.as_str()) {
        ("apps", "deployments" | "replicasets" | "daemonsets" | "statefulsets")
        | ("batch", "jobs")
        | ("", "replicationcontrollers") => "/spec/template",
        ("batch", "cronjobs") => "/spec/jobTemplate/spec/template",
        ("", "podtemplates") => "/template",
        _ => return None,
    };
    object.pointer(pointer).filter(|found| found.is_object())
}

/// Checks an object against the policy of its namespace: pods are rejected, kinds that create pods get
/// warnings.
pub(crate) fn admit(inner: &Inner, attributes: AdmissionAttributes<'_>, object: &Value) -> ApiResult<()> {
    let AdmissionAttributes { ctx, target, old, .. } = attributes;
    match (target.rt.group.as_str(), target.rt.plural.as_str()) {
        ("", "namespaces") if target.subresource.is_empty() => namespace(inner, attributes, object),
        ("", "pods") if matches!(target.subresource.as_str(), "" | "ephemeralcontainers" | "resize") => {
            if old.is_some_and(|old| !significant(object, old)) {
                return Ok(());
            }
            let policy = policy_of(inner, target);
            let (metadata, spec) = (&object["metadata"], &object["spec"]);
            if let Some(why) = policy.enforce.complaint(metadata, spec) {
                let why = format!("violates {why}");
                return Err(ApiError::forbidden(&target.rt, object::name(object), &why));
            }
            warn(ctx, &policy, metadata, spec);
            Ok(())
        }
        _ if target.subresource.is_empty() => {
            if let Some(template) = template(target, object) {
                warn(ctx, &policy_of(inner, target), &template["metadata"], &template["spec"]);
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn policy_of(inner: &Inner, target: &Target) -> Policy {
    let entry = inner.store.latest("/namespaces", &object::key("", &target.namespace));
    policy(&entry.map_or(Value::Null, |entry| entry.value()["metadata"]["labels"].clone()))
}

fn warn(ctx: &RequestContext, policy: &Policy, metadata: &Value, spec: &Value) {
    if let Some(why) = policy.warn.complaint(metadata, spec) {
        ctx.warn(format!("would violate {why}"));
    }
}

/// Whether an update of a pod changes something that the checks read.
fn significant(new: &Value, old: &Value) -> bool {
    let images = |pod: &Value, key: &str| -> Vec<Value> {
        let found = pod["spec"][key].as_array().into_iter().flatten();
        found.map(|container| container["image"].clone()).collect()
    };
    ["containers", "initContainers", "ephemeralContainers"]
        .into_iter()
        .any(|key| images(new, key) != images(old, key))
}

/// Validates the labels of a namespace; for a stricter level, warns about existing pods that violate it.
fn namespace(inner: &Inner, attributes: AdmissionAttributes<'_>, object: &Value) -> ApiResult<()> {
    let AdmissionAttributes { ctx, target, old, .. } = attributes;
    let new = policy(&object["metadata"]["labels"]);
    let before = old.map(|old| policy(&old["metadata"]["labels"]));
    let known = before.as_ref().is_some_and(|before| before.errors == new.errors);
    if !new.errors.is_empty() && !known {
        return Err(ApiError::invalid(&target.rt, object::name(object), &new.errors));
    }
    let Some(before) = before else { return Ok(()) };
    let (now, was) = (new.enforce, before.enforce);
    if now == was || now.level == Level::Privileged || (now.minor == was.minor && now.level <= was.level) {
        return Ok(());
    }
    let name = object::name(object);
    // Reason to the first pod by name and the number of pods.
    let mut found: std::collections::BTreeMap<String, (String, usize)> = std::collections::BTreeMap::new();
    for (_, entry) in inner.store.list("/pods", &format!("{name}/"), None, 0).1 {
        let pod = entry.value();
        let reasons: Vec<String> =
            now.violations(&pod["metadata"], &pod["spec"]).into_iter().map(|(reason, _)| reason).collect();
        if !reasons.is_empty() {
            let own = object::name(&pod).to_owned();
            found.entry(reasons.join(", ")).or_insert((own, 0)).1 += 1;
        }
    }
    if !found.is_empty() {
        ctx.warn(format!(
            "existing pods in namespace {name:?} violate the new PodSecurity enforce level \"{now}\""
        ));
    }
    let mut lines: Vec<String> = found
        .into_iter()
        .map(|(reasons, (pod, count))| match count {
            1 => format!("{pod}: {reasons}"),
            2 => format!("{pod} (and 1 other pod): {reasons}"),
            more => format!("{pod} (and {} other pods): {reasons}", more - 1),
        })
        .collect();
    lines.sort_unstable();
    for line in lines {
        ctx.warn(line);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn policy_is_read_from_labels() {
        let labels = json!({"pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/enforce-version": "v1.25"});
        let read = policy(&labels);
        assert!(read.errors.is_empty());
        assert_eq!(
            (read.enforce.to_string(), read.warn.to_string()),
            ("baseline:v1.25".into(), "baseline:v1.25".into())
        );
        let read = policy(
            &json!({"pod-security.kubernetes.io/warn": "loose", "pod-security.kubernetes.io/audit-version": "1.2"}),
        );
        assert_eq!(read.errors.len(), 2);
        assert_eq!(read.warn.level, Level::Privileged);
    }

    #[test]
    fn plain_pod_violates_restricted() {
        let spec = json!({"containers": [{"name": "c", "image": "i"}]});
        let standard = Standard { level: Level::Restricted, minor: None };
        assert_eq!(
            standard.complaint(&json!({}), &spec).unwrap_or_default(),
            "PodSecurity \"restricted:latest\": allowPrivilegeEscalation != false (container \"c\" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container \"c\" must set securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != true (pod or container \"c\" must set securityContext.runAsNonRoot=true), seccompProfile (pod or container \"c\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")"
        );
        let standard = Standard { level: Level::Baseline, minor: None };
        assert_eq!(standard.complaint(&json!({}), &spec), None);
        let host = json!({"hostNetwork": true, "containers": [{"name": "c", "ports": [{"hostPort": 80}], "securityContext": {"privileged": true}}]});
        assert_eq!(standard.violations(&json!({}), &host).len(), 3);
    }
}
