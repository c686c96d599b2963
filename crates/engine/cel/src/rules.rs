//! `x-kubernetes-validations`: the rules of a schema, compiled once and evaluated for objects.

mod field_path;
mod program;

use fl_schema::{CelRule, FieldError, FieldErrorKind, MapType, Node, Schema, list_correlation};
use serde_json::Value as Json;

pub use field_path::{FieldPathError, field_path};
pub use program::{Program, RuleError, compile};

use crate::error::EvalError;

/// Cost limit of all rules of one object together.
pub const COST_BUDGET: u64 = 10_000_000;

/// Whether a rule is a transition rule; false if it does not parse.
pub fn uses_old_self(rule: &str) -> bool {
    crate::parser::parse(rule).is_ok_and(|expr| crate::check::uses(&expr, "oldSelf"))
}

/// The rules of a schema and of everything below it.
#[derive(Debug)]
pub struct Validator {
    node: Node,
    rules: Vec<(CelRule, Result<Program, RuleError>)>,
    properties: Vec<(String, Validator)>,
    items: Option<Box<Validator>>,
    values: Option<Box<Validator>>,
    all_of: Vec<Validator>,
}

impl Validator {
    /// Compiles the rules of a resource's schema; `None` if it has no rules.
    pub fn new(schema: &Node) -> Option<Self> {
        Self::below(schema, true)
    }

    /// Compiles the rules of a subschema; `resource` if it describes a whole object.
    pub fn below(schema: &Node, resource: bool) -> Option<Self> {
        build(schema, schema, resource)
    }

    /// Evaluates the rules. `old` is the object before the update; without it transition rules are skipped.
    /// Warnings are errors of unchanged parts, which do not fail an update.
    pub fn validate(&self, object: &Json, old: Option<&Json>) -> (Vec<FieldError>, Vec<String>) {
        let mut run = Run { budget: Some(COST_BUDGET), errors: Vec::new(), warnings: Vec::new() };
        run.visit(self, object, old, RatchetState { old, parent_same: false }, &Path::Root);
        (run.errors, run.warnings)
    }
}

fn build(rules_of: &Schema, node: &Node, root: bool) -> Option<Validator> {
    let resource = root || node.embedded_resource;
    let rules: Vec<(CelRule, Result<Program, RuleError>)> = rules_of
        .rules
        .as_deref()
        .map(|r| r.cel.as_slice())
        .unwrap_or_default()
        .iter()
        .filter(|rule| !rule.rule.trim().is_empty())
        .map(|rule| (rule.clone(), compile(rule, node, resource)))
        .collect();
    let properties: Vec<(String, Validator)> = rules_of
        .properties
        .iter()
        .filter_map(|(name, below)| {
            let target = node.property(name)?;
            Some((name.to_owned(), build(below, target, false)?))
        })
        .collect();
    let items =
        rules_of.items.as_ref().zip(node.items.as_ref()).and_then(|(r, n)| build(r, n, false)).map(Box::new);
    let values =
        rules_of.map_values().zip(node.map_values()).and_then(|(r, n)| build(r, n, false)).map(Box::new);
    let all_of: Vec<Validator> = rules_of
        .rules
        .as_deref()
        .map(|r| r.all_of.as_slice())
        .unwrap_or_default()
        .iter()
        .filter_map(|nested| build(nested, node, root))
        .collect();
    let empty =
        rules.is_empty() && properties.is_empty() && items.is_none() && values.is_none() && all_of.is_empty();
    (!empty).then(|| Validator { node: node.clone(), rules, properties, items, values, all_of })
}

/// Path of a value; formatted only for errors.
enum Path<'a> {
    Root,
    Field(&'a Path<'a>, &'a str),
    Key(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
}

impl Path<'_> {
    fn text(&self) -> String {
        match self {
            Path::Root => String::new(),
            Path::Field(parent, name) => {
                let before = parent.text();
                if before.is_empty() { (*name).to_owned() } else { format!("{before}.{name}") }
            }
            Path::Key(parent, name) => format!("{}[{name}]", parent.text()),
            Path::Index(parent, index) => format!("{}[{index}]", parent.text()),
        }
    }
}

/// Ratcheting state of a value: its old value if it can be correlated, else whether its parent changed.
#[derive(Clone, Copy)]
struct RatchetState<'a> {
    old: Option<&'a Json>,
    parent_same: bool,
}

struct Run {
    /// Remaining cost; `None` once it is used up.
    budget: Option<u64>,
    errors: Vec<FieldError>,
    warnings: Vec<String>,
}

