//! `values.schema.json`: validates the values of a chart and, below their names, of its subcharts.
//!
//! References to other documents are rejected: rendering fetches nothing.

mod documents;
mod format;
mod rules;
mod validation_errors;
mod violation;

use fl_gotemplate::{Map, Value};
use jsonschema::{PatternOptions, Retrieve, Uri};
use serde_json::Value as Json;

use self::documents::{Documents, RefError, SCHEMA_URI, draft_of, metaschema_of};
use self::validation_errors::ErrorCollector;
use super::json::from_value;
use crate::dependencies::{ChartGraph, ChartId};
use crate::error::Error;

/// Validates a chart and its subcharts; all violations are reported together.
pub(crate) fn validate(
    graph: &ChartGraph<'_>,
    id: ChartId,
    values: &Map,
    warnings: &mut Vec<String>,
) -> Result<(), Error> {
    let mut text = String::new();
    collect(graph, id, values, &mut text, warnings);
    if text.is_empty() { Ok(()) } else { Err(Error::Schema(text)) }
}

fn collect(graph: &ChartGraph<'_>, id: ChartId, values: &Map, text: &mut String, warnings: &mut Vec<String>) {
    if let Some(schema) = &graph.chart(id).schema
        && let Err(why) = validate_one(values, schema, warnings)
    {
        text.push_str(graph.name(id));
        text.push_str(":\n");
        text.push_str(&why.to_string());
    }
    for sub in graph.subcharts(id) {
        let name = graph.name(*sub);
        match values.get(name.as_bytes()) {
            None | Some(Value::Nil) => {}
            Some(Value::Map(below)) => collect(graph, *sub, &below, text, warnings),
            Some(other) => {
                let got = other.type_name();
                text.push_str(&format!(
                    "{name}:\ninvalid type for values: expected object (map), got {got}\n"
                ));
            }
        }
    }
}

/// Rejects every reference to another document.
struct NoRetrieval;

impl Retrieve for NoRetrieval {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Json, Box<dyn std::error::Error + Send + Sync>> {
        // Helm accepts URNs that cannot be resolved, so that charts may carry them for other tools.
        if uri.scheme().as_str() == "urn" {
            return Ok(Json::Bool(true));
        }
        Err(format!("remote references are not followed: {uri}").into())
    }
}

/// Error of validating values against one schema.
#[derive(Debug, thiserror::Error)]
enum SchemaError {
    /// The schema is not JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The schema itself is invalid.
    #[error("{0}")]
    Invalid(String),
    /// The values violate the schema; one line per violation.
    #[error("{0}")]
    Violations(String),
}

fn validate_one(values: &Map, schema: &[u8], warnings: &mut Vec<String>) -> Result<(), SchemaError> {
    let schema: Json = serde_json::from_slice(schema)?;
    for urn in unresolved_names(&schema) {
        warnings.push(format!("WARNING: unresolved URN reference ignored; using permissive schema: {urn}"));
    }
    let mut options = jsonschema::options()
        .with_base_uri(SCHEMA_URI)
        .with_retriever(NoRetrieval)
        // Go's regular expressions: linear time, no look-around.
        .with_pattern_options(PatternOptions::regex());
    for name in format::SUPPORTED {
        options = options.with_format(*name, |text: &str| format::check(name, text).is_ok());
    }
    let validator = options
        .build(&schema)
        .map_err(|error| SchemaError::Invalid(invalid_schema_message(&schema, &error.to_string())))?;
    let instance = from_value(&Value::Map(values.clone()));
    if validator.is_valid(&instance) {
        return Ok(());
    }
    let documents = Documents::new(&schema);
    let explained = documents
        .at(SCHEMA_URI)
        .and_then(|place| ErrorCollector::new(&documents).error_lines(place, &instance));
    // The library's message is the fallback if Helm's cannot be reproduced.
    Err(SchemaError::Violations(explained.unwrap_or_else(|| {
        let line = |error: jsonschema::ValidationError<'_>| {
            let at = violation::quoted(&error.instance_path().to_string());
            format!("- at {at}: {error}\n")
        };
        validator.iter_errors(&instance).map(line).collect()
    })))
}

