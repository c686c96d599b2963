//! Storage format: JSON, gzipped, base64, in one Secret (or ConfigMap) per revision.

use std::collections::BTreeMap;
use std::io::{Read, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use serde_json::{Value, json};

use crate::error::{DecodeError, EncodeError};
use crate::release::Release;
use fl_go::to_go_json;

/// The type of the Secrets.
pub const SECRET_TYPE: &str = "helm.sh/release.v1";
/// Value of the label `owner`.
pub const OWNER: &str = "helm";
/// Labels set by Helm; all others are user labels.
pub const SYSTEM_LABELS: [&str; 6] = ["name", "owner", "status", "version", "createdAt", "modifiedAt"];
/// Maximum bytes in the data of a Secret.
pub const MAX_SECRET_BYTES: usize = 1_048_576;
/// Maximum bytes of an unpacked release. A Secret has at most 1 MiB, but a malicious one could unpack to much
/// more.
const MAX_UNPACKED_BYTES: u64 = 128 << 20;
const GZIP: &[u8] = b"\x1f\x8b\x08";

/// Name of the object of a revision.
pub fn object_name(release: &str, version: i64) -> String {
    format!("sh.helm.release.v1.{release}.v{version}")
}

/// Encodes the value of the key `release`.
pub fn encode(release: &Release) -> Result<String, EncodeError> {
    let failed = |source| EncodeError::Json { name: release.name.clone(), source };
    let json = to_go_json(release).map_err(failed)?;
    let mut packer = flate2::GzBuilder::new().write(Vec::with_capacity(json.len() / 4), Compression::best());
    let packed = packer.write_all(&json).and_then(|()| packer.finish());
    let packed = packed.map_err(|error| failed(serde_json::Error::io(error)))?;
    let text = STANDARD.encode(packed);
    if text.len() > MAX_SECRET_BYTES {
        return Err(EncodeError::TooLarge {
            name: release.name.clone(),
            bytes: text.len(),
            limit: MAX_SECRET_BYTES,
            largest: release.chart.largest_file(),
        });
    }
    Ok(text)
}

/// Decodes the value of the key `release`. JSON without gzip is accepted, as in Helm.
pub fn decode(text: &str) -> Result<Release, DecodeError> {
    let bytes = STANDARD.decode(text.trim_ascii()).map_err(DecodeError::Base64)?;
    let bytes = if bytes.starts_with(GZIP) { unpack(&bytes)? } else { bytes };
    let release: Release = serde_json::from_slice(&bytes).map_err(DecodeError::Json)?;
    if release.name.is_empty() {
        return Err(DecodeError::Incomplete("name"));
    }
    if release.version <= 0 {
        return Err(DecodeError::Incomplete("version"));
    }
    Ok(release)
}

fn unpack(bytes: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let mut out = Vec::with_capacity(bytes.len() * 4);
    let mut reader = flate2::bufread::GzDecoder::new(bytes).take(MAX_UNPACKED_BYTES + 1);
    reader.read_to_end(&mut out).map_err(DecodeError::Gzip)?;
    if out.len() as u64 > MAX_UNPACKED_BYTES {
        return Err(DecodeError::TooLarge { limit: MAX_UNPACKED_BYTES });
    }
    Ok(out)
}

fn labels(release: &Release, stamp: (&str, i64)) -> BTreeMap<String, String> {
    let mut labels = release.labels.clone();
    labels.insert(stamp.0.to_owned(), stamp.1.to_string());
    for (key, value) in [
        ("name", release.name.clone()),
        ("owner", OWNER.to_owned()),
        ("status", release.info.status.to_string()),
        ("version", release.version.to_string()),
    ] {
        labels.insert(key.to_owned(), value);
    }
    labels
}

/// The Secret of a revision. `stamp` is `createdAt` or `modifiedAt` with the time in seconds.
pub fn secret_object(
    release: &Release,
    storage_namespace: &str,
    stamp: (&str, i64),
) -> Result<Value, EncodeError> {
    let text = encode(release)?;
    Ok(json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": object_name(&release.name, release.version),
            "namespace": storage_namespace,
            "labels": labels(release, stamp),
        },
        "type": SECRET_TYPE,
        "data": {"release": STANDARD.encode(text)},
    }))
}

/// The ConfigMap of a revision, as in Helm's other driver.
pub fn config_map_object(
    release: &Release,
    storage_namespace: &str,
    stamp: (&str, i64),
) -> Result<Value, EncodeError> {
    let text = encode(release)?;
    Ok(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": object_name(&release.name, release.version),
            "namespace": storage_namespace,
            "labels": labels(release, stamp),
        },
        "data": {"release": text},
    }))
}

/// Reads a release from a Secret or ConfigMap, including user labels.
pub(crate) fn read_object(object: &Value) -> Result<Release, DecodeError> {
    let data = object.pointer("/data/release").and_then(Value::as_str).ok_or(DecodeError::Missing)?;
    let text = if object.get("kind").and_then(Value::as_str) == Some("ConfigMap") {
        data.to_owned()
    } else {
        let bytes = STANDARD.decode(data).map_err(DecodeError::Base64)?;
        String::from_utf8(bytes).map_err(|_| DecodeError::Incomplete("text"))?
    };
    let mut release = decode(&text)?;
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
    release.labels = labels
        .into_iter()
        .flatten()
        .filter(|(key, _)| !SYSTEM_LABELS.contains(&key.as_str()))
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect();
    Ok(release)
}
