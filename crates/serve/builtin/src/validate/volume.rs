//! Volumes of a pod.

use std::collections::HashSet;

use serde_json::Value;

use super::environment::{field_reference, resource_reference};
use crate::field::{Errors, Path, is_set, list, text};
use crate::validate::common_rules::{self, label, local_path};

/// Validates volumes and returns the names of those without errors, which mounts may use.
pub(super) fn volumes<'a>(errors: &mut Errors, path: &Path, volumes: &'a [Value]) -> HashSet<&'a str> {
    let mut usable = HashSet::new();
    for (at, volume) in volumes.iter().enumerate() {
        let path = path.index(at);
        let before = errors.0.len();
        source(errors, &path, volume);
        let name = text(volume, "name");
        if name.is_empty() {
            errors.required(&path.child("name"), "");
        } else {
            label(errors, &path.child("name"), name);
        }
        if usable.contains(name) {
            errors.duplicate(&path.child("name"), name);
        }
        if errors.0.len() == before {
            usable.insert(name);
        }
    }
    usable
}

/// Volume sources in the order in which upstream reads them; the first one set is used.
const KINDS: &[&str] = &[
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
];

/// Required fields of each volume source.
fn required_fields(kind: &str) -> &'static [&'static str] {
    match kind {
        "gitRepo" => &["repository"],
        "gcePersistentDisk" => &["pdName"],
        "awsElasticBlockStore" | "cinder" => &["volumeID"],
        "iscsi" => &["targetPortal", "iqn"],
        "nfs" => &["server", "path"],
        "glusterfs" => &["endpoints", "path"],
        "persistentVolumeClaim" => &["claimName"],
        "rbd" => &["monitors", "image"],
        "cephfs" => &["monitors"],
        "flexVolume" => &["driver"],
        "azureFile" => &["secretName", "shareName"],
        "vsphereVolume" => &["volumePath"],
        "photonPersistentDisk" => &["pdID"],
        "portworxVolume" => &["volumeID"],
        "azureDisk" => &["diskName", "diskURI"],
        "scaleIO" => &["gateway", "system", "volumeName"],
        "quobyte" => &["registry", "volume"],
        "secret" => &["secretName"],
        "configMap" => &["name"],
        "csi" => &["driver"],
        _ => &[],
    }
}

fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

