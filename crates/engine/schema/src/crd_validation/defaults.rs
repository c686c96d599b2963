//! Validation of defaults, which must be valid and complete themselves.

use serde_json::Value;

use super::RuleCheck;
use crate::field_error::FieldError;
use crate::node::Node;
use crate::prune::prune_below;
use crate::validate::validate;

pub(super) fn check(
    schema: &Value,
    node: &Node,
    at: &str,
    rules: &dyn RuleCheck,
    errors: &mut Vec<FieldError>,
) {
    visit(schema, node, at, true, rules, errors);
}

fn visit(
    schema: &Value,
    node: &Node,
    at: &str,
    root: bool,
    rules: &dyn RuleCheck,
    errors: &mut Vec<FieldError>,
) {
    if let Some(default) = node.default.as_deref().filter(|d| !d.is_null()) {
        let field = format!("{at}.default");
        let mut pruned = default.clone();
        prune_below(&mut pruned, node);
        if pruned != *default {
            errors.push(FieldError::invalid(field.clone(), default, "must not have unknown fields"));
        }
        let found = validate(default, None, node, &field);
        if found.is_empty() {
            for mut error in rules.run(node, root || node.embedded_resource, default) {
                error.field =
                    if error.field == "<nil>" { field.clone() } else { format!("{field}.{}", error.field) };
                errors.push(error);
            }
        } else {
            errors.extend(found);
        }
    }
    if let (Some(json), Some(items)) = (schema.get("items"), &node.items) {
        visit(json, items, &format!("{at}.items"), false, rules, errors);
    }
    for (name, json) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if let Some(property) = node.property(name) {
            visit(json, property, &format!("{at}.properties[{name}]"), false, rules, errors);
        }
    }
}
