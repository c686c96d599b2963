//! `values.schema.json`: the values of a chart, and of each subchart below its name, must fit it.
//!
//! References to other documents are refused: nothing is fetched while a chart is rendered.

use fl_gotemplate::{Map, Value};
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{PatternOptions, Retrieve, Uri, ValidationError};
use serde_json::Value as Json;

use super::json::from_value;
use crate::error::Error;
use crate::plan::{ChartId, Plan};

/// Checks a chart and its subcharts; all violations are reported together.
pub(crate) fn validate(
    plan: &Plan<'_>,
    id: ChartId,
    values: &Map,
    warnings: &mut Vec<String>,
) -> Result<(), Error> {
    let mut text = String::new();
    collect(plan, id, values, &mut text, warnings);
    if text.is_empty() { Ok(()) } else { Err(Error::Schema(text)) }
}

fn collect(plan: &Plan<'_>, id: ChartId, values: &Map, text: &mut String, warnings: &mut Vec<String>) {
    if let Some(schema) = &plan.chart(id).schema
        && let Err(why) = validate_one(values, schema, warnings)
    {
        text.push_str(plan.name(id));
        text.push_str(":\n");
        text.push_str(&why);
    }
    for sub in plan.subcharts(id) {
        let name = plan.name(*sub);
        match values.get(name.as_bytes()) {
            None | Some(Value::Nil) => {}
            Some(Value::Map(below)) => collect(plan, *sub, &below, text, warnings),
            Some(other) => {
                let got = other.type_name();
                text.push_str(&format!(
                    "{name}:\ninvalid type for values: expected object (map), got {got}\n"
                ));
            }
        }
    }
}

/// Answers every reference that leaves the document.
struct NoRetrieval;

impl Retrieve for NoRetrieval {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Json, Box<dyn std::error::Error + Send + Sync>> {
        // Helm lets names that nobody resolves pass, so that charts may carry them for other tools.
        if uri.scheme().as_str() == "urn" {
            return Ok(Json::Bool(true));
        }
        Err(format!("remote references are not followed: {uri}").into())
    }
}

fn validate_one(values: &Map, schema: &[u8], warnings: &mut Vec<String>) -> Result<(), String> {
    let schema: Json = serde_json::from_slice(schema).map_err(|error| error.to_string())?;
    for urn in unresolved_names(&schema) {
        warnings.push(format!("WARNING: unresolved URN reference ignored; using permissive schema: {urn}"));
    }
    let validator = jsonschema::options()
        .with_base_uri("file:///values.schema.json")
        .with_retriever(NoRetrieval)
        // Go's expressions: linear time, no look-around.
        .with_pattern_options(PatternOptions::regex())
        .build(&schema)
        .map_err(|error| {
            format!("\"file:///values.schema.json#\" is not valid against metaschema: {error}\n")
        })?;
    let instance = from_value(&Value::Map(values.clone()));
    if validator.is_valid(&instance) {
        return Ok(());
    }
    let mut lines = Vec::new();
    describe(validator.iter_errors(&instance), 0, &mut lines);
    Err(lines.concat())
}

/// Checks values against one schema, without a chart around them.
pub fn check_schema(values: &super::Tree, schema: &[u8]) -> Result<(), Error> {
    validate_one(&values.to_map(), schema, &mut Vec::new()).map_err(Error::Schema)
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

/// One line per violation; alternatives that failed follow indented.
fn describe<'i>(
    errors: impl IntoIterator<Item = ValidationError<'i>>,
    indent: usize,
    lines: &mut Vec<String>,
) {
    let mut missing: Vec<(String, Vec<String>)> = Vec::new();
    for error in errors {
        let at = error.instance_path().to_string();
        if let ValidationErrorKind::Required { property } = error.kind() {
            let name = property.as_str().map_or_else(|| property.to_string(), str::to_owned);
            match missing.iter_mut().find(|(place, _)| *place == at) {
                Some((_, names)) => names.push(quoted(&name)),
                None => missing.push((at, vec![quoted(&name)])),
            }
            continue;
        }
        lines.push(line(indent, &at, &reason(&error)));
        let (ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }) =
            error.kind()
        else {
            continue;
        };
        for alternative in context {
            for inner in alternative {
                lines.push(line(indent + 1, &inner.instance_path().to_string(), &reason(inner)));
            }
        }
    }
    for (at, names) in missing {
        let word = if names.len() == 1 { "property" } else { "properties" };
        lines.push(line(indent, &at, &format!("missing {word} {}", names.join(", "))));
    }
}

fn line(indent: usize, at: &str, reason: &str) -> String {
    format!("{}- at {}: {reason}\n", "  ".repeat(indent), quoted(at))
}