/// Message for an invalid schema.
fn invalid_schema_message(schema: &Json, why: &str) -> String {
    let documents = Documents::new(schema);
    let written_in = schema.get("$schema").and_then(Json::as_str);
    let draft = written_in.map_or(Some(2020), draft_of);
    let metaschema = draft.map(metaschema_of);
    let checked = |address: &str| {
        let lines = ErrorCollector::new(&documents).error_lines(documents.at(address)?, schema)?;
        Some(format!("jsonschema validation failed with '{address}#'\n{lines}"))
    };
    if let Some(why) = metaschema.and_then(checked) {
        return format!("\"{SCHEMA_URI}#\" is not valid against metaschema: {why}");
    }
    match documents.unresolved_reference() {
        Some(RefError::Pointer(address)) => format!("json-pointer in \"{address}\" not found\n"),
        Some(RefError::Anchor(address, document)) => {
            format!("anchor in \"{address}\" not found in schema \"{document}\"\n")
        }
        Some(RefError::Document(address)) => {
            format!("failing loading \"{address}\": references out of the schema are not followed\n")
        }
        None => format!("\"{SCHEMA_URI}#\" is not valid against metaschema: {why}\n"),
    }
}

/// Validates values against one schema, without a chart.
pub fn check_schema(values: &super::JsonValue, schema: &[u8]) -> Result<(), Error> {
    validate_one(&values.to_map(), schema, &mut Vec::new()).map_err(|error| Error::Schema(error.to_string()))
}

