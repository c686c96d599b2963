//! JSON patch (RFC 6902), with upstream's limits and error messages.

use serde_json::Value;
use thiserror::Error;

use super::PatchError;

/// Maximum number of operations in a patch.
pub const MAX_OPERATIONS: usize = 10_000;

/// Limit on the bytes that the copy operations of a patch add; upstream is limited only by the size of the
/// object.
const MAX_COPIED: usize = 16 * 1024 * 1024;

/// Applies the operations in order. On error the document is partly patched, so pass a copy.
pub fn json_patch(document: &mut Value, patch: &Value) -> Result<(), PatchError> {
    let operations = match patch {
        Value::Array(list) => list,
        Value::Null => return Ok(()),
        other => {
            return Err(PatchError::BadRequest(format!(
                "json: cannot unmarshal {} into Go value of type jsonpatch.Patch",
                fl_go::json_kind(other)
            )));
        }
    };
    if let Some(other) = operations.iter().find(|o| !o.is_object()) {
        return Err(PatchError::BadRequest(format!(
            "json: cannot unmarshal {} into Go value of type jsonpatch.Operation",
            fl_go::json_kind(other)
        )));
    }
    if operations.len() > MAX_OPERATIONS {
        return Err(PatchError::TooLarge(format!(
            "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
            operations.len()
        )));
    }
    let mut copied = 0;
    for operation in operations {
        run(document, operation, &mut copied)?;
    }
    Ok(())
}

/// Why an operation does not apply, with the messages of upstream's JSON patch library.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum JsonPatchError {
    #[error("Unexpected kind: {0}")]
    Kind(String),
    /// The operation lacks a member.
    #[error("{operation} operation failed to decode {member}: missing value")]
    Member { operation: &'static str, member: &'static str },
    /// A path of the operation does not exist in the document.
    #[error("{operation} operation does not apply: {missing}: {path}: missing value")]
    NotFound { operation: &'static str, missing: &'static str, path: String },
    #[error("error in {operation} for {member}: '{path}': {source}")]
    Access { operation: &'static str, member: &'static str, path: String, source: AccessError },
    #[error("error while adding value during copy: {0}")]
    CopyTarget(#[source] AccessError),
    #[error(
        "unable to complete the copy, the accumulated size increase of copy is {0}, exceeding the limit {MAX_COPIED}"
    )]
    CopyLimit(usize),
    #[error("replace operation value must be object or array")]
    ReplaceRoot,
    #[error("testing value {0} failed: test failed")]
    TestFailed(String),
}

/// Why a key or index of a container cannot be read or written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AccessError {
    #[error("missing value")]
    Missing,
    #[error("Unable to remove nonexistent key: {0}: missing value")]
    NoSuchKey(String),
    #[error("Unable to access invalid index: {0}: invalid index referenced")]
    Index(i64),
    #[error("strconv.Atoi: parsing {}: {reason}", fl_go::quote(.text))]
    Atoi { text: String, reason: &'static str },
    #[error("value was not a proper array index: '{key}': {source}")]
    ArrayIndex { key: String, source: Box<AccessError> },
}

fn run(document: &mut Value, operation: &Value, copied: &mut usize) -> Result<(), JsonPatchError> {
    let kind = operation.get("op").and_then(Value::as_str).unwrap_or("unknown");
    let path = operation.get("path").and_then(Value::as_str);
    let from = operation.get("from").and_then(Value::as_str);
    let value = || operation.get("value").cloned().unwrap_or(Value::Null);
    match kind {
        "add" => {
            let path = path.ok_or(JsonPatchError::Member { operation: "add", member: "path" })?;
            let (parent, key) = locate(document, path).ok_or_else(|| JsonPatchError::NotFound {
                operation: "add",
                missing: "doc is missing path",
                path: format!("\"{path}\""),
            })?;
            add(parent, key, value()).map_err(|source| access("add", "path", path, source))
        }
        "remove" => {
            let path = path.ok_or(JsonPatchError::Member { operation: "remove", member: "path" })?;
            let (parent, key) = locate(document, path).ok_or_else(|| JsonPatchError::NotFound {
                operation: "remove",
                missing: "doc is missing path",
                path: format!("\"{path}\""),
            })?;
            take(parent, &key).map(drop).map_err(|source| access("remove", "path", path, source))
        }
        "replace" => {
            let member = "path: operation missing path field";
            let path = path.ok_or(JsonPatchError::Member { operation: "replace", member })?;
            replace(document, path, value())
        }
        "move" => {
            let member = "from: operation, missing from field";
            let from = from.ok_or(JsonPatchError::Member { operation: "move", member })?;
            let (parent, key) =
                locate(document, from).ok_or_else(|| not_found("move", "doc is missing from path", from))?;
            let moved = take(parent, &key).map_err(|source| access("move", "path", &key, source))?;
            let member = "path: operation missing path field";
            let path = path.ok_or(JsonPatchError::Member { operation: "move", member })?;
            let (parent, key) = locate(document, path)
                .ok_or_else(|| not_found("move", "doc is missing destination path", path))?;
            add(parent, key, moved).map_err(|source| access("move", "path", path, source))
        }
        "copy" => {
            let member = "from: operation, missing from field";
            let from = from.ok_or(JsonPatchError::Member { operation: "copy", member })?;
            let (parent, key) =
                locate(document, from).ok_or_else(|| not_found("copy", "doc is missing from path", from))?;
            let found = get(parent, &key)
                .map_err(|source| access("copy", "from", from, source))?
                .cloned()
                .unwrap_or(Value::Null);
            *copied += size(&found);
            if *copied > MAX_COPIED {
                return Err(JsonPatchError::CopyLimit(*copied));
            }
            let path = path.ok_or(JsonPatchError::Member { operation: "copy", member: "path" })?;
            let (parent, key) = locate(document, path)
                .ok_or_else(|| not_found("copy", "doc is missing destination path", path))?;
            add(parent, key, found).map_err(JsonPatchError::CopyTarget)
        }
        "test" => {
            let member = "path: operation missing path field";
            let path = path.ok_or(JsonPatchError::Member { operation: "test", member })?;
            test(document, path, operation.get("value"))
        }
        other => Err(JsonPatchError::Kind(other.to_owned())),
    }
}