fn reason(error: &ValidationError<'_>) -> String {
    use ValidationErrorKind as Kind;
    let got = error.instance();
    let list = |names: &[String]| names.iter().map(|n| quoted(n)).collect::<Vec<_>>().join(", ");
    let bound =
        |keyword: &str, limit: &Json| format!("{keyword}: got {}, want {}", number(got), number(limit));
    match error.kind() {
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            format!("additional properties {} not allowed", list(unexpected))
        }
        Kind::AnyOf { .. } => "'anyOf' failed".into(),
        Kind::OneOfNotValid { .. } => "'oneOf' failed, none matched".into(),
        Kind::OneOfMultipleValid { .. } => "'oneOf' failed, more than one subschema matched".into(),
        Kind::Not { .. } => "'not' failed".into(),
        Kind::FalseSchema => "false schema".into(),
        Kind::Required { property } => {
            format!("missing property {}", quoted(property.as_str().unwrap_or_default()))
        }
        Kind::Type { kind } => {
            let want = match kind {
                TypeKind::Single(one) => one.to_string(),
                TypeKind::Multiple(set) => set.iter().map(|t| t.to_string()).collect::<Vec<_>>().join(" or "),
            };
            format!("got {}, want {want}", type_name(got))
        }
        Kind::Enum { options } => match options.as_array().map(Vec::as_slice) {
            Some([one]) => format!("value must be {}", shown(one)),
            Some(many) if many.iter().all(|v| !v.is_array() && !v.is_object()) => {
                format!("value must be one of {}", many.iter().map(shown).collect::<Vec<_>>().join(", "))
            }
            _ => "'enum' failed".into(),
        },
        Kind::Constant { expected_value } => format!("value must be {}", shown(expected_value)),
        Kind::Maximum { limit } => bound("maximum", limit),
        Kind::Minimum { limit } => bound("minimum", limit),
        Kind::ExclusiveMaximum { limit } => bound("exclusiveMaximum", limit),
        Kind::ExclusiveMinimum { limit } => bound("exclusiveMinimum", limit),
        Kind::MultipleOf { multiple_of } => bound("multipleOf", &Json::from(*multiple_of)),
        Kind::MaxItems { limit } => sized("maxItems", got, *limit),
        Kind::MinItems { limit } => sized("minItems", got, *limit),
        Kind::MaxLength { limit } => sized("maxLength", got, *limit),
        Kind::MinLength { limit } => sized("minLength", got, *limit),
        Kind::MaxProperties { limit } => sized("maxProperties", got, *limit),
        Kind::MinProperties { limit } => sized("minProperties", got, *limit),
        Kind::Pattern { pattern } => format!("{} does not match pattern {}", shown(got), quoted(pattern)),
        Kind::Format { format } => format!("{} is not valid {format}", shown(got)),
        Kind::UniqueItems => match equal_items(got) {
            Some((first, second)) => format!("items at {first} and {second} are equal"),
            None => "items are not unique".into(),
        },
        Kind::Contains => "no items match contains schema".into(),
        _ => error.to_string(),
    }
}

/// The first item that is equal to an earlier one.
fn equal_items(list: &Json) -> Option<(usize, usize)> {
    let items = list.as_array()?;
    // Only for a text: a list too long to compare is not worth one.
    (1..items.len().min(1000)).find_map(|i| Some((items[..i].iter().position(|j| *j == items[i])?, i)))
}

fn sized(keyword: &str, got: &Json, limit: u64) -> String {
    let size = match got {
        Json::String(text) => text.chars().count(),
        Json::Array(items) => items.len(),
        Json::Object(entries) => entries.len(),
        _ => 0,
    };
    format!("{keyword}: got {size}, want {limit}")
}

fn type_name(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(_) => "number",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    }
}

fn shown(value: &Json) -> String {
    match value {
        Json::String(text) => quoted(text),
        Json::Null => "<nil>".into(),
        Json::Array(_) | Json::Object(_) => "value".into(),
        other => other.to_string(),
    }
}

/// Numbers are printed with separators, as the reference's English printer does.
fn number(value: &Json) -> String {
    let text = value.to_string();
    let (sign, digits) = text.strip_prefix('-').map_or(("", text.as_str()), |rest| ("-", rest));
    let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(w, f)| (w, Some(f)));
    if !whole.bytes().all(|b| b.is_ascii_digit()) {
        return text;
    }
    let mut out = sign.to_owned();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    match fraction.filter(|f| *f != "0") {
        Some(fraction) => out + "." + fraction,
        None => out,
    }
}

fn quoted(text: &str) -> String {
    let text = fl_gotemplate::fmt::quoted(text.as_bytes());
    let inner = text[1..text.len() - 1].replace("\\\"", "\"").replace('\'', "\\'");
    format!("'{inner}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schema: &str, values: Json) -> Result<(), String> {
        let Value::Map(values) = super::super::json::to_value(values) else { panic!("a table") };
        validate_one(&values, schema.as_bytes(), &mut Vec::new())
    }

    #[test]
    fn violations_are_worded_as_helm_does() {
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

    /// D06: nothing is fetched, nothing loops.
    #[test]
    fn references_out_of_the_document_are_refused() {
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
