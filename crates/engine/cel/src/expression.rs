//! Expressions over JSON values: what health checks, conditions and filters use.

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

/// Cost one evaluation may have unless told otherwise.
pub const DEFAULT_COST_LIMIT: u64 = 1_000_000;

/// What expressions may speak of, and what is known of it.
#[derive(Debug, Clone, Default)]
pub struct Names(Vec<(String, Type<'static>)>);

impl Names {
    /// Names of values that may be anything.
    #[must_use]
    pub fn dynamic(names: &[&str]) -> Self {
        Self(names.iter().map(|name| ((*name).to_owned(), Type::Dyn)).collect())
    }

    /// Adds a name of objects with the fields of a schema and no others.
    #[must_use]
    pub fn with_object(mut self, name: &str, schema: &'static Schema) -> Self {
        self.0.push((name.to_owned(), Type::Object { schema, resource: false }));
        self
    }

    /// Adds a member to a group of names; it is of the type of an expression, or of any where that is not known.
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

    /// Adds a group of names without any members.
    pub fn add_group(&mut self, group: &str) {
        self.0.push((group.to_owned(), Type::Record(Arc::default())));
    }
}

/// A compiled expression over dynamically typed variables.
#[derive(Debug, Clone)]
pub struct Expression {
    expr: Expr,
    source: String,
    /// The name of its type, `dyn` where it is not known.
    output: String,
    ty: Type<'static>,
}

impl Expression {
    /// Compiles `source`, which may refer to `variables`.
    pub fn compile(source: &str, variables: &[&str]) -> Result<Self, CompileError> {
        Self::compile_with(source, &Names::dynamic(variables))
    }

    /// Compiles `source`, which may refer to names of which more may be known.
    pub fn compile_with(source: &str, names: &Names) -> Result<Self, CompileError> {
        let expr = parse(source)?;
        let vars: Vec<(&str, Type<'_>)> =
            names.0.iter().map(|(name, ty)| (name.as_str(), ty.clone())).collect();
        let found = check(&expr, &vars, source)?;
        let output = match &found {
            Type::Dyn | Type::Param(_) => Type::Dyn.to_string(),
            known => known.to_string(),
        };
        Ok(Self { expr, source: source.to_owned(), output, ty: found.kept() })
    }

    /// Reads `source` without knowing its variables: a name that is none is found out when it is evaluated.
    pub fn parse(source: &str) -> Result<Self, CompileError> {
        let expr = parse(source)?;
        Ok(Self { expr, source: source.to_owned(), output: Type::Dyn.to_string(), ty: Type::Dyn })
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
    pub fn eval(&self, variables: &[(&str, &Json)]) -> Result<Json, EvalError> {
        self.eval_composed(variables, &[])
    }

    /// Evaluates where members of `variables` may have failed: whoever comes to one of those fails with it.
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
