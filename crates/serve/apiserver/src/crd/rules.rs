//! The CEL rules of a definition, for its validation.

use fl_cel::RuleError;
use fl_schema::{CelRule, FieldError, Node, RuleCheck, RuleVerdict};
use serde_json::Value;

/// Compiles and runs rules with the CEL engine.
pub(super) struct Cel;

impl RuleCheck for Cel {
    fn compile(&self, rule: &CelRule, schema: &Node, resource: bool) -> RuleVerdict {
        let uses_old_self = fl_cel::uses_old_self(&rule.rule);
        match fl_cel::compile(rule, schema, resource) {
            Ok(program) => RuleVerdict {
                uses_old_self,
                cost: program.most_cost(),
                message_cost: program.most_message_cost(),
                values: program.most_values(),
                ..RuleVerdict::default()
            },
            Err(error @ (RuleError::Message(_) | RuleError::MessageNotText)) => RuleVerdict {
                message_error: Some(error.to_string()),
                uses_old_self,
                ..RuleVerdict::default()
            },
            // What does not compile is not known to use anything.
            Err(error) => RuleVerdict { error: Some(error.to_string()), ..RuleVerdict::default() },
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
