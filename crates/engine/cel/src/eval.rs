//! Evaluation within a cost limit.

use std::borrow::Cow;
use std::sync::Arc;

use crate::ast::{Expr, Kind, Literal, Macro, MacroKind};
use crate::error::EvalError;
use crate::functions;
use crate::value::{List, Map, Value};

pub(crate) type Eval<'a> = Result<Value<'a>, EvalError>;

/// Variables of one iteration of a macro.
type Vars<'a, 'v> = Vec<(Cow<'v, str>, Value<'a>)>;

/// Variables and remaining cost of one evaluation.
pub(crate) struct Scope<'a, 'v> {
    vars: Vars<'a, 'v>,
    /// Members of `variables` whose evaluation failed.
    failed: &'v [(String, EvalError)],
    cost: u64,
    limit: u64,
}

impl<'a, 'v> Scope<'a, 'v> {
    pub(crate) fn new(vars: Vars<'a, 'v>, limit: u64) -> Self {
        Self { vars, failed: &[], cost: 0, limit }
    }

    pub(crate) fn with_failed(self, failed: &'v [(String, EvalError)]) -> Self {
        Self { failed, ..self }
    }

    pub(crate) fn cost(&self) -> u64 {
        self.cost
    }

    /// Adds to the cost; exceeding the limit stops the evaluation.
    pub(crate) fn charge(&mut self, amount: u64) -> Result<(), EvalError> {
        self.cost = self.cost.saturating_add(amount);
        if self.cost > self.limit { Err(EvalError::CostExceeded) } else { Ok(()) }
    }