fn source(errors: &mut Errors, path: &Path, volume: &Value) {
    let mut found = KINDS.iter().copied().filter(|kind| is_set(volume, kind));
    let Some(kind) = found.next() else {
        errors.required(path, "must specify a volume type");
        return;
    };
    let (here, body) = (path.child(kind), &volume[kind]);
    for field in required_fields(kind) {
        if is_blank(&body[*field]) {
            let why = match (kind, *field) {
                ("quobyte", "registry") => "must be a host:port pair or multiple pairs separated by commas",
                _ => "",
            };
            errors.required(&here.child(field), why);
        }
    }
    match kind {
        "emptyDir" if text(body, "sizeLimit").starts_with('-') => {
            errors.forbidden(&here.child("sizeLimit"), "SizeLimit field must be a valid resource quantity");
        }
        "hostPath" => host_path(errors, &here, body),
        "gitRepo" if text(body, "directory").split('/').any(|step| step == "..") => {
            errors.invalid(&here.child("directory"), text(body, "directory"), "must not contain '..'");
        }
        "nfs" if !text(body, "path").starts_with('/') => {
            errors.invalid(&here.child("path"), text(body, "path"), "must be an absolute path");
        }
        "secret" | "configMap" => {
            mode(errors, &here.child("defaultMode"), &body["defaultMode"]);
            for (at, item) in list(body, "items").iter().enumerate() {
                key_to_path(errors, &here.child("items").index(at), item);
            }
        }
        "downwardAPI" => {
            mode(errors, &here.child("defaultMode"), &body["defaultMode"]);
            for file in list(body, "items") {
                downward_file(errors, &here, file);
            }
        }
        "projected" => {
            mode(errors, &here.child("defaultMode"), &body["defaultMode"]);
            projected(errors, &here, body);
        }
        "csi" => {
            match text(body, "driver") {
                "" => common_rules::subdomain(errors, &here.child("driver"), ""),
                name => super::storage_class::driver_name(errors, &here.child("driver"), name),
            }
            if is_set(body, "nodePublishSecretRef") && text(&body["nodePublishSecretRef"], "name").is_empty()
            {
                errors.required(&here.at("nodePublishSecretRef.name"), "");
            }
        }
        "fc" => {
            let (names, ids) = (!list(body, "targetWWNs").is_empty(), !list(body, "wwids").is_empty());
            if names == ids {
                let why = "must specify either targetWWNs or wwids, but not both";
                errors.required(&here.child("targetWWNs"), why);
            }
        }
        "storageos" if text(body, "volumeName").is_empty() => {
            errors.required(&here.child("volumeName"), "");
        }
        "flocker" if text(body, "datasetName").is_empty() && text(body, "datasetUUID").is_empty() => {
            errors.required(&here, "one of datasetName and datasetUUID is required");
        }
        "awsElasticBlockStore" => {
            if let Some(part) = body["partition"].as_i64().filter(|p| !(0..=255).contains(p)) {
                errors.invalid(&here.child("partition"), part, "must be between 1 and 255, inclusive");
            }
        }
        "azureDisk" => azure_disk(errors, &here, body),
        "iscsi" => iscsi(errors, &here, body),
        "ephemeral" => {
            let template = &body["volumeClaimTemplate"];
            if template.is_null() {
                errors.required(&here.child("volumeClaimTemplate"), "");
            } else {
                super::storage::claim_spec(errors, &here.at("volumeClaimTemplate.spec"), &template["spec"]);
            }
        }
        _ => {}
    }
    for other in found {
        // Two names in the messages differ from the field names.
        let name = match other {
            "cephfs" => "cephFS",
            "downwardAPI" => "downwarAPI",
            other => other,
        };
        errors.forbidden(&path.child(name), "may not specify more than 1 volume type");
    }
}

/// Validates an Azure disk; the form of its URI depends on whether it is managed.
pub(super) fn azure_disk(errors: &mut Errors, path: &Path, body: &Value) {
    let (uri, kind) = (text(body, "diskURI"), text(body, "kind"));
    if let Some(mode) = body["cachingMode"].as_str() {
        errors.one_of(&path.child("cachingMode"), mode, &["None", "ReadOnly", "ReadWrite"]);
    }
    if !kind.is_empty() {
        errors.one_of(&path.child("kind"), kind, &["Dedicated", "Managed", "Shared"]);
    }
    if kind == "Managed" && !uri.starts_with("/subscriptions/") {
        const URI_FORM: &str =
            "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}";
        errors.not_supported(&path.child("diskURI"), uri, &[URI_FORM]);
    }
    if kind != "Managed" && !uri.starts_with("https://") && !uri.starts_with("http://") {
        const URI_FORM: &str =
            "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";
        errors.not_supported(&path.child("diskURI"), uri, &[URI_FORM]);
    }
}

fn iscsi(errors: &mut Errors, path: &Path, body: &Value) {
    let name = text(body, "iqn");
    let good = ["iqn", "eui", "naa"].iter().any(|prefix| name.starts_with(prefix));
    if !name.is_empty() && !good {
        errors.invalid(&path.child("iqn"), name, "must be valid format starting with iqn, eui, or naa");
    }
    let lun = body["lun"].as_i64().unwrap_or(0);
    if !(0..=255).contains(&lun) {
        errors.invalid(&path.child("lun"), lun, "must be between 0 and 255, inclusive");
    }
}