fn not_found(operation: &'static str, missing: &'static str, path: &str) -> JsonPatchError {
    JsonPatchError::NotFound { operation, missing, path: path.to_owned() }
}

fn access(operation: &'static str, member: &'static str, path: &str, source: AccessError) -> JsonPatchError {
    JsonPatchError::Access { operation, member, path: path.to_owned(), source }
}

fn size(value: &Value) -> usize {
    match value {
        Value::String(s) => s.len() + 2,
        Value::Array(list) => list.iter().map(|v| size(v) + 1).sum::<usize>() + 2,
        Value::Object(map) => map.iter().map(|(k, v)| k.len() + size(v) + 4).sum::<usize>() + 2,
        _ => 8,
    }
}

fn replace(document: &mut Value, path: &str, value: Value) -> Result<(), JsonPatchError> {
    if path.is_empty() {
        if !value.is_object() && !value.is_array() {
            return Err(JsonPatchError::ReplaceRoot);
        }
        *document = value;
        return Ok(());
    }
    match locate(document, path) {
        // Like upstream, an absent key is set.
        Some((Value::Object(map), key)) => {
            map.insert(key, value);
            Ok(())
        }
        Some((Value::Array(list), key)) => {
            let at = index(&key, list.len()).map_err(|_| not_found("replace", "doc is missing key", path))?;
            list[at] = value;
            Ok(())
        }
        _ => Err(not_found("replace", "doc is missing path", path)),
    }
}

fn test(document: &mut Value, path: &str, expected: Option<&Value>) -> Result<(), JsonPatchError> {
    let failed = || JsonPatchError::TestFailed(path.to_owned());
    if path.is_empty() {
        return if expected == Some(&*document) { Ok(()) } else { Err(failed()) };
    }
    let (parent, key) = locate(document, path).ok_or_else(|| not_found("test", "is missing path", path))?;
    let found = get(parent, &key).map_err(|source| access("test", "path", path, source))?;
    match (found.filter(|v| !v.is_null()), expected.filter(|v| !v.is_null())) {
        (None, None) => Ok(()),
        (Some(a), Some(b)) if a == b => Ok(()),
        _ => Err(failed()),
    }
}

/// The container of the value that a JSON pointer refers to, and its key there.
fn locate<'d>(document: &'d mut Value, path: &str) -> Option<(&'d mut Value, String)> {
    let mut steps = path.split('/');
    steps.next()?;
    let mut steps: Vec<String> = steps.map(|s| s.replace("~1", "/").replace("~0", "~")).collect();
    let last = steps.pop()?;
    let mut here = document;
    for step in steps {
        here = match here {
            Value::Object(map) => map.get_mut(&step)?,
            Value::Array(list) => {
                let at = index(&step, list.len()).ok()?;
                list.get_mut(at)?
            }
            _ => return None,
        };
    }
    matches!(here, Value::Object(_) | Value::Array(_)).then_some((here, last))
}

/// Parses an index into a list of `len`; a negative one counts from the end.
fn index(key: &str, len: usize) -> Result<usize, AccessError> {
    let number = atoi(key)?;
    let size = i64::try_from(len).unwrap_or(i64::MAX);
    let at = if number < 0 { number + size } else { number };
    usize::try_from(at).ok().filter(|at| *at < len).ok_or(AccessError::Index(number))
}

fn atoi(key: &str) -> Result<i64, AccessError> {
    let error = |reason| AccessError::Atoi { text: key.to_owned(), reason };
    let digits = key.strip_prefix(['+', '-']).unwrap_or(key);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(error("invalid syntax"));
    }
    key.parse().map_err(|_| error("value out of range"))
}

