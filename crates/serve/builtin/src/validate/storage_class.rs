//! Storage classes, CSI drivers, storage capacities, volume attachments.

use serde_json::Value;

use crate::field::{Errors, Path, entries, is_set, list, text};
use crate::validate::common_rules::{self, subdomain};
use crate::validate::resources;

fn driver(errors: &mut Errors, path: &Path, name: &str) {
    if name.is_empty() {
        errors.required(path, "");
    } else {
        let name = name.to_lowercase();
        errors.each_invalid(path, &name, &common_rules::messages(fl_types::check_qualified_name(&name)));
    }
}

/// Validates the number and size of driver parameters.
fn parameters(errors: &mut Errors, object: &Value, allow_empty: bool) {
    const MAX_COUNT: usize = 512;
    const MAX_BYTES: usize = 256 * 1024;
    let path = Path::new("parameters");
    let found = entries(object, "parameters");
    if found.len() > MAX_COUNT {
        errors.too_long(&path, MAX_COUNT);
        return;
    }
    for (key, _) in found.iter().filter(|(key, _)| key.is_empty()) {
        errors.invalid(&path, *key, "field can not be empty.");
    }
    let total: usize =
        found.iter().map(|(key, value)| key.len() + value.as_str().unwrap_or_default().len()).sum();
    if total > MAX_BYTES {
        errors.too_long(&path, MAX_BYTES);
    }
    if !allow_empty && found.is_empty() {
        errors.required(&path, "must contain at least one key/value pair");
    }
}

pub(crate) fn attributes_class(errors: &mut Errors, object: &Value) {
    driver(errors, &Path::new("driverName"), text(object, "driverName"));
    parameters(errors, object, false);
}

pub(crate) fn attributes_class_update(errors: &mut Errors, new: &Value, old: &Value) {
    for key in ["driverName", "parameters"] {
        if new[key] != old[key] {
            errors.forbidden(&Path::new(key), format!("updates to {key} are forbidden."));
        }
    }
}

pub(crate) fn storage_capacity(errors: &mut Errors, object: &Value) {
    common_rules::label_selector(errors, &Path::new("nodeTopology"), &object["nodeTopology"]);
    common_rules::subdomain(errors, &Path::new("storageClassName"), text(object, "storageClassName"));
    resources::non_negative_quantity(errors, &Path::new("capacity"), &object["capacity"]);
}

pub(crate) fn storage_capacity_update(errors: &mut Errors, new: &Value, old: &Value) {
    for key in ["nodeTopology", "storageClassName"] {
        errors.immutable(&Path::new(key), &new[key], &old[key]);
    }
}

pub(crate) fn storage_class(errors: &mut Errors, object: &Value) {
    driver(errors, &Path::new("provisioner"), text(object, "provisioner"));
    parameters(errors, object, true);
    let policy = text(object, "reclaimPolicy");
    if !policy.is_empty() {
        errors.one_of(&Path::new("reclaimPolicy"), policy, &["Delete", "Retain"]);
    }
    match object["volumeBindingMode"].as_str() {
        None => errors.required(&Path::new("volumeBindingMode"), ""),
        Some(mode) => {
            errors.one_of(&Path::new("volumeBindingMode"), mode, &["Immediate", "WaitForFirstConsumer"]);
        }
    }
    let terms = list(object, "allowedTopologies");
    for (at, term) in terms.iter().enumerate() {
        let path = Path::new("allowedTopologies").index(at).child("matchLabelExpressions");
        // Upstream reports a term without expressions as a duplicate, too.
        let same =
            |other: &Value| list(other, "matchLabelExpressions") == list(term, "matchLabelExpressions");
        if list(term, "matchLabelExpressions").is_empty() || terms[..at].iter().any(same) {
            errors.duplicate(&path, "");
        }
        let mut keys = std::collections::HashSet::new();
        for (i, expression) in list(term, "matchLabelExpressions").iter().enumerate() {
            let (path, key) = (path.index(i), text(expression, "key"));
            let values = list(expression, "values");
            if values.is_empty() {
                errors.required(&path.child("values"), "");
            }
            for (j, value) in values.iter().enumerate() {
                if values[..j].contains(value) {
                    errors.duplicate(&path.child("values").index(j), value.clone());
                }
            }
            common_rules::qualified_name(errors, &path.child("key"), key);
            if !keys.insert(key) {
                errors.duplicate(&path.child("key"), key);
            }
        }
    }
}