fn host_path(errors: &mut Errors, path: &Path, body: &Value) {
    if text(body, "path").is_empty() {
        errors.required(&path.child("path"), "");
        return;
    }
    common_rules::no_backsteps(errors, &path.child("path"), text(body, "path"));
    errors.one_of(&path.child("type"), text(body, "type"), HOST_PATH_TYPES);
}

/// Types of host path volumes.
pub(super) const HOST_PATH_TYPES: &[&str] =
    &["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];

fn mode(errors: &mut Errors, path: &Path, value: &Value) {
    if let Some(bits) = value.as_i64().filter(|bits| !(0..=0o777).contains(bits)) {
        errors.invalid(path, bits, "must be a number between 0 and 0777 (octal), both inclusive");
    }
}

fn key_to_path(errors: &mut Errors, path: &Path, item: &Value) {
    if text(item, "key").is_empty() {
        errors.required(&path.child("key"), "");
    }
    if text(item, "path").is_empty() {
        errors.required(&path.child("path"), "");
    }
    local_path(errors, &path.child("path"), text(item, "path"));
    mode(errors, &path.child("mode"), &item["mode"]);
}

const VOLUME_FIELDS: &[&str] =
    &["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];

fn downward_file(errors: &mut Errors, path: &Path, file: &Value) {
    if text(file, "path").is_empty() {
        errors.required(&path.child("path"), "");
    }
    local_path(errors, &path.child("path"), text(file, "path"));
    match (is_set(file, "fieldRef"), is_set(file, "resourceFieldRef")) {
        (true, both) => {
            field_reference(errors, &path.child("fieldRef"), &file["fieldRef"], VOLUME_FIELDS);
            if both {
                errors.invalid(
                    path,
                    "resource",
                    "fieldRef and resourceFieldRef can not be specified simultaneously",
                );
            }
        }
        (false, true) => {
            let reference = &file["resourceFieldRef"];
            resource_reference(errors, &path.child("resourceFieldRef"), reference, true);
        }
        (false, false) => errors.required(path, "one of fieldRef and resourceFieldRef is required"),
    }
    mode(errors, &path.child("mode"), &file["mode"]);
}

fn projected(errors: &mut Errors, path: &Path, body: &Value) {
    let mut paths = HashSet::new();
    for (at, source) in list(body, "sources").iter().enumerate() {
        let here = path.child("sources").index(at);
        let mut found = 0;
        for kind in ["secret", "configMap"] {
            let (at, projection) = (here.child(kind), &source[kind]);
            if projection.is_null() {
                continue;
            }
            found += 1;
            if text(projection, "name").is_empty() {
                errors.required(&at.child("name"), "");
            }
            for (i, item) in list(projection, "items").iter().enumerate() {
                key_to_path(errors, &at.child("items").index(i), item);
                if !text(item, "path").is_empty() && !paths.insert(text(item, "path")) {
                    errors.invalid(path, text(projection, "name"), "conflicting duplicate paths");
                }
            }
        }
        if is_set(source, "downwardAPI") {
            found += 1;
            for file in list(&source["downwardAPI"], "items") {
                downward_file(errors, &here.child("downwardAPI"), file);
                if !text(file, "path").is_empty() && !paths.insert(text(file, "path")) {
                    errors.invalid(path, text(file, "path"), "conflicting duplicate paths");
                }
            }
        }
        let token = &source["serviceAccountToken"];
        if !token.is_null() {
            found += 1;
            let at = here.child("serviceAccountToken").child("expirationSeconds");
            let seconds = token["expirationSeconds"].as_i64().unwrap_or(3600);
            if seconds < 600 {
                errors.invalid(&at, seconds, "may not specify a duration less than 10 minutes");
            }
            if seconds > 1 << 32 {
                errors.invalid(&at, seconds, "may not specify a duration larger than 2^32 seconds");
            }
            match text(token, "path") {
                "" => errors.required(&path.child("path"), ""),
                target => local_path(errors, &path.child("path"), target),
            }
        }
        if found > 1 {
            errors.forbidden(&here, "may not specify more than 1 volume type per source");
        }
    }
}
