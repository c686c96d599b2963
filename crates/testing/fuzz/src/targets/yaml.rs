//! YAML and JSON texts.

use fl_yaml::{Dialect, JsonStyle, Node, Options};

use super::Target;

pub(crate) const TARGETS: &[Target] =
    &[("yaml-parse", yaml_parse), ("yaml-round-trip", yaml_round_trip), ("json-parse", json_parse)];

/// Every way to read: a tree or an error with a place.
fn yaml_parse(input: &[u8]) {
    for options in [Options::v3(), Options::sigs(), Options::sigs_strict(), Options::editing()] {
        match fl_yaml::parse_all(input, &options) {
            Ok(documents) => drop(documents.clone()),
            Err(error) => assert!(error.line > 0 && error.column > 0, "{error:?} has no place"),
        }
    }
}

/// What is printed reads back as the same values.
fn yaml_round_trip(input: &[u8]) {
    for (options, dialect) in [(Options::v3(), Dialect::V3), (Options::sigs(), Dialect::Sigs)] {
        let Ok(documents) = fl_yaml::parse_all(input, &options) else { continue };
        for document in &documents {
            let Ok(yaml) = fl_yaml::to_sigs_yaml(document, dialect) else { continue };
            let again = read_back(&yaml, document);
            let json = fl_yaml::to_json(&again, Dialect::Sigs, JsonStyle::GO);
            let json = json.unwrap_or_else(|e| panic!("{e}: printed what has no JSON\n{yaml}"));
            // Printing a second time must not change a byte.
            let once_more = fl_yaml::to_sigs_yaml(&again, Dialect::Sigs);
            assert_eq!(once_more.as_deref(), Ok(yaml.as_str()), "{json}");
        }
    }
}

fn read_back(yaml: &str, of: &Node) -> Node {
    match fl_yaml::parse_first(yaml.as_bytes(), &Options::sigs_strict()) {
        Ok(node) => node.unwrap_or_default(),
        Err(error) => panic!("{error}: cannot read what was printed\n{yaml}\nfor {of:?}"),
    }
}

/// JSON is read and printed without loss.
fn json_parse(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match fl_yaml::from_json(text) {
        Ok(node) => {
            let json = fl_yaml::to_json(&node, Dialect::Sigs, JsonStyle::GO);
            if let Ok(json) = json {
                let again = fl_yaml::from_json(&json).unwrap_or_else(|e| panic!("{e}: cannot read {json}"));
                assert_eq!(fl_yaml::to_json(&again, Dialect::Sigs, JsonStyle::GO).as_ref(), Ok(&json));
            }
        }
        Err(error) => assert!(error.line > 0 && error.column > 0, "{error:?} has no place"),
    }
}
