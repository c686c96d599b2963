//! Variable substitution in built objects.

use std::collections::BTreeMap;

use fl_envsubst::Missing;
use fl_yaml::{Dialect, JsonStyle, Node, Stage};

const SUBSTITUTE: &str = "kustomize.toolkit.fluxcd.io/substitute";
const PATTERN: &str = "^[_[:alpha:]][_[:alpha:][:digit:]]*$";

/// Called with the value of a variable and what an operator of an expression made of it.
pub type ReportDerived<'a> = &'a dyn Fn(&str, &str);

/// How variables are substituted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// A variable without value and default is an error.
    pub(crate) strict: bool,
    /// Also when there are no variables.
    pub(crate) always: bool,
}

/// Why the variables of an object cannot be substituted.
#[derive(Debug, thiserror::Error)]
pub enum SubstituteError {
    /// The variables could not be read.
    #[error("{0}")]
    Variables(String),
    /// The name of a variable is invalid.
    #[error("envsubst error: '{0}' var name is invalid, must match '{PATTERN}'")]
    InvalidName(String),
    /// The object cannot be encoded.
    #[error(transparent)]
    Encode(fl_yaml::Error),
    /// The substitution failed.
    #[error("envsubst error: variable substitution failed: {}", .0.flux_text())]
    Expand(fl_envsubst::Error),
    /// The result is not YAML.
    #[error("envsubst error: YAMLToJSON: {}", unquoted(.0))]
    Result(fl_yaml::Error),
}

/// Substitutes the variables of one object. An error in `variables` only matters when the object needs them.
pub(crate) fn substitute(
    node: Node,
    variables: Result<&BTreeMap<String, String>, String>,
    settings: &Settings,
    derived: Option<ReportDerived<'_>>,
) -> Result<Node, SubstituteError> {
    let disabled = |field: &str| {
        let value = node.at(&["metadata", field, SUBSTITUTE]);
        value.and_then(Node::as_text) == Some("disabled")
    };
    if disabled("labels") || disabled("annotations") {
        return Ok(node);
    }
    let variables = variables.map_err(SubstituteError::Variables)?;
    if variables.is_empty() && !settings.always {
        return Ok(node);
    }
    if let Some(name) = variables.keys().find(|name| !fl_envsubst::is_valid_name(name)) {
        return Err(SubstituteError::InvalidName(name.clone()));
    }
    let text = fl_yaml::to_sigs_yaml(&node, Dialect::V3).map_err(SubstituteError::Encode)?;
    if !text.contains('$') {
        return Ok(node);
    }
    let missing = if settings.strict { Missing::Refuse } else { Missing::Empty };
    let lookup = |name: &str| variables.get(name).cloned();
    let expanded = fl_envsubst::expand_reporting(&text, missing, lookup, derived.unwrap_or(&|_, _| ()))
        .map_err(SubstituteError::Expand)?;
    let parsed = fl_yaml::parse_first(expanded.as_bytes(), &fl_yaml::Options::sigs())
        .map_err(SubstituteError::Result)?
        .unwrap_or_else(Node::null);
    let json =
        fl_yaml::to_json(&parsed, Dialect::Sigs, JsonStyle::default()).map_err(SubstituteError::Result)?;
    fl_yaml::from_json(&json).map_err(SubstituteError::Result)
}

/// Go's message for text that is not YAML. Later stages quote keys and values, which may be those of Secrets now: of them only
/// the position is shown.
fn unquoted(error: &fl_yaml::Error) -> String {
    match error.stage {
        Stage::Reader | Stage::Scanner | Stage::Parser => error.go_text(Dialect::Sigs),
        _ => format!(
            "yaml: line {}, column {}: the text after substitution is not YAML",
            error.line, error.column
        ),
    }
}