    fn lookup(&self, name: &str) -> Option<&Value<'a>> {
        self.vars.iter().rev().find(|(n, _)| n == name).map(|(_, v)| v)
    }

    fn is_var(&self, name: &str) -> bool {
        self.lookup(name).is_some()
    }

    fn with<T>(&mut self, vars: Vars<'a, 'v>, run: impl FnOnce(&mut Self) -> T) -> T {
        let mark = self.vars.len();
        self.vars.extend(vars);
        let out = run(self);
        self.vars.truncate(mark);
        out
    }

    pub(crate) fn eval(&mut self, expr: &'v Expr) -> Eval<'a> {
        if let Some(name) = self.unknown_name(expr) {
            return Err(EvalError::new(format!("no such attribute(s): {name}")));
        }
        match &expr.kind {
            Kind::Literal(literal) => Ok(literal_value(literal)),
            Kind::Ident(name) => {
                self.charge(1)?;
                if let Some(value) = self.lookup(name) {
                    return Ok(value.clone());
                }
                functions::type_named(name)
                    .ok_or_else(|| EvalError::new(format!("no such attribute(s): {name}")))
            }
            Kind::Select { operand, field, optional } => self.select(operand, field, *optional),
            Kind::Has { operand, field } => self.has(operand, field),
            Kind::List(items) => self.list(items),
            Kind::Map(entries) => self.map(entries),
            Kind::Macro(call) => self.run_macro(call),
            Kind::Call { target, name, args } => self.call(target.as_deref(), name, args),
        }
    }

    /// The name of an unknown variable: all of `status.phase`, since a variable may have a dotted name.
    fn unknown_name(&self, expr: &Expr) -> Option<String> {
        let (operand, field) = step(expr)?;
        let mut root = operand;
        while let Some((operand, _)) = step(root) {
            root = operand;
        }
        let Kind::Ident(variable) = &root.kind else { return None };
        let known = self.is_var(variable) || functions::type_named(variable).is_some();
        if known || qualified(operand, field).is_some_and(|name| functions::type_named(&name).is_some()) {
            return None;
        }
        Some(format!("{}.{field}", self.unknown_name(operand).unwrap_or_else(|| variable.clone())))
    }

    fn select(&mut self, operand: &'v Expr, field: &'v str, optional: bool) -> Eval<'a> {
        if let Some(name) = qualified(operand, field)
            && let Some(value) = functions::type_named(&name)
        {
            return Ok(value);
        }
        if matches!(&operand.kind, Kind::Ident(name) if name == "variables")
            && let Some((name, why)) = self.failed.iter().find(|(name, _)| name == field)
        {
            return Err(EvalError::new(format!("composited variable {name:?} fails to evaluate: {why}")));
        }
        let base = self.eval(operand)?;
        self.charge(1)?;
        match base {
            Value::Optional(None) => Ok(Value::Optional(None)),
            Value::Optional(Some(inner)) => {
                let found = member(&inner, field)?;
                Ok(Value::Optional(found.map(Box::new)))
            }
            base if optional => Ok(Value::Optional(member(&base, field)?.map(Box::new))),
            base => member(&base, field)?.ok_or_else(|| EvalError::new(format!("no such key: {field}"))),
        }
    }

    fn has(&mut self, operand: &'v Expr, field: &'v str) -> Eval<'a> {
        let base = self.eval(operand)?;
        self.charge(1)?;
        match base {
            Value::Optional(None) => Ok(Value::Bool(false)),
            Value::Optional(Some(inner)) => Ok(Value::Bool(member(&inner, field)?.is_some())),
            base => Ok(Value::Bool(member(&base, field)?.is_some())),
        }
    }

    fn list(&mut self, items: &'v [(Expr, bool)]) -> Eval<'a> {
        self.charge(10)?;
        let mut out = Vec::with_capacity(items.len());
        for (item, optional) in items {
            match (self.eval(item)?, optional) {
                (Value::Optional(inner), true) => out.extend(inner.map(|v| *v)),
                (value, _) => out.push(value),
            }
        }
        Ok(Value::list(out))
    }

    fn map(&mut self, entries: &'v [(Expr, Expr, bool)]) -> Eval<'a> {
        self.charge(30)?;
        let mut out: Vec<(Value<'a>, Value<'a>)> = Vec::with_capacity(entries.len());
        for (key, value, optional) in entries {
            let key = self.eval(key)?;
            let value = match (self.eval(value)?, optional) {
                (Value::Optional(None), true) => continue,
                (Value::Optional(Some(inner)), true) => *inner,
                (value, _) => value,
            };
            if out.iter().any(|(k, _)| k.equals(&key)) {
                return Err(EvalError::new("Failed with repeated key"));
            }
            out.push((key, value));
        }
        Ok(Value::Map(Map::Owned(Arc::new(out))))
    }

    fn call(&mut self, target: Option<&'v Expr>, name: &'v str, args: &'v [Expr]) -> Eval<'a> {
        match (name, args) {
            ("_&&_", [left, right]) => return self.logical(left, right, false),
            ("_||_", [left, right]) => return self.logical(left, right, true),
            ("_?_:_", [condition, yes, no]) => {
                return match self.eval(condition)? {
                    Value::Bool(true) => self.eval(yes),
                    Value::Bool(false) => self.eval(no),
                    _ => Err(EvalError::no_overload()),
                };
            }
            _ => {}
        }
        // `sets.contains(a, b)`: a function in a namespace, unless there is a variable of that name.
        if let Some(Expr { kind: Kind::Ident(space), .. }) = target
            && !self.is_var(space)
            && functions::is_namespace(space)
        {
            let values = args.iter().map(|a| self.eval(a)).collect::<Result<Vec<_>, _>>()?;
            self.charge(1)?;
            return functions::call(self, &format!("{space}.{name}"), &values);
        }
        let mut values = Vec::with_capacity(args.len() + 1);
        if let Some(target) = target {
            values.push(self.eval(target)?);
        }
        // `a.orValue(b)` and `a.or(b)` evaluate b only if a is empty.
        if matches!(name, "orValue" | "or")
            && let [Value::Optional(Some(inner))] = values.as_slice()
        {
            return Ok(if name == "or" { Value::Optional(Some(inner.clone())) } else { (**inner).clone() });
        }
        for arg in args {
            values.push(self.eval(arg)?);
        }
        self.charge(1)?;
        functions::call(self, name, &values)
    }

    /// `&&` and `||`: one side may decide although the other fails.
    fn logical(&mut self, left: &'v Expr, right: &'v Expr, decides: bool) -> Eval<'a> {
        let first = self.eval(left);
        match &first {
            Ok(Value::Bool(b)) if *b == decides => return first,
            Err(EvalError::CostExceeded) => return first,
            _ => {}
        }
        let second = self.eval(right);
        match (&first, &second) {
            (_, Ok(Value::Bool(b))) if *b == decides => second,
            (_, Err(EvalError::CostExceeded)) => second,
            (Ok(Value::Bool(_)), Ok(Value::Bool(_))) => second,
            (Err(_), _) => first,
            (Ok(Value::Bool(_)), Err(_)) => second,
            _ => Err(EvalError::no_overload()),
        }
    }

    /// The values a macro iterates over: keys of a map or items of a list; with two variables also the values
    /// or indexes.
    fn range(&mut self, call: &'v Macro) -> Result<Vec<Vars<'a, 'v>>, EvalError> {
        let range = self.eval(&call.range)?;
        let bind = |name: &'v str, value: Value<'a>| (Cow::Borrowed(name), value);
        let names: Vec<&'v str> = call.vars.iter().map(String::as_str).collect();
        Ok(match (&range, names.as_slice()) {
            (Value::List(list), [item]) => list.iter().map(|v| vec![bind(item, v)]).collect(),
            (Value::List(list), [index, item]) => list
                .iter()
                .enumerate()
                .map(|(i, v)| vec![bind(index, Value::Int(i as i64)), bind(item, v)])
                .collect(),
            (Value::Map(map), [key]) => map.iter().map(|(k, _)| vec![bind(key, k)]).collect(),
            (Value::Map(map), [key, value]) => {
                map.iter().map(|(k, v)| vec![bind(key, k), bind(value, v)]).collect()
            }
            _ => return Err(EvalError::no_overload()),
        })
    }

    fn run_macro(&mut self, call: &'v Macro) -> Eval<'a> {
        if matches!(call.kind, MacroKind::OptMap | MacroKind::OptFlatMap) {
            return self.opt_map(call);
        }
        let range = self.range(call)?;
        match call.kind {
            MacroKind::All => self.quantify(call, range, false),
            MacroKind::Exists => self.quantify(call, range, true),
            MacroKind::ExistsOne => {
                let mut count = 0;
                for vars in range {
                    self.charge(1)?;
                    count += usize::from(self.test(&call.args[0], vars)?);
                }
                Ok(Value::Bool(count == 1))
            }
            MacroKind::Filter => {
                let mut out = Vec::new();
                for vars in range {
                    self.charge(1)?;
                    let item = vars[0].1.clone();
                    if self.test(&call.args[0], vars)? {
                        out.push(item);
                    }
                }
                Ok(Value::list(out))
            }
            MacroKind::Map | MacroKind::TransformList => {
                let mut out = Vec::new();
                for vars in range {
                    if let Some(value) = self.transform(call, vars)? {
                        out.push(value);
                    }
                }
                Ok(Value::list(out))
            }
            MacroKind::TransformMap | MacroKind::TransformMapEntry => self.transform_map(call, range),
            MacroKind::OptMap | MacroKind::OptFlatMap => Err(EvalError::no_overload()),
        }
    }

    /// `all` and `exists`: a decisive item outweighs errors of others.
    fn quantify(&mut self, call: &'v Macro, range: Vec<Vars<'a, 'v>>, decides: bool) -> Eval<'a> {
        let mut error = None;
        for vars in range {
            self.charge(2)?;
            match self.with(vars, |scope| scope.eval(&call.args[0])) {
                Ok(Value::Bool(b)) if b == decides => return Ok(Value::Bool(decides)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => error = error.or(Some(EvalError::no_overload())),
                Err(EvalError::CostExceeded) => return Err(EvalError::CostExceeded),
                Err(e) => error = error.or(Some(e)),
            }
        }
        error.map_or(Ok(Value::Bool(!decides)), Err)
    }

    fn test(&mut self, predicate: &'v Expr, vars: Vars<'a, 'v>) -> Result<bool, EvalError> {
        match self.with(vars, |scope| scope.eval(predicate))? {
            Value::Bool(b) => Ok(b),
            _ => Err(EvalError::no_overload()),
        }
    }

    /// `map(x, t)`, `map(x, p, t)` and their two-variable forms; `None` if the predicate is false.
    fn transform(&mut self, call: &'v Macro, vars: Vars<'a, 'v>) -> Result<Option<Value<'a>>, EvalError> {
        self.charge(1)?;
        let [first, rest @ ..] = call.args.as_slice() else { return Err(EvalError::no_overload()) };
        match rest {
            [] => self.with(vars, |scope| scope.eval(first)).map(Some),
            [then, ..] => {
                if self.test(first, vars.clone())? {
                    self.with(vars, |scope| scope.eval(then)).map(Some)
                } else {
                    Ok(None)
                }
            }
        }
    }

    fn transform_map(&mut self, call: &'v Macro, range: Vec<Vars<'a, 'v>>) -> Eval<'a> {
        let mut out: Vec<(Value<'a>, Value<'a>)> = Vec::new();
        for vars in range {
            let key = vars[0].1.clone();
            let Some(value) = self.transform(call, vars)? else { continue };
            let added: Vec<(Value<'a>, Value<'a>)> = match (call.kind, value) {
                (MacroKind::TransformMap, value) => vec![(key, value)],
                (_, Value::Map(map)) => map.iter().collect(),
                _ => return Err(EvalError::no_overload()),
            };
            for (key, value) in added {
                if out.iter().any(|(k, _)| k.equals(&key)) {
                    return Err(EvalError::new("insert failed: key already exists"));
                }
                out.push((key, value));
            }
        }
        Ok(Value::Map(Map::Owned(Arc::new(out))))
    }

    fn opt_map(&mut self, call: &'v Macro) -> Eval<'a> {
        let Value::Optional(inner) = self.eval(&call.range)? else { return Err(EvalError::no_overload()) };
        let Some(inner) = inner else { return Ok(Value::Optional(None)) };
        let vars = vec![(Cow::Borrowed(call.vars[0].as_str()), *inner)];
        let out = self.with(vars, |scope| scope.eval(&call.args[0]))?;
        match (call.kind, out) {
            (MacroKind::OptMap, value) => Ok(Value::some(value)),
            (_, value @ Value::Optional(_)) => Ok(value),
            _ => Err(EvalError::no_overload()),
        }
    }
}

/// Operand and field of `a.b`, `has(a.b)` and `a["b"]`.
fn step(expr: &Expr) -> Option<(&Expr, &str)> {
    match &expr.kind {
        Kind::Select { operand, field, .. } | Kind::Has { operand, field } => Some((operand, field)),
        Kind::Call { target: None, name, args } if name == "_[_]" || name == "_[?_]" => match args.as_slice()
        {
            [operand, Expr { kind: Kind::Literal(Literal::Text(field)), .. }] => Some((operand, field)),
            _ => None,
        },
        _ => None,
    }
}

/// `a.b` as a dotted name, for qualified types.
pub(crate) fn qualified(operand: &Expr, field: &str) -> Option<String> {
    match &operand.kind {
        Kind::Ident(name) => Some(format!("{name}.{field}")),
        Kind::Select { operand, field: inner, optional: false } => {
            Some(format!("{}.{field}", qualified(operand, inner)?))
        }
        _ => None,
    }
}

fn member<'a>(base: &Value<'a>, field: &str) -> Result<Option<Value<'a>>, EvalError> {
    match base {
        Value::Map(map) => Ok(map.field(field)),
        _ => Err(EvalError::no_overload()),
    }
}

fn literal_value<'a>(literal: &Literal) -> Value<'a> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(b) => Value::Bool(*b),
        Literal::Int(n) => Value::Int(*n),
        Literal::Uint(n) => Value::Uint(*n),
        Literal::Double(n) => Value::Double(*n),
        Literal::Text(text) => Value::text(text.clone()),
        Literal::Bytes(bytes) => Value::Bytes(bytes.clone().into()),
    }
}

/// The items of a list, for functions.
pub(crate) fn items<'a>(list: &List<'a>) -> Vec<Value<'a>> {
    list.iter().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::Expression;

    /// For an unknown variable the whole dotted name is reported.
    #[test]
    fn unknown_variables_are_named() {
        let said = |source: &str| {
            let data = json!({"key": "one"});
            let result = Expression::parse(source).expect(source).eval(&[("data", &data)]);
            result.expect_err(source).to_string()
        };
        for (source, words) in [
            ("status == 1", "no such attribute(s): status"),
            ("status.phase == 'x'", "no such attribute(s): status.phase"),
            ("status.a.b.c == 1", "no such attribute(s): status.a.b.c"),
            ("has(status.phase)", "no such attribute(s): status.phase"),
            ("status['phase'].x == 1", "no such attribute(s): status.phase.x"),
            ("status.list[0].x == 1", "no such attribute(s): status.list"),
            ("data.none == 1", "no such key: none"),
        ] {
            assert_eq!(said(source), words, "{source}");
        }
        assert_eq!(
            Expression::parse("int(1) == 1 && type(1) == int").expect("types").eval(&[]),
            Ok(json!(true))
        );
    }
}
