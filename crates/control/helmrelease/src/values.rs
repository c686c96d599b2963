//! The values of a release: from ConfigMaps and Secrets, then inline, merged by Flux's rules.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fl_api::helm::HelmRelease;
use fl_api::helm::helm_release::ValuesReference;
use fl_api::meta::references::ValuesKind;
use fl_gotemplate::{Entries, Map as Table, Value as Data};
use fl_helm::{JsonValue, Overrides, SetKind};
use fl_runtime::{Client, ClientError, Kind};
use serde_json::{Map, Value};

/// Why the values of a release could not be resolved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ValuesError {
    /// The referenced object or key is missing or invalid.
    #[error(
        "could not resolve{optional} {kind} chart values reference '{namespace}/{name}' with key '{key}': {why}"
    )]
    Reference {
        optional: &'static str,
        kind: &'static str,
        namespace: String,
        name: String,
        key: String,
        why: String,
    },
    /// The API server returned an error.
    #[error("{0}")]
    Api(#[from] ClientError),
}

/// The data of a reference.
struct Source {
    data: Vec<u8>,
    target_path: Option<String>,
    literal: bool,
    reference: ValuesReference,
}

const DEFAULT_KEY: &str = "values.yaml";

fn key_of(reference: &ValuesReference) -> &str {
    reference.values_key.as_deref().filter(|key| !key.is_empty()).unwrap_or(DEFAULT_KEY)
}

fn kind_of(reference: &ValuesReference) -> (&'static str, Kind) {
    match reference.kind {
        ValuesKind::Secret => ("Secret", Kind::secret()),
        ValuesKind::ConfigMap => ("ConfigMap", Kind::config_map()),
    }
}

fn problem(reference: &ValuesReference, namespace: &str, why: impl Into<String>) -> ValuesError {
    ValuesError::Reference {
        optional: if reference.optional.unwrap_or(false) { " optional" } else { "" },
        kind: kind_of(reference).0,
        namespace: namespace.to_owned(),
        name: reference.name.clone(),
        key: key_of(reference).to_owned(),
        why: why.into(),
    }
}