fn get<'v>(parent: &'v Value, key: &str) -> Result<Option<&'v Value>, AccessError> {
    match parent {
        Value::Object(map) => Ok(map.get(key)),
        Value::Array(list) => Ok(list.get(index(key, list.len())?)),
        _ => Ok(None),
    }
}

fn take(parent: &mut Value, key: &str) -> Result<Value, AccessError> {
    match parent {
        Value::Object(map) => map.remove(key).ok_or_else(|| AccessError::NoSuchKey(key.to_owned())),
        Value::Array(list) => {
            let at = index(key, list.len())?;
            Ok(list.remove(at))
        }
        _ => Err(AccessError::Missing),
    }
}

fn add(parent: &mut Value, key: String, value: Value) -> Result<(), AccessError> {
    match parent {
        Value::Object(map) => {
            map.insert(key, value);
            Ok(())
        }
        Value::Array(list) => {
            if key == "-" {
                list.push(value);
                return Ok(());
            }
            if let Err(error) = atoi(&key) {
                return Err(AccessError::ArrayIndex { key, source: Box::new(error) });
            }
            let at = index(&key, list.len() + 1)?;
            list.insert(at, value);
            Ok(())
        }
        _ => Err(AccessError::Missing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn patched(document: &Value, patch: &Value) -> Result<Value, String> {
        let mut document = document.clone();
        json_patch(&mut document, patch).map_err(|e| e.to_string())?;
        Ok(document)
    }

    #[test]
    fn operations_follow_the_rfc() {
        let base = json!({"a": {"b": [1, 2, 3]}, "x~y/z": 1});
        let ok = |patch: Value| patched(&base, &patch).expect("applies");
        assert_eq!(ok(json!([{"op": "add", "path": "/a/b/1", "value": 9}]))["a"]["b"], json!([1, 9, 2, 3]));
        assert_eq!(ok(json!([{"op": "add", "path": "/a/b/-", "value": 9}]))["a"]["b"], json!([1, 2, 3, 9]));
        assert_eq!(ok(json!([{"op": "remove", "path": "/a/b/-1"}]))["a"]["b"], json!([1, 2]));
        assert_eq!(ok(json!([{"op": "replace", "path": "/x~0y~1z", "value": 2}]))["x~y/z"], json!(2));
        assert_eq!(
            ok(json!([{"op": "move", "from": "/a/b", "path": "/c"}])),
            json!({"a": {}, "c": [1, 2, 3], "x~y/z": 1})
        );
        assert_eq!(ok(json!([{"op": "copy", "from": "/a/b/0", "path": "/c"}]))["c"], json!(1));
        assert_eq!(ok(json!([{"op": "test", "path": "/a/b", "value": [1, 2, 3]}])), base);
    }

    #[test]
    fn b05_errors_name_operation_and_path() {
        let base = json!({"a": {"b": [1]}, "s": "x"});
        let bad = |patch: Value| patched(&base, &patch).expect_err("refused");
        assert_eq!(
            bad(json!([{"op": "add", "path": "/no/x", "value": 1}])),
            "add operation does not apply: doc is missing path: \"/no/x\": missing value"
        );
        assert_eq!(
            bad(json!([{"op": "remove", "path": "/no"}])),
            "error in remove for path: '/no': Unable to remove nonexistent key: no: missing value"
        );
        assert_eq!(
            bad(json!([{"op": "test", "path": "/s", "value": "y"}])),
            "testing value /s failed: test failed"
        );
        assert_eq!(
            bad(json!([{"op": "replace", "path": "/no/x", "value": 1}])),
            "replace operation does not apply: doc is missing path: /no/x: missing value"
        );
        assert_eq!(
            bad(json!([{"op": "add", "path": "/a/b/99999999999999999999", "value": 1}])),
            "error in add for path: '/a/b/99999999999999999999': value was not a proper array index: '99999999999999999999': strconv.Atoi: parsing \"99999999999999999999\": value out of range"
        );
        assert_eq!(
            bad(json!([{"op": "add", "path": "/a/b/2", "value": 1}])),
            "error in add for path: '/a/b/2': Unable to access invalid index: 2: invalid index referenced"
        );
        assert_eq!(bad(json!([{"op": "jump", "path": "/a"}])), "Unexpected kind: jump");
        assert_eq!(bad(json!([{"op": "add"}])), "add operation failed to decode path: missing value");
        assert_eq!(
            bad(json!({"op": "add"})),
            "json: cannot unmarshal object into Go value of type jsonpatch.Patch"
        );
    }

    #[test]
    fn i02_too_many_operations_are_rejected() {
        let operations: Vec<Value> =
            (0..=MAX_OPERATIONS).map(|_| json!({"op": "test", "path": "/a", "value": 1})).collect();
        let error = json_patch(&mut json!({"a": 1}), &Value::Array(operations)).expect_err("refused");
        assert_eq!(
            error,
            PatchError::TooLarge(
                "The allowed maximum operations in a JSON patch is 10000, got 10001".to_owned()
            )
        );
    }
}
