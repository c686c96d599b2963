//! Warnings about CustomResourceDefinitions.

use serde_json::Value;

/// Supported string formats, without dashes.
const KNOWN: &[&str] = &[
    "bsonobjectid",
    "uri",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "isbn",
    "isbn10",
    "isbn13",
    "creditcard",
    "ssn",
    "hexcolor",
    "rgbcolor",
    "byte",
    "password",
    "date",
    "duration",
    "datetime",
];

fn unknown_formats(schema: &Value, found: &mut Vec<String>) {
    if let (Some(format), Some("string")) = (schema["format"].as_str(), schema["type"].as_str())
        && !format.is_empty()
        && !KNOWN.contains(&format.replace('-', "").as_str())
    {
        found.push(format.to_owned());
    }
    for key in ["properties", "patternProperties", "definitions"] {
        for (_, below) in schema[key].as_object().into_iter().flatten() {
            unknown_formats(below, found);
        }
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        for below in schema[key].as_array().into_iter().flatten() {
            unknown_formats(below, found);
        }
    }
    for key in ["items", "not", "additionalProperties", "additionalItems"] {
        if schema[key].is_object() {
            unknown_formats(&schema[key], found);
        }
    }
}

fn formats_of(definition: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for version in definition["spec"]["versions"].as_array().into_iter().flatten() {
        unknown_formats(&version["schema"]["openAPIV3Schema"], &mut found);
    }
    found
}

/// Warns about unsupported formats, unless the definition had them before.
pub(crate) fn definition(object: &Value, old: Option<&Value>) -> Vec<String> {
    let before = old.map(formats_of).unwrap_or_default();
    let mut said: Vec<String> = Vec::new();
    for format in formats_of(object).into_iter().filter(|format| !before.contains(format)) {
        let text = format!("unrecognized format {format:?}");
        if !said.contains(&text) {
            said.push(text);
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unsupported_formats_are_reported_once() {
        let with = |formats: &[&str]| {
            let properties: serde_json::Map<String, Value> = formats
                .iter()
                .map(|f| ((*f).to_owned(), json!({"items": {"type": "string", "format": f}})))
                .collect();
            json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": {"properties": properties}}}]}})
        };
        let new = with(&["date-time", "odd", "k8s-short-name"]);
        assert_eq!(definition(&new, None).len(), 2);
        assert_eq!(definition(&new, Some(&with(&["odd"]))), ["unrecognized format \"k8s-short-name\""]);
    }
}
