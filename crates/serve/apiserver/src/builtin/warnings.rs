//! Texts of `Warning` headers for writes.

use serde_json::Value;

use super::checks::messages;
use super::field::{Path, text};
use super::validate::duplicate_environment;

const SURPRISING: &str = "which can result in surprising behavior; a DNS label is recommended";

fn name_warning(object: &Value, used_in: &str) -> Option<String> {
    let found = messages(fl_types::check_dns1123_label(text(&object["metadata"], "name")));
    (!found.is_empty())
        .then(|| format!("metadata.name: this is used in {used_in}, {SURPRISING}: [{}]", found.join(" ")))
}

fn template(path: &Path, spec: &Value) -> Vec<String> {
    let mut found = duplicate_environment(path, spec, "initContainers");
    found.extend(duplicate_environment(path, spec, "containers"));
    found
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