/// The values of a HelmRelease.
pub(crate) async fn resolve(
    cluster: &Client,
    object: &HelmRelease,
) -> Result<Map<String, Value>, ValuesError> {
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    let mut sources = Vec::new();
    let mut read: Vec<(&'static str, String, Option<Value>)> = Vec::new();
    for reference in object.spec.values_from.iter().flatten() {
        let (word, kind) = kind_of(reference);
        let optional = reference.optional.unwrap_or(false);
        let known = read.iter().find(|(known, name, _)| *known == word && *name == reference.name);
        let found = match known {
            Some((_, _, found)) => found.clone(),
            None => {
                let found = match cluster.get(&kind, Some(namespace), &reference.name).await {
                    Ok(found) => Some(found),
                    Err(error) if error.is_not_found() && optional => None,
                    Err(error) if error.is_not_found() => {
                        return Err(problem(reference, namespace, error.to_string()));
                    }
                    Err(error) => return Err(error.into()),
                };
                read.push((word, reference.name.clone(), found.clone()));
                found
            }
        };
        let Some(found) = found else {
            if optional {
                continue;
            }
            return Err(problem(reference, namespace, "resource not found"));
        };
        let text = found["data"].get(key_of(reference)).and_then(Value::as_str);
        let Some(text) = text else {
            if optional {
                continue;
            }
            return Err(problem(reference, namespace, "key not found"));
        };
        let data = match reference.kind {
            ValuesKind::ConfigMap => text.as_bytes().to_vec(),
            ValuesKind::Secret => {
                STANDARD.decode(text).map_err(|_| problem(reference, namespace, "the value is not base64"))?
            }
        };
        sources.push(Source {
            data,
            target_path: reference.target_path.clone().filter(|path| !path.is_empty()),
            literal: reference.literal.unwrap_or(false),
            reference: reference.clone(),
        });
    }
    let inline = object.spec.values.as_ref().and_then(|values| serde_json::to_value(values).ok());
    merge(inline.as_ref(), &sources, namespace)
}

/// Merges in order. Tables are shared and modified in place where Flux's code does: the result depends on it.
fn merge(
    inline: Option<&Value>,
    sources: &[Source],
    namespace: &str,
) -> Result<Map<String, Value>, ValuesError> {
    let inline = JsonValue::from_json(inline.unwrap_or(&Value::Null)).to_map();
    let mut result = Table::new(Entries::new());
    for source in sources {
        let refuse = |why: String| problem(&source.reference, namespace, why);
        if let Some(path) = &source.target_path {
            result = merge_tables(&result, &inline);
            let text = String::from_utf8_lossy(&source.data).into_owned();
            set_path(&result, path, &text, source.literal).map_err(refuse)?;
            continue;
        }
        let text = String::from_utf8_lossy(&source.data);
        let node = fl_yaml::parse_first(text.as_bytes(), &fl_yaml::Options::sigs()).map_err(|error| {
            refuse(format!("error converting YAML to JSON: {}", error.go_text(fl_yaml::Dialect::Sigs)))
        })?;
        let tree =
            JsonValue::table_from_yaml(&node.unwrap_or_default()).map_err(|e| refuse(e.to_string()))?;
        result = merge_tables(&result, &tree.to_map());
    }
    let merged = merge_tables(&result, &inline);
    match JsonValue::from_value(&Data::Map(merged)).to_json() {
        Value::Object(map) => Ok(map),
        _ => Ok(Map::new()),
    }
}

fn merge_tables(below: &Table, above: &Table) -> Table {
    let mut entries: Entries = below.borrow().clone();
    for (key, value) in above.borrow().iter() {
        let merged = match (entries.get(key), value) {
            (Some(Data::Map(old)), Data::Map(new)) => Data::Map(merge_tables(old, new)),
            _ => value.clone(),
        };
        entries.insert(key.clone(), merged);
    }
    Table::new(entries)
}

fn set_path(table: &Table, path: &str, value: &str, literal: bool) -> Result<(), String> {
    let (kind, value) = if literal {
        let mut escaped = String::with_capacity(value.len());
        for c in value.chars() {
            if matches!(c, '\\' | ',' | '[' | ']' | '{' | '}') {
                escaped.push('\\');
            }
            escaped.push(c);
        }
        (SetKind::String, escaped)
    } else {
        let quoted = |quote: char| value.starts_with(quote) && value.ends_with(quote) && !value.is_empty();
        if quoted('\'') || quoted('"') {
            (SetKind::String, value.trim_matches(['\'', '"']).to_owned())
        } else {
            (SetKind::Typed, value.to_owned())
        }
    };
    let mut overrides = Overrides::from_table(table.clone());
    let set = overrides.set(kind, &format!("{path}={value}"), &mut |_| Err("no files here".to_owned()));
    set.map_err(|error| {
        let text = error.to_string();
        let words = text.split_once("data: ").map_or(text.as_str(), |(_, words)| words);
        words.to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn source(target_path: Option<&str>, data: &str) -> Source {
        let mut reference = json!({"kind": "Secret", "name": "s"});
        if let Some(path) = target_path {
            reference["targetPath"] = path.into();
        }
        let reference: ValuesReference = serde_json::from_value(reference).expect("a reference");
        Source { data: data.into(), target_path: target_path.map(str::to_owned), literal: false, reference }
    }

    fn merged(inline: Value, sources: &[Source]) -> Value {
        Value::Object(merge(Some(&inline), sources, "ns").expect("values"))
    }

    #[test]
    fn target_paths_as_upstream() {
        let path = |path| [source(Some(path), "fromSecret")];
        assert_eq!(merged(json!({"top": "inline"}), &path("top")), json!({"top": "inline"}));
        assert_eq!(merged(json!({"a": {"b": "inline"}}), &path("a.b")), json!({"a": {"b": "fromSecret"}}));
        assert_eq!(
            merged(json!({"other": "x"}), &path("a.b")),
            json!({"a": {"b": "fromSecret"}, "other": "x"})
        );
        let quoted = [source(Some("a"), "'1'"), source(Some("b"), "1"), source(Some("c"), "x,d=y")];
        assert_eq!(merged(json!({}), &quoted), json!({"a": "1", "b": 1.0, "c": "x", "d": "y"}));
    }

    /// Recorded from Flux: a comma begins the next assignment, also between quotes.
    #[test]
    fn a_comma_ends_a_value() {
        for value in ["t,r", "'t,r'", "\"t,r\""] {
            let error = merge(None, &[source(Some("a"), value)], "ns").expect_err(value).to_string();
            let reference = "Secret chart values reference 'ns/s' with key 'values.yaml'";
            assert_eq!(error, format!("could not resolve {reference}: key \"r\" has no value"));
        }
        assert_eq!(merged(json!({}), &[source(Some("a"), "t\\,r")]), json!({"a": "t,r"}));
    }

    #[test]
    fn files_in_order_then_inline() {
        let sources = [source(None, "a: {x: 1, k: 1}\nl: [1]"), source(None, "a: {k: 2, z: null}\nl: [2]")];
        assert_eq!(
            merged(json!({"a": {"w": 3}}), &sources),
            json!({"a": {"x": 1.0, "k": 2.0, "z": null, "w": 3.0}, "l": [2.0]})
        );
        assert!(merge(None, &[source(None, "- a")], "ns").is_err());
    }

    #[test]
    fn literals_are_taken_as_they_are() {
        let mut one = source(Some("a"), "x,y={z}[0]\\");
        one.literal = true;
        assert_eq!(merged(json!({}), &[one]), json!({"a": "x,y={z}[0]\\"}));
    }
}
