//! JSON patch, RFC 6902, with the limits and the wording of the reference.

use serde_json::{Map, Value};

use super::PatchError;

/// Operations allowed in one patch.
pub const MAX_OPERATIONS: usize = 10_000;

/// Copies in one patch may not add more than this; the reference bounds it only by the object's size.
const MAX_COPIED: usize = 16 * 1024 * 1024;

/// Applies a list of operations in order; the document is left half-patched on error, so work on a copy.
pub fn json_patch(document: &mut Value, patch: &Value) -> Result<(), PatchError> {
    let operations = match patch {
        Value::Array(list) => list,
        Value::Null => return Ok(()),
        other => {
            return Err(PatchError::BadRequest(format!(
                "json: cannot unmarshal {} into Go value of type jsonpatch.Patch",
                go_kind(other)
            )));
        }
    };
    if let Some(other) = operations.iter().find(|o| !o.is_object()) {
        return Err(PatchError::BadRequest(format!(
            "json: cannot unmarshal {} into Go value of type jsonpatch.Operation",
            go_kind(other)
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
        run(document, operation, &mut copied).map_err(PatchError::Unprocessable)?;
    }
    Ok(())
}

fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn run(document: &mut Value, operation: &Value, copied: &mut usize) -> Result<(), String> {
    let kind = operation.get("op").and_then(Value::as_str).unwrap_or("unknown");
    let path = operation.get("path").and_then(Value::as_str);
    let from = operation.get("from").and_then(Value::as_str);
    let value = || operation.get("value").cloned().unwrap_or(Value::Null);
    match kind {
        "add" => {
            let path = path.ok_or("add operation failed to decode path: missing value")?;
            add_at(document, path, value(), || {
                format!("add operation does not apply: doc is missing path: \"{path}\": missing value")
            })
            .map_err(|e| e.wrap(|| format!("error in add for path: '{path}'")))
        }
        "remove" => {
            let path = path.ok_or("remove operation failed to decode path: missing value")?;
            let Some((parent, key)) = locate(document, path) else {
                return Err(format!(
                    "remove operation does not apply: doc is missing path: \"{path}\": missing value"
                ));
            };
            take(parent, &key).map(drop).map_err(|e| format!("error in remove for path: '{path}': {e}"))
        }
        "replace" => {
            let path = path.ok_or(
                "replace operation failed to decode path: operation missing path field: missing value",
            )?;
            replace(document, path, value())
        }
        "move" => {
            let from = from.ok_or(
                "move operation failed to decode from: operation, missing from field: missing value",
            )?;
            let Some((parent, key)) = locate(document, from) else {
                return Err(format!(
                    "move operation does not apply: doc is missing from path: {from}: missing value"
                ));
            };
            let moved = take(parent, &key).map_err(|e| format!("error in move for path: '{key}': {e}"))?;
            let path = path
                .ok_or("move operation failed to decode path: operation missing path field: missing value")?;
            add_at(document, path, moved, || {
                format!(
                    "move operation does not apply: doc is missing destination path: {path}: missing value"
                )
            })
            .map_err(|e| e.wrap(|| format!("error in move for path: '{path}'")))
        }
        "copy" => {
            let from = from.ok_or(
                "copy operation failed to decode from: operation, missing from field: missing value",
            )?;
            let Some((parent, key)) = locate(document, from) else {
                return Err(format!(
                    "copy operation does not apply: doc is missing from path: {from}: missing value"
                ));
            };
            let found = get(parent, &key)
                .map_err(|e| format!("error in copy for from: '{from}': {e}"))?
                .cloned()
                .unwrap_or(Value::Null);
            *copied += size(&found);
            if *copied > MAX_COPIED {
                return Err(format!(
                    "unable to complete the copy, the accumulated size increase of copy is {copied}, exceeding the limit {MAX_COPIED}"
                ));
            }
            let path = path.ok_or("copy operation failed to decode path: missing value")?;
            add_at(document, path, found, || {
                format!(
                    "copy operation does not apply: doc is missing destination path: {path}: missing value"
                )
            })
            .map_err(|e| e.wrap(|| "error while adding value during copy".to_owned()))
        }
        "test" => test(
            document,
            path.ok_or("test operation failed to decode path: operation missing path field: missing value")?,
            operation.get("value"),
        ),
        other => Err(format!("Unexpected kind: {other}")),
    }
}

fn size(value: &Value) -> usize {
    match value {
        Value::String(s) => s.len() + 2,
        Value::Array(list) => list.iter().map(|v| size(v) + 1).sum::<usize>() + 2,
        Value::Object(map) => map.iter().map(|(k, v)| k.len() + size(v) + 4).sum::<usize>() + 2,
        _ => 8,
    }
}

fn replace(document: &mut Value, path: &str, value: Value) -> Result<(), String> {
    if path.is_empty() {
        if !value.is_object() && !value.is_array() {
            return Err("replace operation value must be object or array".to_owned());
        }
        *document = value;
        return Ok(());
    }
    let Some((parent, key)) = locate(document, path) else {
        return Err(format!("replace operation does not apply: doc is missing path: {path}: missing value"));
    };
    match parent {
        // An absent key is set all the same: so does the reference.
        Value::Object(map) => {
            map.insert(key, value);
            Ok(())
        }
        Value::Array(list) => {
            let at = index(&key, list.len()).map_err(|_| {
                format!("replace operation does not apply: doc is missing key: {path}: missing value")
            })?;
            list[at] = value;
            Ok(())
        }
        _ => Err(format!("replace operation does not apply: doc is missing path: {path}: missing value")),
    }
}

fn test(document: &mut Value, path: &str, wanted: Option<&Value>) -> Result<(), String> {
    let failed = || format!("testing value {path} failed: test failed");
    if path.is_empty() {
        return if wanted == Some(&*document) { Ok(()) } else { Err(failed()) };
    }
    let Some((parent, key)) = locate(document, path) else {
        return Err(format!("test operation does not apply: is missing path: {path}: missing value"));
    };
    let found = get(parent, &key).map_err(|e| format!("error in test for path: '{path}': {e}"))?;
    match (found.filter(|v| !v.is_null()), wanted.filter(|v| !v.is_null())) {
        (None, None) => Ok(()),
        (Some(a), Some(b)) if a == b => Ok(()),
        _ => Err(failed()),
    }
}

/// The container a pointer's last step is in, and that step.
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

/// An index into a list of `len`; negative ones count from the end.
fn index(key: &str, len: usize) -> Result<usize, String> {
    let number = atoi(key)?;
    let size = i64::try_from(len).unwrap_or(i64::MAX);
    let place = if number < 0 { number + size } else { number };
    if place < 0 || place >= size {
        return Err(format!("Unable to access invalid index: {number}: invalid index referenced"));
    }
    usize::try_from(place).map_err(|e| e.to_string())
}

fn atoi(key: &str) -> Result<i64, String> {
    let digits = key.strip_prefix(['+', '-']).unwrap_or(key);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!("strconv.Atoi: parsing {}: invalid syntax", fl_golang::quote(key)));
    }
    key.parse().map_err(|_| format!("strconv.Atoi: parsing {}: value out of range", fl_golang::quote(key)))
}

fn get<'v>(parent: &'v Value, key: &str) -> Result<Option<&'v Value>, String> {
    match parent {
        Value::Object(map) => Ok(map.get(key)),
        Value::Array(list) => Ok(list.get(index(key, list.len())?)),
        _ => Ok(None),
    }
}