/// The name of a storage driver.
pub(super) fn driver_name(errors: &mut Errors, path: &Path, name: &str) {
    if name.is_empty() {
        errors.required(path, "");
    }
    if name.len() > 63 {
        errors.too_long(path, 63);
    }
    let found = common_rules::messages(fl_types::check_dns1123_subdomain(&name.to_lowercase()));
    errors.each_invalid(path, name, &found);
}

pub(crate) fn csi_driver(errors: &mut Errors, object: &Value) {
    let (path, spec) = (Path::new("spec"), &object["spec"]);
    for (key, shown) in [
        ("attachRequired", "attachedRequired"),
        ("podInfoOnMount", "podInfoOnMount"),
        ("storageCapacity", "storageCapacity"),
    ] {
        if !is_set(spec, key) {
            errors.required(&path.child(shown), "");
        }
    }
    if let Some(policy) = spec["fsGroupPolicy"].as_str() {
        errors.one_of(&path.child("fsGroupPolicy"), policy, &["File", "None", "ReadWriteOnceWithFSType"]);
    }
    let mut audiences = std::collections::HashSet::new();
    for (at, request) in list(spec, "tokenRequests").iter().enumerate() {
        let path = path.child("tokenRequests").index(at);
        if !audiences.insert(text(request, "audience")) {
            errors.duplicate(&path.child("audience"), text(request, "audience"));
            continue;
        }
        if let Some(seconds) = request["expirationSeconds"].as_i64() {
            let why = match seconds {
                ..600 => "may not specify a duration less than 10 minutes",
                600..=0x1_0000_0000 => continue,
                _ => "may not specify a duration larger than 2^32 seconds",
            };
            errors.invalid(&path.child("expirationSeconds"), seconds, why);
        }
    }
    for mode in list(spec, "volumeLifecycleModes").iter().filter_map(Value::as_str) {
        errors.one_of(&path.child("volumeLifecycleModes"), mode, &["Persistent", "Ephemeral"]);
    }
}

pub(crate) fn csi_driver_update(errors: &mut Errors, new: &Value, old: &Value) {
    let (path, new, old) = (Path::new("spec"), &new["spec"], &old["spec"]);
    for (key, shown) in
        [("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")]
    {
        errors.immutable(&path.child(shown), &new[key], &old[key]);
    }
}

pub(crate) fn csi_node(errors: &mut Errors, object: &Value) {
    let mut names = std::collections::HashSet::new();
    for (at, driver) in list(&object["spec"], "drivers").iter().enumerate() {
        let path = Path::new("spec.drivers").index(at);
        let name = text(driver, "name");
        driver_name(errors, &path.child("name"), name);
        if text(driver, "nodeID").is_empty() {
            errors.required(&path.child("nodeID"), "");
        }
        if text(driver, "nodeID").len() > 256 {
            errors.invalid(&path.child("nodeID"), text(driver, "nodeID"), "must be 256 characters or less");
        }
        errors.non_negative(&path.at("allocatable.count"), &driver["allocatable"]["count"]);
        let mut keys = std::collections::HashSet::new();
        for key in list(driver, "topologyKeys").iter().filter_map(Value::as_str) {
            if key.is_empty() {
                errors.required(&path, "");
            }
            if !keys.insert(key) {
                errors.duplicate(&path, key);
            }
            common_rules::qualified_name(errors, &path, key);
        }
        if !names.insert(name) {
            errors.duplicate(&path.child("name"), name);
        }
    }
}

pub(crate) fn volume_attachment(errors: &mut Errors, object: &Value) {
    let (path, spec) = (Path::new("spec"), &object["spec"]);
    if text(spec, "attacher").is_empty() {
        errors.required(&path.child("attacher"), "");
    }
    let source = &spec["source"];
    let at = path.child("source");
    match (is_set(source, "inlineVolumeSpec"), text(source, "persistentVolumeName").is_empty()) {
        (false, true) => {
            errors.required(&at, "must specify exactly one of inlineVolumeSpec and persistentVolumeName");
        }
        (true, false) => {
            errors.forbidden(&at, "must specify exactly one of inlineVolumeSpec and persistentVolumeName");
        }
        _ => {}
    }
    subdomain(errors, &path.child("nodeName"), text(spec, "nodeName"));
    driver_name(errors, &path.child("attacher"), text(spec, "attacher"));
}

pub(crate) fn storage_class_update(errors: &mut Errors, new: &Value, old: &Value) {
    for key in ["parameters", "provisioner", "reclaimPolicy"] {
        if new[key] != old[key] {
            errors.forbidden(&Path::new(key), format!("updates to {key} are forbidden."));
        }
    }
    let mode = |object: &Value| object["volumeBindingMode"].clone();
    errors.immutable(&Path::new("volumeBindingMode"), &mode(new), &mode(old));
}
