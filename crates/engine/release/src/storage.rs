//! Where and how records are kept: JSON, gzipped, base64, in a Secret (or a ConfigMap) per revision.

use std::collections::BTreeMap;
use std::io::{Read, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use serde_json::{Value, json};

use crate::error::{DecodeError, EncodeError};
use crate::go_json::to_go_json;
use crate::record::Release;

/// The type of the Secrets.
pub const RECORD_TYPE: &str = "helm.sh/release.v1";
/// The value of their label `owner`.
pub const OWNER: &str = "helm";
/// Labels that belong to Helm; others are a person's.
pub const SYSTEM_LABELS: [&str; 6] = ["name", "owner", "status", "version", "createdAt", "modifiedAt"];
/// What the data of a Secret may hold, in bytes.
pub const LARGEST_RECORD: usize = 1_048_576;
/// What a record may unpack to. A Secret has a mebibyte; text packs well, but not without end.
const LARGEST_UNPACKED: u64 = 128 << 20;
const GZIP: &[u8] = b"\x1f\x8b\x08";

/// The name of the object that keeps a revision.
pub fn record_name(release: &str, version: i64) -> String {
    format!("sh.helm.release.v1.{release}.v{version}")
}

/// The text that is kept under the key `release`.
pub fn encode(release: &Release) -> Result<String, EncodeError> {
    let failed = |source| EncodeError::Json { name: release.name.clone(), source };
    let json = to_go_json(release).map_err(failed)?;
    let mut packer = flate2::GzBuilder::new().write(Vec::with_capacity(json.len() / 4), Compression::best());
    let packed = packer.write_all(&json).and_then(|()| packer.finish());
    let packed = packed.map_err(|error| failed(serde_json::Error::io(error)))?;
    let text = STANDARD.encode(packed);
    if text.len() > LARGEST_RECORD {
        return Err(EncodeError::TooLarge {
            name: release.name.clone(),
            bytes: text.len(),
            limit: LARGEST_RECORD,
            largest: release.chart.largest_part(),
        });
    }
    Ok(text)
}

/// Reads the text of a record. Plain JSON without gzip is read too, as Helm does.
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
    let mut reader = flate2::bufread::GzDecoder::new(bytes).take(LARGEST_UNPACKED + 1);
    reader.read_to_end(&mut out).map_err(DecodeError::Gzip)?;
    if out.len() as u64 > LARGEST_UNPACKED {
        return Err(DecodeError::TooLarge { limit: LARGEST_UNPACKED });
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
            "name": record_name(&release.name, release.version),
            "namespace": storage_namespace,
            "labels": labels(release, stamp),
        },
        "type": RECORD_TYPE,
        "data": {"release": STANDARD.encode(text)},
    }))
}

/// The ConfigMap of a revision, as Helm's other driver keeps it.
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
            "name": record_name(&release.name, release.version),
            "namespace": storage_namespace,
            "labels": labels(release, stamp),
        },
        "data": {"release": text},
    }))
}

/// The record of a Secret or ConfigMap, with the labels that people added.
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