fn unresolved_names(schema: &Json) -> Vec<&str> {
    let mut found = Vec::new();
    let mut open = vec![schema];
    while let Some(here) = open.pop() {
        match here {
            Json::Array(items) => open.extend(items),
            Json::Object(entries) => {
                found.extend(entries.get("$ref").and_then(Json::as_str).filter(|r| r.starts_with("urn:")));
                open.extend(entries.values());
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schema: &str, values: Json) -> Result<(), String> {
        let Value::Map(values) = super::super::json::to_value(values) else { panic!("a table") };
        validate_one(&values, schema.as_bytes(), &mut Vec::new()).map_err(|error| error.to_string())
    }

    #[test]
    fn violation_messages_match_helm() {
        let schema = r#"{"$schema":"http://json-schema.org/draft-07/schema#","required":["name"],
            "properties":{"name":{},"port":{"type":"integer","maximum":65535},"mode":{"enum":["a","b"]}},"additionalProperties":false}"#;
        let wrong = |values| check(schema, values).expect_err("a violation");
        assert_eq!(wrong(serde_json::json!({})), "- at '': missing property 'name'\n");
        let other = |schema, values| check(schema, values).expect_err("a violation");
        assert_eq!(
            other(r#"{"properties":{"l":{"uniqueItems":true}}}"#, serde_json::json!({"l": [1, 2, 2]})),
            "- at '/l': items at 1 and 2 are equal\n"
        );
        assert_eq!(
            other(r#"{"anyOf":[{"required":["a"]},{"required":["b"]}]}"#, serde_json::json!({})),
            "- at '': 'anyOf' failed\n  - at '': missing property 'a'\n  - at '': missing property 'b'\n"
        );
        assert_eq!(
            wrong(serde_json::json!({"name": "x", "port": 70000})),
            "- at '/port': maximum: got 70,000, want 65,535\n"
        );
        assert_eq!(
            wrong(serde_json::json!({"name": "x", "mode": "c"})),
            "- at '/mode': value must be one of 'a', 'b'\n"
        );
        assert_eq!(
            wrong(serde_json::json!({"name": "x", "q": 1})),
            "- at '': additional properties 'q' not allowed\n"
        );
        assert!(check(schema, serde_json::json!({"name": "x", "port": 80.0})).is_ok());
    }

    /// Recorded from Helm.
    #[test]
    fn nested_violation_messages_match_helm() {
        let cases = [
            (
                r#"{"allOf":[{"minProperties":2},{"required":["x"]}]}"#,
                "- at '': 'allOf' failed\n  - at '': minProperties: got 1, want 2\n  - at '': missing property 'x'\n",
            ),
            (
                r#"{"oneOf":[{"type":"object"},{"minProperties":1}]}"#,
                "- at '': 'oneOf' failed, subschemas 0, 1 matched\n",
            ),
            (
                r#"{"propertyNames":{"pattern":"^b"}}"#,
                "- at '': invalid propertyName 'a'\n  - at '': 'a' does not match pattern '^b'\n",
            ),
            (
                r#"{"dependentRequired":{"a":["y","z"]}}"#,
                "- at '': properties 'y', 'z' required, if 'a' exists\n",
            ),
            (r#"{"unevaluatedProperties":false}"#, "- at '/a': false schema\n"),
            (
                r#"{"properties":{"a":{"contains":{"type":"string"},"minContains":2}}}"#,
                "- at '/a': min 2 items required to match contains schema, but matched 1 items at 0\n  - at '/a/1': got number, want string\n",
            ),
            (
                r#"{"properties":{"a":{"prefixItems":[{"type":"string"}],"items":false}}}"#,
                "- at '/a/1': false schema\n",
            ),
            (
                r##"{"properties":{"a":{"anyOf":[{"$ref":"#/$defs/q"},{"type":"null"}]}},"$defs":{"q":{"minItems":3,"maxItems":1}}}"##,
                "- at '/a': 'anyOf' failed\n  - at '/a': validation failed\n    - at '/a': minItems: got 2, want 3\n    - at '/a': maxItems: got 2, want 1\n  - at '/a': got array, want null\n",
            ),
            (r#"{"properties":{"a":{"const":{"x":1}}}}"#, "- at '/a': 'const' failed\n"),
            (
                r##"{"properties":{"a":{"$ref":"#/$defs/missing"}}}"##,
                "json-pointer in \"file:///values.schema.json#/$defs/missing\" not found\n",
            ),
            (
                r#"{"properties":{"a":{"type":5}}}"#,
                "\"file:///values.schema.json#\" is not valid against metaschema: jsonschema validation failed with 'https://json-schema.org/draft/2020-12/schema#'\n- at '': 'allOf' failed\n  - at '/properties/a': 'allOf' failed\n    - at '/properties/a/type': 'anyOf' failed\n      - at '/properties/a/type': value must be one of 'array', 'boolean', 'integer', 'null', 'number', 'object', 'string'\n      - at '/properties/a/type': got number, want array\n",
            ),
        ];
        for (schema, text) in cases {
            let told = check(schema, serde_json::json!({"a": ["b", 1]})).expect_err(schema);
            assert_eq!(told, text, "{schema}");
        }
        let draft_7 = |format: &str| {
            format!(
                r#"{{"$schema":"http://json-schema.org/draft-07/schema#","properties":{{"a":{{"format":"{format}"}}}}}}"#
            )
        };
        for (format, text, why) in [
            ("ipv4", "1.2.3", "expected four decimals"),
            ("hostname", "-x", "label starts with hyphen"),
            ("date-time", "x", "less than 20 characters long"),
            (
                "date",
                "2020-1-01",
                "parsing time \"2020-1-01\" as \"2006-01-02\": cannot parse \"1-01\" as \"01\"",
            ),
            ("duration", "x", "must start with P"),
        ] {
            let told = check(&draft_7(format), serde_json::json!({"a": text})).expect_err(format);
            assert_eq!(told, format!("- at '/a': '{text}' is not valid {format}: {why}\n"));
        }
        assert!(check(r#"{"properties":{"a":{"format":"ipv4"}}}"#, serde_json::json!({"a": "x"})).is_ok());
    }

    /// D06: nothing is fetched and no reference loops.
    #[test]
    fn external_references_are_rejected() {
        for reference in ["https://example.com/schema.json", "file:///etc/passwd", "other.json"] {
            let schema = format!(r#"{{"properties":{{"a":{{"$ref":"{reference}"}}}}}}"#);
            assert!(check(&schema, serde_json::json!({"a": 1})).is_err(), "{reference}");
        }
        let recursive = r##"{"$defs":{"n":{"properties":{"n":{"$ref":"#/$defs/n"}}}},"$ref":"#/$defs/n"}"##;
        assert!(check(recursive, serde_json::json!({"n": {"n": {}}})).is_ok());
        let cycle = r##"{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}"##;
        let _ = check(cycle, serde_json::json!({}));
    }
}
