//! Small texts: short revisions, times, YAML and JSON views.

use std::sync::LazyLock;

use anyhow::Context;
use fl_yaml::{Dialect, Options};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use regex::Regex;
use serde_json::Value;

static HEX: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b[a-f0-9]{40,128}\b").expect("a fixed expression"));

/// Cuts digests and commit hashes to eight characters.
pub(crate) fn truncate_hex(text: &str) -> String {
    HEX.replace_all(text, |found: &regex::Captures<'_>| found[0][..8].to_owned()).into_owned()
}

fn local(time: Timestamp) -> jiff::Zoned {
    time.to_zoned(TimeZone::system())
}

/// RFC 3339 to seconds in the local time zone; anything else as it is.
pub(crate) fn local_time(text: &str) -> String {
    match text.parse::<Timestamp>() {
        Ok(time) => rfc3339(&local(time)),
        Err(_) => text.to_owned(),
    }
}

fn rfc3339(time: &jiff::Zoned) -> String {
    let base = time.strftime("%Y-%m-%dT%H:%M:%S");
    match time.offset().seconds() {
        0 => format!("{base}Z"),
        _ => format!("{base}{}", time.strftime("%:z")),
    }
}

/// Go's default form of a time: `2026-03-01 10:23:00 +0000 UTC`.
pub(crate) fn go_time(text: &str) -> String {
    match text.parse::<Timestamp>() {
        Ok(time) => {
            let time = local(time);
            let zone =
                if time.offset().seconds() == 0 { "UTC".to_owned() } else { time.strftime("%Z").to_string() };
            format!("{} {} {zone}", time.strftime("%Y-%m-%d %H:%M:%S"), time.strftime("%z"))
        }
        Err(_) => text.to_owned(),
    }
}

/// Now, to the nanosecond: the token that asks for a reconciliation.
pub(crate) fn now_token() -> String {
    Timestamp::now().to_string()
}

/// A value as sigs.k8s.io/yaml prints it: sorted keys, no document mark.
pub(crate) fn yaml(value: &Value) -> String {
    fl_yaml::from_json(&value.to_string())
        .and_then(|node| fl_yaml::to_sigs_yaml(&node, Dialect::Sigs))
        .expect("JSON is YAML")
}

/// A value as indented JSON, as Go's `MarshalIndent` with two blanks.
pub(crate) fn pretty_json(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("a value is JSON").replace("\\u007f", "\u{7f}")
}

/// Every document of a YAML text as JSON values; empty documents are left out.
///
/// # Errors
/// The text is no YAML.
pub(crate) fn documents(text: &[u8]) -> anyhow::Result<Vec<Value>> {
    let mut out = Vec::new();
    let go = |error: fl_yaml::Error| anyhow::anyhow!(error.go_text(Dialect::Sigs));
    for node in fl_yaml::parse_all(text, &Options::sigs()).map_err(go)? {
        let json = fl_yaml::to_json(&node, Dialect::Sigs, fl_yaml::JsonStyle::default()).map_err(go)?;
        let value: Value = serde_json::from_str(&json).context("YAML does not fit JSON")?;
        if !value.is_null() {
            out.push(value);
        }
    }
    Ok(out)
}

/// Numbers as Go's JSON decoder holds them: all are floats, whole ones print without a point.
pub(crate) fn go_numbers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().unwrap_or_default();
            if float.fract() == 0.0 && float.abs() < 9e15 {
                *value = Value::from(float as i64);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(go_numbers),
        Value::Object(map) => map.values_mut().for_each(go_numbers),
        _ => {}
    }
}

/// An error of the file system in Go's words.
pub(crate) fn go_io_error(operation: &str, path: &str, error: &std::io::Error) -> String {
    use std::io::ErrorKind;
    let why = match error.kind() {
        ErrorKind::NotFound => "no such file or directory".to_owned(),
        ErrorKind::PermissionDenied => "permission denied".to_owned(),
        ErrorKind::IsADirectory => "is a directory".to_owned(),
        ErrorKind::NotADirectory => "not a directory".to_owned(),
        ErrorKind::AlreadyExists => "file exists".to_owned(),
        _ => error.to_string(),
    };
    format!("{operation} {path}: {why}")
}

/// What Go's JSON library calls a kind of value.
pub(crate) fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Bytes in lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// `---` and the object as flux exports it.
pub(crate) fn exported(object: &Value) -> String {
    format!("---\n{}\n", yaml(object).trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hashes_are_shortened() {
        let sha = "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567";
        assert_eq!(truncate_hex(&format!("main@sha1:{sha} of {sha}")), "main@sha1:0a1b2c3d of 0a1b2c3d");
        assert_eq!(truncate_hex(&format!("x{sha}")), format!("x{sha}"));
        assert_eq!(truncate_hex(&sha[..39]), &sha[..39]);
    }

    #[test]
    fn yaml_documents_round_trip() {
        let docs = documents(b"a: 1\n---\n---\nb: [x]\n").unwrap();
        assert_eq!(docs.len(), 2);
        assert_eq!(exported(&docs[1]), "---\nb:\n- x\n");
    }
}
