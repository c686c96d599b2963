//! Validation of CustomResourceDefinitions, with the reference's words and paths.
//!
//! The reference validates an internal form in which schema, subresources and columns that all versions share stand at
//! the top of the spec; paths in errors follow that form.

mod defaults;
mod names;
mod openapi;
mod spec;
mod structural;
mod webhook;

use serde_json::Value;

use crate::field_error::FieldError;
use crate::model::CelRule;
use crate::node::Node;

pub use webhook::webhook_url_problems;

/// What compiling one rule found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleVerdict {
    pub error: Option<String>,
    pub message_error: Option<String>,
    pub uses_old_self: bool,
    /// The most the rule costs for one value, and how many values a request can hold.
    pub cost: u64,
    pub message_cost: Option<u64>,
    pub values: u64,
}

/// Compiles and runs CEL rules; the schema crate itself knows nothing about CEL.
pub trait RuleCheck {
    fn compile(&self, rule: &CelRule, schema: &Node, resource: bool) -> RuleVerdict;

    /// The normalised `fieldPath`, or `None` when it names no field.
    fn field_path(&self, path: &str, schema: &Node) -> Option<String>;

    /// Errors of running the rules of `schema` on a default value.
    fn run(&self, schema: &Node, resource: bool, value: &Value) -> Vec<FieldError>;
}

/// Errors of a new (`old` absent) or changed definition; metadata is checked elsewhere, except that the name must be
/// made of plural and group.
pub fn validate_definition(
    definition: &Value,
    old: Option<&Value>,
    rules: &dyn RuleCheck,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if old.is_none() {
        names::check_name(definition, &mut errors);
    }
    spec::check(definition, old, rules, &mut errors);
    spec::check_stored_versions(definition, &mut errors);
    names::check_approval(definition, old, &mut errors);
    spec::check_preserve_unknown(definition, old, &mut errors);
    errors
}

/// A text member, empty when absent.
fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn list<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    value.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests;
