//! Compiles and runs the CEL rules of a definition while the definition is validated.

use fl_cel::RuleError;
use fl_schema::{CelRule, CompiledRule, FieldError, Node, RuleCheck};
use serde_json::Value;

/// Compiles and runs rules with the CEL engine.
pub(super) struct Cel;

impl RuleCheck for Cel {
    fn compile(&self, rule: &CelRule, schema: &Node, resource: bool) -> CompiledRule {
        let uses_old_self = fl_cel::uses_old_self(&rule.rule);
        match fl_cel::compile(rule, schema, resource) {
            Ok(program) => CompiledRule {
                uses_old_self,
                cost: program.max_cost(),
                message_cost: program.max_message_cost(),
                values: program.max_values(),
                ..CompiledRule::default()
            },
            Err(error @ (RuleError::Message(_) | RuleError::MessageNotText)) => CompiledRule {
                message_error: Some(error.to_string()),
                uses_old_self,
                ..CompiledRule::default()
            },
            // Nothing is known of a rule that does not compile.
            Err(error) => CompiledRule { error: Some(error.to_string()), ..CompiledRule::default() },
        }
    }

    fn field_path(&self, path: &str, schema: &Node) -> Option<String> {
        fl_cel::field_path(path, schema).ok()
    }

    fn run(&self, schema: &Node, resource: bool, value: &Value) -> Vec<FieldError> {
        let Some(validator) = fl_cel::Validator::below(schema, resource) else { return Vec::new() };
        let (errors, _) = validator.validate(value, None);
        errors
    }
}
