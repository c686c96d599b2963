//! Variables in built objects.

use std::collections::BTreeMap;

use fl_subst::Missing;
use fl_yaml::{Dialect, JsonStyle, Node, Stage};

const KEY: &str = "kustomize.toolkit.fluxcd.io/substitute";
const PATTERN: &str = "^[_[:alpha:]][_[:alpha:][:digit:]]*$";

/// How variables are replaced.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// A variable without value and default is an error.
    pub strict: bool,
    /// Also without any variable.
    pub always: bool,
}

/// Replaces the variables in one object; `variables` may be why they could not be read, which only matters where they are
/// needed.
///
/// # Errors
/// The text of Flux: a name that is none, a variable that is not set, or a text that is no object any more.
pub fn object(
    node: Node,
    variables: Result<&BTreeMap<String, String>, String>,
    settings: &Settings,
) -> Result<Node, String> {
    let marked = |field: &str| {
        let value = node.at(&["metadata", field, KEY]);
        value.and_then(Node::as_text) == Some("disabled")
    };
    if marked("labels") || marked("annotations") {
        return Ok(node);
    }
    let variables = variables?;
    if variables.is_empty() && !settings.always {
        return Ok(node);
    }
    if let Some(bad) = variables.keys().find(|name| !fl_subst::is_valid_name(name)) {
        return Err(format!("envsubst error: '{bad}' var name is invalid, must match '{PATTERN}'"));
    }
    let text = fl_yaml::to_sigs_yaml(&node, Dialect::V3).map_err(|e| e.to_string())?;
    if !text.contains('$') {
        return Ok(node);
    }
    let missing = if settings.strict { Missing::Refuse } else { Missing::Empty };
    let expanded = fl_subst::expand(&text, missing, |name| variables.get(name).cloned())
        .map_err(|e| format!("envsubst error: variable substitution failed: {}", e.flux_text()))?;
    let unreadable = |error: &fl_yaml::Error| format!("envsubst error: YAMLToJSON: {}", unquoted(error));
    let parsed = fl_yaml::parse_first(expanded.as_bytes(), &fl_yaml::Options::sigs())
        .map_err(|e| unreadable(&e))?
        .unwrap_or_else(Node::null);
    let json = fl_yaml::to_json(&parsed, Dialect::Sigs, JsonStyle::default()).map_err(|e| unreadable(&e))?;
    fl_yaml::from_json(&json).map_err(|e| unreadable(&e))
}

/// The words of Go for a text that is no YAML. Later stages quote keys and values, which may hold those of Secrets now: of them
/// only the place is told.
fn unquoted(error: &fl_yaml::Error) -> String {
    match error.stage {
        Stage::Reader | Stage::Scanner | Stage::Parser => error.go_text(Dialect::Sigs),
        _ => format!(
            "yaml: line {}, column {}: the text after substitution is not YAML",
            error.line, error.column
        ),
    }
}
