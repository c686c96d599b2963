//! Ephemeral containers: added to a running pod for debugging.

use std::collections::HashSet;

use serde_json::Value;

use crate::field::{Errors, Path, is_set, list, text};
use crate::go_print::indented;
use crate::validate::common_rules::{label, unified_diff};

/// Fields that an ephemeral container cannot have.
const FORBIDDEN: [&str; 7] =
    ["lifecycle", "livenessProbe", "ports", "readinessProbe", "resources", "resizePolicy", "startupProbe"];

/// Ephemeral containers may be added; existing ones are immutable.
pub(crate) fn ephemeral_containers(errors: &mut Errors, new: &Value, old: &Value) {
    let (path, spec) = (Path::new("spec.ephemeralContainers"), &new["spec"]);
    let others = ["containers", "initContainers"].iter().flat_map(|key| list(spec, key));
    let others: HashSet<&str> = others.map(|container| text(container, "name")).collect();
    let mut names = others.clone();
    let containers = list(spec, "ephemeralContainers");
    for (at, container) in containers.iter().enumerate() {
        let (path, name) = (path.index(at), text(container, "name"));
        if name.is_empty() {
            errors.required(&path.child("name"), "");
        } else {
            label(errors, &path.child("name"), name);
            if !names.insert(name) {
                errors.duplicate(&path.child("name"), name);
            }
        }
        if text(container, "image").is_empty() {
            errors.required(&path.child("image"), "");
        }
        let target = text(container, "targetContainerName");
        if !target.is_empty() && !others.contains(target) {
            errors.not_found(&path.child("targetContainerName"), target);
        }
        for key in FORBIDDEN {
            let empty = container[key].as_object().is_some_and(serde_json::Map::is_empty);
            if is_set(container, key) && !empty {
                errors.forbidden(&path.child(key), "cannot be set for an Ephemeral Container");
            }
        }
    }
    for before in list(&old["spec"], "ephemeralContainers") {
        let name = text(before, "name");
        let why = match containers.iter().find(|container| text(container, "name") == name) {
            None => format!("existing ephemeral containers {} may not be removed\n", fl_go::quote(name)),
            Some(now) if now != before => {
                let print = |container: &Value| indented("EphemeralContainer", container);
                let diff = unified_diff(&print(before), &print(now));
                format!("existing ephemeral containers {} may not be changed\n{diff}", fl_go::quote(name))
            }
            Some(_) => continue,
        };
        errors.forbidden(&path, why);
    }
}
