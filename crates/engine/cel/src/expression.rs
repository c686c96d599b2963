//! Expressions over JSON values: what health checks, conditions and filters use.

use std::borrow::Cow;

use serde_json::Value as Json;

use crate::ast::Expr;
use crate::check::check;
use crate::error::{CompileError, EvalError};
use crate::eval::Scope;
use crate::parser::parse;
use crate::types::Type;
use crate::value::Value;

/// Cost one evaluation may have unless told otherwise.
pub const DEFAULT_COST_LIMIT: u64 = 1_000_000;

/// A compiled expression over dynamically typed variables.
#[derive(Debug, Clone)]
pub struct Expression {
    expr: Expr,
    source: String,
    /// The name of its type, `dyn` where it is not known.
    output: String,
}

impl Expression {
    /// Compiles `source`, which may refer to `variables`.
    pub fn compile(source: &str, variables: &[&str]) -> Result<Self, CompileError> {
        let expr = parse(source)?;
        let vars: Vec<(&str, Type<'_>)> = variables.iter().map(|name| (*name, Type::Dyn)).collect();
        let output = match check(&expr, &vars, source)? {
            Type::Dyn | Type::Param(_) => Type::Dyn.to_string(),
            known => known.to_string(),
        };
        Ok(Self { expr, source: source.to_owned(), output })
    }

    /// Reads `source` without knowing its variables: a name that is none is found out when it is evaluated.
    pub fn parse(source: &str) -> Result<Self, CompileError> {
        Ok(Self { expr: parse(source)?, source: source.to_owned(), output: Type::Dyn.to_string() })
    }

    /// The type of an expression that can never come to a boolean.
    pub fn never_bool(&self) -> Option<&str> {
        Some(self.output.as_str()).filter(|name| !matches!(*name, "dyn" | "bool"))
    }

    /// The name of the type an expression comes to, `dyn` where that shows only when it runs.
    pub fn output(&self) -> &str {
        &self.output
    }

    pub fn source(&self) -> &str {
        &self.source
    }

    /// Evaluates with the given variables.
    pub fn eval<'a>(&self, variables: &[(&str, &'a Json)]) -> Result<Json, EvalError> {
        let vars = variables
            .iter()
            .map(|(name, json)| (Cow::Borrowed(*name), Value::from_json(json, None)))
            .collect();
        Scope::<'a, '_>::new(vars, DEFAULT_COST_LIMIT).eval(&self.expr).map(|v| v.to_json())
    }

    /// Evaluates to a boolean, with the errors Flux reports. The reason of a failure may quote values of the variables; `quiet`
    /// leaves it out.
    pub fn decide(&self, variables: &[(&str, &Json)], quiet: bool) -> Result<bool, String> {
        let source = &self.source;
        match self.eval(variables) {
            Ok(Json::Bool(answer)) => Ok(answer),
            Ok(_) => Err(format!("failed to evaluate CEL expression as boolean: '{source}'")),
            Err(_) if quiet => Err(format!("failed to evaluate the CEL expression '{source}'")),
            Err(error) => Err(format!("failed to evaluate the CEL expression '{source}': {error}")),
        }
    }

    /// Evaluates to a boolean.
    pub fn eval_bool(&self, variables: &[(&str, &Json)]) -> Result<bool, EvalError> {
        match self.eval(variables)? {
            Json::Bool(b) => Ok(b),
            other => Err(EvalError::new(format!("expression must evaluate to a bool, got {other}"))),
        }
    }
}
