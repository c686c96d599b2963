//! Expressions over JSON values, used by health checks, conditions and filters.

use std::borrow::Cow;
use std::sync::Arc;

use fl_schema::Schema;
use serde_json::Value as Json;

use crate::ast::Expr;
use crate::check::check;
use crate::error::{CompileError, EvalError};
use crate::eval::Scope;
use crate::parser::parse;
use crate::types::Type;
use crate::value::Value;

/// Default cost limit of one evaluation.
pub const DEFAULT_COST_LIMIT: u64 = 1_000_000;

/// Declared variables and their types.
#[derive(Debug, Clone, Default)]
pub struct Declarations(Vec<(String, Type<'static>)>);

impl Declarations {
    /// Variables of any type.
    #[must_use]
    pub fn dynamic(names: &[&str]) -> Self {
        Self(names.iter().map(|name| ((*name).to_owned(), Type::Dyn)).collect())
    }

    /// Declares a variable for objects with exactly the fields of a schema.
    #[must_use]
    pub fn with_object(mut self, name: &str, schema: &'static Schema) -> Self {
        self.0.push((name.to_owned(), Type::Object { schema, resource: false }));
        self
    }

    /// Declares a member of a group, with the type of an expression, or any type if unknown.
    pub fn add_member(&mut self, group: &str, name: &str, of: Option<&Expression>) {
        let ty = of.map_or(Type::Dyn, |expression| expression.ty.clone());
        let mut members = match self.0.iter().position(|(known, _)| known == group) {
            Some(at) => match self.0.remove(at).1 {
                Type::Record(members) => Arc::unwrap_or_clone(members),
                _ => Vec::new(),
            },
            None => Vec::new(),
        };
        members.retain(|(known, _)| known != name);
        members.push((name.to_owned(), ty));
        self.0.push((group.to_owned(), Type::Record(Arc::new(members))));
    }

    /// Declares a group without members.
    pub fn add_group(&mut self, group: &str) {
        self.0.push((group.to_owned(), Type::Record(Arc::default())));
    }
}

/// A compiled expression over dynamically typed variables.
#[derive(Debug, Clone)]
pub struct Expression {
    expr: Expr,
    source: String,
    /// Name of the result type; `dyn` if unknown.
    output: String,
    ty: Type<'static>,
}

impl Expression {
    /// Compiles `source` with dynamically typed `variables`.
    pub fn compile(source: &str, variables: &[&str]) -> Result<Self, CompileError> {
        Self::compile_with(source, &Declarations::dynamic(variables))
    }

    /// Compiles `source` with declared variables.
    pub fn compile_with(source: &str, names: &Declarations) -> Result<Self, CompileError> {
        let expr = parse(source)?;
        let vars: Vec<(&str, Type<'_>)> =
            names.0.iter().map(|(name, ty)| (name.as_str(), ty.clone())).collect();
        let found = check(&expr, &vars, source)?;
        let output = match &found {
            Type::Dyn | Type::Param(_) => Type::Dyn.to_string(),
            known => known.to_string(),
        };
        Ok(Self { expr, source: source.to_owned(), output, ty: found.to_static() })
    }

    /// Parses `source` without declared variables: unknown names are errors of the evaluation.
    pub fn parse(source: &str) -> Result<Self, CompileError> {
        let expr = parse(source)?;
        Ok(Self { expr, source: source.to_owned(), output: Type::Dyn.to_string(), ty: Type::Dyn })
    }

    /// The result type, if it can never be a boolean.
    pub fn never_bool(&self) -> Option<&str> {
        Some(self.output.as_str()).filter(|name| !matches!(*name, "dyn" | "bool"))
    }

    /// Name of the result type; `dyn` if it is only known at run time.
    pub fn output(&self) -> &str {
        &self.output
    }

    pub fn source(&self) -> &str {
        &self.source
    }

    /// Evaluates with the given variables.
    pub fn eval(&self, variables: &[(&str, &Json)]) -> Result<Json, EvalError> {
        self.eval_composed(variables, &[])
    }

    /// Evaluates with members of `variables` that may have failed: using one of those fails with its error.
    pub fn eval_composed<'a>(
        &self,
        variables: &[(&str, &'a Json)],
        failed: &[(String, EvalError)],
    ) -> Result<Json, EvalError> {
        let vars = variables
            .iter()
            .map(|(name, json)| (Cow::Borrowed(*name), Value::from_json(json, None)))
            .collect();
        let scope = Scope::<'a, '_>::new(vars, DEFAULT_COST_LIMIT);
        scope.with_failed(failed).eval(&self.expr).map(|v| v.to_json())
    }

    /// Evaluates to a boolean, with Flux's errors. The cause may contain values of the variables; `quiet`
    /// omits it.
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
