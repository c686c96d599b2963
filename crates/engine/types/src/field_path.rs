//! Deserialization with the path of the invalid field in the error.

use serde::de::DeserializeOwned;

/// A deserialization error with the path of the field as `kubectl` writes it (`spec.interval`).
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{path}: {message}")]
pub struct FieldError {
    /// Path in the object: `spec.sources[2].kind`; `.` for the object itself.
    pub path: String,
    /// The error of the deserializer.
    pub message: String,
}

impl FieldError {
    fn new<E: std::fmt::Display>(error: &serde_path_to_error::Error<E>) -> Self {
        FieldError { path: error.path().to_string(), message: error.inner().to_string() }
    }
}

/// Deserializes a typed object from JSON text.
///
/// # Errors
/// The first field that does not match its type, with its path.
pub fn from_json<T: DeserializeOwned>(text: &[u8]) -> Result<T, FieldError> {
    // Fast path: tracking the path takes as long as parsing, and only errors need it.
    if let Ok(value) = serde_json::from_slice(text) {
        return Ok(value);
    }
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|e| FieldError::new(&e))?;
    reader.end().map_err(|e| FieldError { path: ".".to_owned(), message: e.to_string() })?;
    Ok(value)
}

/// Deserializes a typed object from a JSON value.
///
/// # Errors
/// The first field that does not match its type, with its path.
pub fn from_value<T: DeserializeOwned>(value: serde_json::Value) -> Result<T, FieldError> {
    serde_path_to_error::deserialize(value).map_err(|e| FieldError::new(&e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::*;
    use serde::Deserialize;
    use serde_json::json;

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "camelCase")]
    #[expect(dead_code, reason = "only reading is under test")]
    struct AllTypes {
        #[serde(default)]
        interval: Option<Duration>,
        #[serde(default)]
        sizes: Vec<Quantity>,
        #[serde(default)]
        digest: Option<Digest>,
        #[serde(default)]
        revision: Option<Revision>,
        #[serde(default)]
        selector: Option<Selector>,
        #[serde(default)]
        match_on: Option<LabelSelector>,
        #[serde(default)]
        fields: Option<FieldSelector>,
        #[serde(default)]
        port: Option<IntOrString>,
        #[serde(default)]
        source_ref: Option<ObjectReference>,
        #[serde(default)]
        token: Option<Secret<String>>,
    }

    #[test]
    fn invalid_value_of_any_type_is_rejected_with_its_path() {
        let table = [
            (json!({"interval": "5"}), "interval", "time: missing unit in duration \"5\""),
            (
                json!({"interval": 5}),
                "interval",
                "invalid type: integer `5`, expected a Go duration such as \"1h30m\"",
            ),
            (
                json!({"interval": "5 parsecs"}),
                "interval",
                "time: unknown unit \" parsecs\" in duration \"5 parsecs\"",
            ),
            (
                json!({"sizes": ["1Gi", "1Qi"]}),
                "sizes[1]",
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            ),
            (
                json!({"digest": "sha256:xyz"}),
                "digest",
                "digest \"sha256:xyz\": a sha256 digest has 64 hex digits",
            ),
            (json!({"digest": "abc"}), "digest", "digest \"abc\": expected <algorithm>:<hex>"),
            (
                json!({"revision": "main@sha1:12"}),
                "revision",
                "digest \"sha1:12\": a sha1 digest has 40 hex digits",
            ),
            (
                json!({"selector": "a in b"}),
                "selector",
                "unable to parse requirement: found 'b' expected: '('",
            ),
            (
                json!({"matchOn": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}),
                "matchOn.matchExpressions[0].operator",
                "unknown variant `Near`, expected one of `In`, `NotIn`, `Exists`, `DoesNotExist`",
            ),
            (json!({"fields": "name"}), "fields", "invalid selector: 'name'; can't understand 'name'"),
            (json!({"port": true}), "port", "invalid type: boolean `true`, expected an integer or a string"),
            (json!({"sourceRef": {"kind": "Bucket"}}), "sourceRef", "missing field `name`"),
            (json!({"token": 7}), "token", "invalid type: integer `7`, expected a string"),
        ];
        for (input, path, message) in table {
            let error = from_value::<AllTypes>(input.clone()).expect_err(&input.to_string());
            assert_eq!((error.path.as_str(), error.message.as_str()), (path, message), "{input}");
            let text = from_json::<AllTypes>(input.to_string().as_bytes()).expect_err("the same from text");
            assert_eq!(text.path, path);
        }
    }
}
