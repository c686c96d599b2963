//! Volumes, claims, storage classes.

use std::cmp::Ordering;

use serde_json::{Value, json};

use crate::field::{Errors, Path, entries, is_set, list, text};
use crate::validate::common_rules::{self, label, label_selector, subdomain, unified_diff};
use crate::validate::resources::quantity;

const MODES: &[&str] = &["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

fn access_modes(errors: &mut Errors, path: &Path, modes: &[Value]) {
    for mode in modes.iter().filter_map(Value::as_str) {
        errors.one_of(path, mode, MODES);
    }
    let (pod, others): (Vec<&Value>, Vec<&Value>) = modes.iter().partition(|m| **m == "ReadWriteOncePod");
    if !pod.is_empty() && others.iter().any(|m| m.as_str().is_some_and(|m| MODES.contains(&m))) {
        errors.forbidden(path, "may not use ReadWriteOncePod with other access modes");
    }
}

pub(crate) fn claim(errors: &mut Errors, object: &Value) {
    claim_spec(errors, &Path::new("spec"), &object["spec"]);
}

pub(super) fn claim_spec(errors: &mut Errors, path: &Path, spec: &Value) {
    let modes = list(spec, "accessModes");
    if modes.is_empty() {
        errors.required(&path.child("accessModes"), "at least 1 access mode is required");
    }
    label_selector(errors, &path.child("selector"), &spec["selector"]);
    access_modes(errors, &path.child("accessModes"), modes);
    let at = path.child("resources").key("storage");
    match quantity(&spec["resources"]["requests"]["storage"]) {
        None => errors.required(&at, ""),
        Some(size) if size.sign() != Ordering::Greater => {
            errors.invalid(&at, size.to_string(), "must be greater than zero");
        }
        Some(_) => {}
    }
    for key in ["storageClassName", "volumeAttributesClassName"] {
        let name = text(spec, key);
        if !name.is_empty() {
            subdomain(errors, &path.child(key), name);
        }
    }
    if let Some(mode) = spec["volumeMode"].as_str() {
        errors.one_of(&path.child("volumeMode"), mode, &["Block", "Filesystem"]);
    }
    for key in ["dataSource", "dataSourceRef"] {
        if is_set(spec, key) {
            data_source(errors, &path.child(key), &spec[key]);
        }
    }
    if is_set(spec, "dataSource") && is_set(spec, "dataSourceRef") {
        let (source, reference) = (&spec["dataSource"], &spec["dataSourceRef"]);
        let why = if is_set(reference, "namespace") && !text(reference, "namespace").is_empty() {
            Some("may not be specified when dataSourceRef.namespace is specified")
        } else {
            let same = ["apiGroup", "kind", "name"].iter().all(|key| source[key] == reference[key]);
            (!same).then_some("must match dataSourceRef")
        };
        if let Some(why) = why {
            // Upstream passes the path as value here, which prints as an empty object.
            errors.invalid_printed(path, "{}", why);
        }
    }
}

fn data_source(errors: &mut Errors, path: &Path, source: &Value) {
    for key in ["name", "kind"] {
        if text(source, key).is_empty() {
            errors.required(&path.child(key), "");
        }
    }
    let (group, kind) = (text(source, "apiGroup"), text(source, "kind"));
    if group.is_empty() {
        if kind != "PersistentVolumeClaim" && !kind.is_empty() {
            errors.invalid(
                path,
                kind,
                "must be 'PersistentVolumeClaim' when referencing the default apiGroup",
            );
        }
    } else {
        subdomain(errors, &path.child("apiGroup"), group);
    }
    let namespace = text(source, "namespace");
    if !namespace.is_empty() {
        label(errors, &path.child("namespace"), namespace);
    }
}

/// The spec as upstream prints its internal Go type, with unset fields written out.
fn internal_claim_spec(spec: &Value) -> String {
    let indent = |value: &Value, by: usize| {
        let mut out = Vec::new();
        let mut writer = serde_json::Serializer::with_formatter(
            &mut out,
            serde_json::ser::PrettyFormatter::with_indent(b" "),
        );
        let _ = serde::Serialize::serialize(value, &mut writer);
        String::from_utf8_lossy(&out).replace('\n', &format!("\n{}", " ".repeat(by)))
    };
    let reference = |value: &Value, with_namespace: bool| {
        if value.is_null() {
            return "null".to_owned();
        }
        let namespace = if with_namespace {
            format!(",\n  \"Namespace\": {}", value["namespace"])
        } else {
            String::new()
        };
        format!(
            "{{\n  \"APIGroup\": {},\n  \"Kind\": {},\n  \"Name\": {}{namespace}\n }}",
            value["apiGroup"],
            json!(text(value, "kind")),
            json!(text(value, "name"))
        )
    };
    let selector = if spec["selector"].is_null() { "null".to_owned() } else { indent(&spec["selector"], 1) };
    let resources = format!(
        "{{\n  \"Limits\": {},\n  \"Requests\": {}\n }}",
        indent(&spec["resources"]["limits"], 2),
        indent(&spec["resources"]["requests"], 2)
    );
    format!(
        "{{\n \"AccessModes\": {},\n \"Selector\": {selector},\n \"Resources\": {resources},\n \"VolumeName\": {},\n \"StorageClassName\": {},\n \"VolumeMode\": {},\n \"DataSource\": {},\n \"DataSourceRef\": {},\n \"VolumeAttributesClassName\": {}\n}}\n",
        indent(&spec["accessModes"], 1),
        json!(text(spec, "volumeName")),
        spec["storageClassName"],
        spec["volumeMode"],
        reference(&spec["dataSource"], false),
        reference(&spec["dataSourceRef"], true),
        spec["volumeAttributesClassName"],
    )
}

pub(crate) fn claim_update(errors: &mut Errors, new: &Value, old: &Value) {
    let (mut now, mut before) = (new["spec"].clone(), old["spec"].clone());
    if text(&before, "volumeName").is_empty() {
        crate::strategy::copy_field(&mut before, &now, "volumeName");
    }
    if !is_set(&before, "storageClassName") && is_set(&now, "storageClassName") {
        // A claim without a class may get one later.
        crate::strategy::copy_field(&mut now, &before, "storageClassName");
    }
    let bound = text(&new["status"], "phase") == "Bound";
    if bound {
        if now["resources"]["requests"].is_object() {
            now["resources"]["requests"]["storage"] = before["resources"]["requests"]["storage"].clone();
        }
        crate::strategy::copy_field(&mut now, &before, "volumeAttributesClassName");
    }
    if now != before {
        let diff = unified_diff(&internal_claim_spec(&before), &internal_claim_spec(&now));
        let why = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        errors.forbidden(&Path::new("spec"), format!("{why}\n{diff}"));
    }
    // An unset quantity is zero.
    let size = |amounts: &Value| {
        quantity(&amounts["storage"])
            .unwrap_or_else(|| fl_types::Quantity::new(0, fl_types::Format::DecimalSi))
    };
    let (wanted, was) =
        (size(&new["spec"]["resources"]["requests"]), size(&old["spec"]["resources"]["requests"]));
    if wanted < was && wanted <= size(&old["status"]["capacity"]) {
        let path = Path::new("spec.resources.requests.storage");
        errors.forbidden(&path, "field can not be less than status.capacity");
    }
    let mode = |object: &Value| object["spec"]["volumeMode"].clone();
    errors.immutable(&Path::new("volumeMode"), &mode(new), &mode(old));
}

const VOLUME_KINDS: &[&str] = &[
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
    "flexVolume",
];

pub(crate) fn volume(errors: &mut Errors, object: &Value) {
    let (path, spec) = (Path::new("spec"), &object["spec"]);
    let modes = list(spec, "accessModes");
    if modes.is_empty() {
        errors.required(&path.child("accessModes"), "");
    }
    access_modes(errors, &path.child("accessModes"), modes);
    let capacity = entries(spec, "capacity");
    if capacity.is_empty() {
        errors.required(&path.child("capacity"), "");
    }
    if !is_set(&spec["capacity"], "storage") || capacity.len() > 1 {
        errors.not_supported(&path.child("capacity"), spec["capacity"].clone(), &["storage"]);
    }
    for (name, amount) in capacity {
        let at = path.child("capacity").key(name);
        let Some(size) = quantity(amount) else { continue };
        if let Some(whole) = size.value().filter(|value| *value < 0) {
            errors.invalid(&at, whole, "must be a valid resource quantity");
        }
        if size.sign() != Ordering::Greater {
            errors.invalid(&at, amount.clone(), "must be greater than zero");
        }
    }
    let policy = text(spec, "persistentVolumeReclaimPolicy");
    if !policy.is_empty() {
        errors.one_of(&path.child("persistentVolumeReclaimPolicy"), policy, &["Delete", "Recycle", "Retain"]);
    }
    volume_source(errors, &path, spec);
    let class = text(spec, "storageClassName");
    if !class.is_empty() {
        subdomain(errors, &path.child("storageClassName"), class);
    }
    if let Some(mode) = spec["volumeMode"].as_str() {
        errors.one_of(&path.child("volumeMode"), mode, &["Block", "Filesystem"]);
    }
}

fn volume_source(errors: &mut Errors, path: &Path, spec: &Value) {
    let mut found = VOLUME_KINDS.iter().copied().filter(|kind| is_set(spec, kind));
    let Some(kind) = found.next() else {
        errors.required(path, "must specify a volume type");
        return;
    };
    let (at, source) = (path.child(kind), &spec[kind]);
    let required: &[&str] = match kind {
        "hostPath" | "local" => &["path"],
        "nfs" => &["server", "path"],
        "csi" => &["driver", "volumeHandle"],
        "gcePersistentDisk" => &["pdName"],
        "awsElasticBlockStore" | "cinder" => &["volumeID"],
        "iscsi" => &["targetPortal", "iqn"],
        _ => &[],
    };
    for key in required {
        if text(source, key).is_empty() {
            errors.required(&at.child(key), "");
        }
    }
    if kind == "csi" {
        match text(source, "driver") {
            "" => subdomain(errors, &at.child("driver"), ""),
            name => super::storage_class::driver_name(errors, &at.child("driver"), name),
        }
        // The node stage secret is not validated.
        for key in [
            "controllerPublishSecretRef",
            "nodePublishSecretRef",
            "controllerExpandSecretRef",
            "nodeExpandSecretRef",
        ] {
            for part in ["name", "namespace"] {
                if is_set(source, key) && text(&source[key], part).is_empty() {
                    errors.required(&at.child(key).child(part), "");
                }
            }
        }
    }
    if kind == "azureDisk" {
        super::volume::azure_disk(errors, &at, source);
    }
    if is_set(spec, "nodeAffinity") && !is_set(&spec["nodeAffinity"], "required") {
        errors.required(&path.at("nodeAffinity.required"), "must specify required node constraints");
    }
    if let ("hostPath", Some(sort)) = (kind, source["type"].as_str()) {
        errors.one_of(&at.child("type"), sort, super::volume::HOST_PATH_TYPES);
    }
    if matches!(kind, "hostPath" | "local") {
        common_rules::no_backsteps(errors, &at.child("path"), text(source, "path"));
    }
    if kind == "nfs" && !text(source, "path").starts_with('/') {
        errors.invalid(&at.child("path"), text(source, "path"), "must be an absolute path");
    }
    if kind == "local" && !is_set(spec, "nodeAffinity") {
        errors.required(&path.child("nodeAffinity"), "Local volume requires node affinity");
    }
    if kind == "hostPath"
        && text(source, "path") == "/"
        && text(spec, "persistentVolumeReclaimPolicy") == "Recycle"
    {
        let why = "may not be 'recycle' for a hostPath mount of '/'";
        errors.forbidden(&path.child("persistentVolumeReclaimPolicy"), why);
    }
    if is_set(&spec["nodeAffinity"], "required") {
        super::scheduling::node_selector(
            errors,
            &path.at("nodeAffinity.required"),
            &spec["nodeAffinity"]["required"],
        );
    }
    for other in found {
        let name = if other == "cephfs" { "cephFS" } else { other };
        errors.forbidden(&path.child(name), "may not specify more than 1 volume type");
    }
}

pub(crate) fn volume_update(errors: &mut Errors, new: &Value, old: &Value) {
    let source = |object: &Value| -> Value {
        VOLUME_KINDS
            .iter()
            .filter(|kind| is_set(&object["spec"], kind))
            .map(|kind| ((*kind).to_owned(), object["spec"][*kind].clone()))
            .collect::<serde_json::Map<String, Value>>()
            .into()
    };
    let (now, before) = (source(new), source(old));
    if now != before {
        let print = |value: &Value| crate::go_print::indented("PersistentVolumeSource", value);
        let diff = unified_diff(&print(&before), &print(&now));
        let why = format!("spec.persistentvolumesource is immutable after creation\n{diff}");
        errors.forbidden(&Path::new("spec.persistentvolumesource"), why);
    }
    let mode = |object: &Value| object["spec"]["volumeMode"].clone();
    errors.immutable(&Path::new("volumeMode"), &mode(new), &mode(old));
    let (now, before) = (&new["spec"]["nodeAffinity"], &old["spec"]["nodeAffinity"]);
    if is_set(&old["spec"], "nodeAffinity") && now != before {
        let shown = crate::go_print::compact("*VolumeNodeAffinity", now);
        let why = "field is immutable, except for updating from beta label to GA";
        errors.invalid_printed(&Path::new("nodeAffinity"), shown, why);
    }
}
