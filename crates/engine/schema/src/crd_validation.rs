//! Validation of CustomResourceDefinitions, with the messages and paths of kube-apiserver.
//!
//! kube-apiserver validates an internal type in which schema, subresources and columns that are equal in all
//! versions are at the top of the spec; the paths in errors are those of that type.

mod defaults;
mod names;
mod openapi;
mod spec;
mod structural;
mod webhook;

use serde_json::Value;

use crate::field_error::FieldError;
use crate::node::Node;
use crate::structural::CelRule;

pub use webhook::webhook_url_errors;

/// The result of compiling one CEL rule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompiledRule {
    pub error: Option<String>,
    pub message_error: Option<String>,
    pub uses_old_self: bool,
    /// Maximum cost of the rule for one value, and the maximum number of values in a request.
    pub cost: u64,
    pub message_cost: Option<u64>,
    pub values: u64,
}

/// Compiles and runs CEL rules. Implemented by callers, because this crate does not depend on CEL.
pub trait RuleCheck {
    fn compile(&self, rule: &CelRule, schema: &Node, resource: bool) -> CompiledRule;

    /// The normalized `fieldPath`, or `None` if there is no such field.
    fn field_path(&self, path: &str, schema: &Node) -> Option<String>;

    /// The errors of running the rules of `schema` on a default value.
    fn run(&self, schema: &Node, resource: bool, value: &Value) -> Vec<FieldError>;
}

/// Validates a new (`old` is `None`) or changed definition. Of the metadata only the name is checked, which
/// must consist of plural and group.
pub fn validate_crd(definition: &Value, old: Option<&Value>, rules: &dyn RuleCheck) -> Vec<FieldError> {
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

/// The string at a pointer; empty when absent.
fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn list<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    value.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests;
