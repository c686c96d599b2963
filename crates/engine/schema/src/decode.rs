//! Decodes JSON like Go's typed decoder: collects unknown and duplicate fields in document order, and reports
//! type errors with Go's messages. One pass over the text, guided by the schema.

mod errors;
mod fast_path;
mod visit;

use serde::de::DeserializeSeed;
use serde_json::Value;

pub use errors::{DecodeError, StrictError, TypeMismatch};
use visit::{At, Seed, State};

use crate::structural::Schema;

/// Maximum number of strict errors, as upstream.
const MAX_STRICT: usize = 100;

/// A decoded document with its strict errors.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    pub value: Value,
    pub strict: Vec<StrictError>,
}

/// Whether a document has a Go type.
#[derive(Debug, Clone, Copy)]
pub enum Shape<'s> {
    /// Custom resources and patches: keep everything, report duplicates only.
    Free,
    /// A built-in type: drop unknown fields and nulls, check types.
    Typed(&'s Schema),
}

/// Decodes JSON text.
pub fn decode(text: &[u8], shape: Shape<'_>) -> Result<Decoded, DecodeError> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    // The visitor bounds the depth with `MAX_DEPTH`, so the reader need not.
    let state = State::default();
    let value = Seed { schema: shape.schema(), state: &state, at: At::Root }
        .deserialize(&mut reader)
        .map_err(|e| DecodeError::syntax(&e))?;
    reader.end().map_err(|e| DecodeError::syntax(&e))?;
    state.finish(value)
}

/// Decodes a value that is already in memory, such as the result of a patch.
pub fn decode_value(value: Value, shape: Shape<'_>) -> Result<Decoded, DecodeError> {
    let state = State::default();
    let value = Seed { schema: shape.schema(), state: &state, at: At::Root }
        .deserialize(value)
        .map_err(|e| DecodeError::syntax(&e))?;
    state.finish(value)
}

/// Checks whether a value can be decoded.
pub fn check_value(value: &Value, shape: Shape<'_>) -> Result<(), DecodeError> {
    if shape.schema().is_some_and(|schema| fast_path::matches_type(value, schema)) {
        return Ok(());
    }
    let state = State::default();
    let decoded = Seed { schema: shape.schema(), state: &state, at: At::Root }
        .deserialize(value)
        .map_err(|e| DecodeError::syntax(&e))?;
    state.finish(decoded).map(drop)
}

impl<'s> Shape<'s> {
    fn schema(self) -> Option<&'s Schema> {
        match self {
            Shape::Free => None,
            Shape::Typed(schema) => Some(schema),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn typed() -> Schema {
        let mut spec = Schema::from_json(&json!({"type": "object", "properties": {
            "replicas": {"type": "integer", "format": "int32"},
            "paused": {"type": "boolean"},
            "data": {"type": "string", "format": "byte"},
            "when": {"type": "string", "format": "date-time"},
            "port": {"x-kubernetes-int-or-string": true},
            "containers": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}}}})).expect("schema");
        spec.name = Some("io.k8s.api.apps.v1.DeploymentSpec".into());
        Schema {
            name: Some("io.k8s.api.apps.v1.Deployment".into()),
            ty: crate::Type::Object,
            properties: std::sync::Arc::new([("spec".into(), spec.into())].into_iter().collect()),
            ..Schema::default()
        }
    }

    fn failure(text: &str) -> String {
        decode(text.as_bytes(), Shape::Typed(&typed())).expect_err("refused").to_string()
    }

    #[test]
    fn strict_errors_are_in_document_order() {
        let text = r#"{"spec":{"containers":[{"name":"a","pulPolicy":1}],"bogus":1,"labels":{"a":"1","a":"2"},"replicas":null}}"#;
        let got = decode(text.as_bytes(), Shape::Typed(&typed())).expect("decodes");
        let texts: Vec<String> = got.strict.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                r#"unknown field "spec.containers[0].pulPolicy""#,
                r#"unknown field "spec.bogus""#,
                r#"duplicate field "spec.labels.a""#
            ]
        );
        assert_eq!(got.value, json!({"spec": {"containers": [{"name": "a"}], "labels": {"a": "2"}}}));
    }

    #[test]
    fn type_errors_match_go() {
        assert_eq!(
            failure(r#"{"spec":{"replicas":"3"}}"#),
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32"
        );
        assert_eq!(
            failure(r#"{"spec":{"replicas":3.5}}"#),
            "json: cannot unmarshal number 3.5 into Go struct field DeploymentSpec.spec.replicas of type int32"
        );
        assert_eq!(
            failure(r#"{"spec":{"labels":{"a":1}}}"#),
            "json: cannot unmarshal number into Go struct field DeploymentSpec.spec.labels of type string"
        );
        assert_eq!(
            failure(r#"{"spec":[]}"#),
            "json: cannot unmarshal array into Go struct field Deployment.spec of type v1.DeploymentSpec"
        );
        assert_eq!(failure(r#"{"spec":{"data":"%"}}"#), "illegal base64 data at input byte 0");
    }

    #[test]
    fn fast_path_agrees_with_the_decoder() {
        let schema = typed();
        let fits = |spec: Value| {
            let value = json!({"spec": spec});
            let plain = fast_path::matches_type(&value, &schema);
            let decoded = decode_value(value.clone(), Shape::Typed(&schema));
            let taken = decoded.is_ok_and(|d| d.value == value && d.strict.is_empty());
            assert!(taken || !plain, "{value}");
            plain
        };
        assert!(fits(
            json!({"replicas": 3, "paused": true, "labels": {"a": "b"}, "containers": [{"name": "c"}]})
        ));
        for spec in [
            json!({"replicas": 3_000_000_000_u64}),
            json!({"replicas": 1.5}),
            json!({"replicas": "3"}),
            json!({"paused": null}),
            json!({"bogus": 1}),
            json!({"data": "%"}),
            json!({"when": "yesterday"}),
            json!({"port": true}),
            json!({"labels": {"a": 1}}),
            json!({"containers": {}}),
        ] {
            assert!(!fits(spec.clone()), "{spec}");
        }
    }

    #[test]
    fn free_form_documents_report_only_duplicates() {
        let got = decode(br#"{"a":{"b":1,"b":2},"c":1.0,"d":null}"#, Shape::Free).expect("decodes");
        assert_eq!(got.value, json!({"a": {"b": 2}, "c": 1, "d": null}));
        assert_eq!(got.strict, [StrictError::Duplicate("a.b".into())]);
    }
}