impl Run {
    fn visit(
        &mut self,
        validator: &Validator,
        object: &Json,
        old: Option<&Json>,
        seen: RatchetState<'_>,
        at: &Path<'_>,
    ) {
        if object.is_null() || self.budget.is_none() {
            return;
        }
        self.run_rules(validator, object, old, seen, at);
        for nested in &validator.all_of {
            self.visit(nested, object, old, RatchetState { old: None, parent_same: seen.parent_same }, at);
        }
        let same = seen.old.map_or(seen.parent_same, |o| o == object);
        match object {
            Json::Array(list) => {
                let Some(items) = &validator.items else { return };
                for (index, item) in list.iter().enumerate() {
                    let before = old.and_then(|o| list_correlation::item(o, item, &validator.node));
                    let seen_item = seen.old.and_then(|o| list_correlation::item(o, item, &validator.node));
                    self.visit(
                        items,
                        item,
                        before,
                        RatchetState { old: seen_item, parent_same: same },
                        &Path::Index(at, index),
                    );
                }
            }
            Json::Object(map) => {
                // Atomic maps are correlated by key too.
                debug_assert!(matches!(
                    validator.node.map,
                    MapType::Unset | MapType::Granular | MapType::Atomic
                ));
                for (name, value) in map {
                    let before = old.and_then(|o| o.get(name));
                    let seen_below =
                        RatchetState { old: seen.old.and_then(|o| o.get(name)), parent_same: same };
                    if let Some((_, below)) = validator.properties.iter().find(|(n, _)| n == name) {
                        self.visit(below, value, before, seen_below, &Path::Field(at, name));
                    } else if let Some(values) = &validator.values {
                        self.visit(values, value, before, seen_below, &Path::Key(at, name));
                    }
                }
            }
            _ => {}
        }
    }

    fn run_rules(
        &mut self,
        validator: &Validator,
        object: &Json,
        old: Option<&Json>,
        seen: RatchetState<'_>,
        at: &Path<'_>,
    ) {
        let old = old.filter(|o| !o.is_null());
        let ty = validator.node.ty.as_str();
        for (rule, compiled) in &validator.rules {
            let Some(budget) = self.budget else { return };
            let program = match compiled {
                Ok(program) => program,
                Err(error) => {
                    self.errors.push(invalid(at, ty, format!("rule compile error: {error}")));
                    continue;
                }
            };
            if program.uses_old() && old.is_none() && rule.optional_old_self != Some(true) {
                continue;
            }
            let (result, cost) = program.eval(object, old);
            if cost > budget {
                self.errors.push(invalid(at, ty, "validation failed due to running out of cost budget, no further validation rules will be run".to_owned()));
                self.budget = None;
                return;
            }
            self.budget = Some(budget - cost);
            match result {
                Ok(true) => {}
                Ok(false) => {
                    let error = self.failure(rule, program, object, old, ty, at);
                    let unchanged = !program.uses_old() && seen.old.map_or(seen.parent_same, |o| o == object);
                    if unchanged {
                        self.warnings.push(error.to_string());
                    } else {
                        self.errors.push(error);
                    }
                }
                Err(error) => {
                    let named = named(rule);
                    let detail = match &error {
                        EvalError::CostExceeded => format!(
                            "'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {named}"
                        ),
                        EvalError::Message(text) if text.starts_with("no such overload") => {
                            format!(
                                "'{error}': call arguments did not match a supported operator, function or macro signature for rule: {named}"
                            )
                        }
                        EvalError::Message(_) => format!("{error} evaluating rule: {named}"),
                    };
                    self.errors.push(invalid(at, ty, detail));
                    if error == EvalError::CostExceeded {
                        self.budget = None;
                        return;
                    }
                }
            }
        }
    }

    fn failure(
        &mut self,
        rule: &CelRule,
        program: &Program,
        object: &Json,
        old: Option<&Json>,
        ty: &str,
        at: &Path<'_>,
    ) -> FieldError {
        let mut field = at.text();
        if let Some(below) = program.field_path() {
            field = if field.is_empty() { below.to_owned() } else { format!("{field}.{below}") };
        }
        if field.is_empty() {
            field = "<nil>".to_owned();
        }
        let message = program.message(object, old).map(|(text, cost)| {
            self.budget = self.budget.map(|b| b.saturating_sub(cost));
            text
        });
        let message = message.unwrap_or_else(|| {
            if rule.message.is_empty() {
                format!("failed rule: {}", rule.rule.trim())
            } else {
                rule.message.trim().to_owned()
            }
        });
        let value = Json::from(ty);
        match rule.reason.as_deref() {
            Some("FieldValueForbidden") => FieldError::forbidden(field, message),
            Some("FieldValueRequired") => FieldError::required(field, message),
            Some("FieldValueDuplicate") => FieldError::duplicate(field, &value),
            _ => FieldError::invalid(field, &value, message),
        }
    }
}

fn named(rule: &CelRule) -> &str {
    if rule.message.is_empty() { rule.rule.trim() } else { rule.message.trim() }
}

fn invalid(at: &Path<'_>, ty: &str, detail: String) -> FieldError {
    let field = at.text();
    let field = if field.is_empty() { "<nil>".to_owned() } else { field };
    FieldError::new(FieldErrorKind::Invalid, field, Some(&Json::from(ty)), detail)
}

#[cfg(test)]
mod tests;
