//! One compiled rule.

use std::borrow::Cow;

use fl_schema::{CelRule, Node};
use serde_json::Value as Json;
use thiserror::Error;

use super::field_path::field_path;
use crate::ast::Expr;
use crate::check::{check, uses};
use crate::error::{CompileError, EvalError};
use crate::eval::Scope;
use crate::expression::DEFAULT_COST_LIMIT;
use crate::literals::invalid_find_pattern;
use crate::parser::parse;
use crate::types::Type;
use crate::value::Value;

const MAX_MESSAGE: usize = 5 * 1024;

/// Error of compiling a rule.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RuleError {
    #[error("compilation failed: {0}")]
    Compile(CompileError),
    #[error("program instantiation failed: {0}")]
    Program(String),
    #[error("cel expression must evaluate to a bool")]
    NotBool,
    #[error("messageExpression compilation failed: {0}")]
    Message(CompileError),
    #[error("messageExpression must evaluate to a string")]
    MessageNotText,
    #[error("failed to convert to declType for CEL validation rules")]
    NoType,
}

/// A compiled rule of a schema.
#[derive(Debug)]
pub struct Program {
    node: Node,
    rule: Expr,
    uses_old: bool,
    optional_old: bool,
    message: Option<Expr>,
    path: Option<String>,
}

/// Compiles a rule for values of a schema; `resource` if the schema describes a whole object.
pub fn compile(rule: &CelRule, schema: &Node, resource: bool) -> Result<Program, RuleError> {
    let ty = Type::of(schema, resource).ok_or(RuleError::NoType)?;
    let optional_old = rule.optional_old_self == Some(true);
    let old = if optional_old { Type::Optional(Box::new(ty.clone())) } else { ty.clone() };
    let vars = [("self", ty), ("oldSelf", old)];
    let expr = parse(&rule.rule).map_err(RuleError::Compile)?;
    match check(&expr, &vars, &rule.rule).map_err(RuleError::Compile)? {
        Type::Named("bool") => {}
        _ => return Err(RuleError::NotBool),
    }
    if let Some(why) = invalid_find_pattern(&expr) {
        return Err(RuleError::Program(why));
    }
    let message = if rule.message_expression.is_empty() {
        None
    } else {
        let expr = parse(&rule.message_expression).map_err(RuleError::Message)?;
        match check(&expr, &vars, &rule.message_expression).map_err(RuleError::Message)? {
            Type::Named("string") => Some(expr),
            _ => return Err(RuleError::MessageNotText),
        }
    };
    let path = if rule.field_path.is_empty() { None } else { field_path(&rule.field_path, schema).ok() };
    Ok(Program {
        node: schema.clone(),
        uses_old: uses(&expr, "oldSelf"),
        optional_old,
        rule: expr,
        message,
        path,
    })
}

impl Program {
    /// Maximum cost of the rule for one value.
    pub fn max_cost(&self) -> u64 {
        crate::cost::estimate(&self.rule, &self.node)
    }

    /// Maximum cost of its message expression.
    pub fn max_message_cost(&self) -> Option<u64> {
        self.message.as_ref().map(|expr| crate::cost::estimate(expr, &self.node))
    }

    /// Maximum number of values of the rule's schema in one request.
    pub fn max_values(&self) -> u64 {
        crate::cost::max_values(&self.node)
    }

    /// Whether this is a transition rule.
    pub fn uses_old(&self) -> bool {
        self.uses_old
    }

    pub(super) fn field_path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    fn scope<'a, 'v>(&'a self, object: &'a Json, old: Option<&'a Json>) -> Scope<'a, 'v> {
        let wrap = |json: &'a Json| Value::from_json(json, Some(&self.node));
        let mut vars = vec![(Cow::Borrowed("self"), wrap(object))];
        if self.optional_old {
            vars.push((Cow::Borrowed("oldSelf"), Value::Optional(old.map(|o| Box::new(wrap(o))))));
        } else if let Some(old) = old {
            vars.push((Cow::Borrowed("oldSelf"), wrap(old)));
        }
        Scope::new(vars, DEFAULT_COST_LIMIT)
    }

    /// Evaluates the rule; returns the result and its cost.
    pub fn eval(&self, object: &Json, old: Option<&Json>) -> (Result<bool, EvalError>, u64) {
        let mut scope = self.scope(object, old);
        let result = scope.eval(&self.rule).map(|value| matches!(value, Value::Bool(true)));
        (result, scope.cost())
    }

    /// Evaluates the message expression; returns the message and its cost, `None` if there is none or its
    /// result is unusable.
    pub fn message(&self, object: &Json, old: Option<&Json>) -> Option<(String, u64)> {
        let expr = self.message.as_ref()?;
        let mut scope = self.scope(object, old);
        let Ok(Value::Text(text)) = scope.eval(expr) else { return None };
        let text = text.trim();
        let usable = !text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n');
        usable.then(|| (text.to_owned(), scope.cost()))
    }
}