fn take(parent: &mut Value, key: &str) -> Result<Value, String> {
    match parent {
        Value::Object(map) => {
            map.remove(key).ok_or_else(|| format!("Unable to remove nonexistent key: {key}: missing value"))
        }
        Value::Array(list) => {
            let at = index(key, list.len())?;
            Ok(list.remove(at))
        }
        _ => Err("missing value".to_owned()),
    }
}

enum AddError {
    /// The container is missing: said as it is.
    NoParent(String),
    /// The container refused: wrapped in the operation's sentence.
    Refused(String),
}

impl AddError {
    fn wrap(self, context: impl FnOnce() -> String) -> String {
        match self {
            AddError::NoParent(text) => text,
            AddError::Refused(text) => format!("{}: {text}", context()),
        }
    }
}

fn add_at(
    document: &mut Value,
    path: &str,
    value: Value,
    missing: impl FnOnce() -> String,
) -> Result<(), AddError> {
    let Some((parent, key)) = locate(document, path) else { return Err(AddError::NoParent(missing())) };
    add(parent, key, value).map_err(AddError::Refused)
}

fn add(parent: &mut Value, key: String, value: Value) -> Result<(), String> {
    match parent {
        Value::Object(map) => {
            insert(map, key, value);
            Ok(())
        }
        Value::Array(list) => {
            if key == "-" {
                list.push(value);
                return Ok(());
            }
            atoi(&key).map_err(|e| format!("value was not a proper array index: '{key}': {e}"))?;
            let at = index(&key, list.len() + 1)?;
            list.insert(at, value);
            Ok(())
        }
        _ => Err("missing value".to_owned()),
    }
}

fn insert(map: &mut Map<String, Value>, key: String, value: Value) {
    map.insert(key, value);
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
    fn operations_do_what_the_rfc_says() {
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
    fn b05_errors_name_the_operation_and_the_path() {
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
    fn i02_too_many_operations_are_refused() {
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
