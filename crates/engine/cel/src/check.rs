//! The type check: what cannot work is refused before it runs.

use crate::ast::{Expr, Kind, Literal, Macro, MacroKind, Position};
use crate::error::{CompileError, Issue};
use crate::functions;
use crate::types::{BOOL, Bindings, INT, TEXT, Type, filled, fits, overloads};

/// Checks an expression against its variables and returns its type.
pub(crate) fn check<'s>(
    expr: &Expr,
    vars: &[(&str, Type<'s>)],
    source: &str,
) -> Result<Type<'s>, CompileError> {
    let mut checker = Checker {
        vars: vars.iter().map(|(n, t)| ((*n).to_owned(), t.clone())).collect(),
        issues: Vec::new(),
    };
    let ty = checker.visit(expr);
    if checker.issues.is_empty() {
        Ok(ty)
    } else {
        Err(CompileError { issues: checker.issues, source: source.to_owned() })
    }
}

/// Whether the expression refers to a free variable.
pub(crate) fn uses(expr: &Expr, name: &str) -> bool {
    match &expr.kind {
        Kind::Literal(_) => false,
        Kind::Ident(found) => found == name,
        Kind::Select { operand, .. } | Kind::Has { operand, .. } => uses(operand, name),
        Kind::Call { target, args, .. } => {
            target.as_deref().is_some_and(|t| uses(t, name)) || args.iter().any(|a| uses(a, name))
        }
        Kind::List(items) => items.iter().any(|(i, _)| uses(i, name)),
        Kind::Map(entries) => entries.iter().any(|(k, v, _)| uses(k, name) || uses(v, name)),
        Kind::Macro(call) => {
            uses(&call.range, name)
                || (!call.vars.iter().any(|v| v == name) && call.args.iter().any(|a| uses(a, name)))
        }
    }
}

struct Checker<'s> {
    vars: Vec<(String, Type<'s>)>,
    issues: Vec<Issue>,
}

impl<'s> Checker<'s> {
    fn complain(&mut self, at: Position, message: String) -> Type<'s> {
        self.issues.push(Issue { message, at });
        Type::Dyn
    }

    fn is_var(&self, name: &str) -> bool {
        self.vars.iter().any(|(n, _)| n == name)
    }

    fn visit(&mut self, expr: &Expr) -> Type<'s> {
        match &expr.kind {
            Kind::Literal(literal) => match literal {
                Literal::Null => Type::Named("null_type"),
                Literal::Bool(_) => BOOL,
                Literal::Int(_) => INT,
                Literal::Uint(_) => Type::Named("uint"),
                Literal::Double(_) => Type::Named("double"),
                Literal::Text(_) => TEXT,
                Literal::Bytes(_) => Type::Named("bytes"),
            },
            Kind::Ident(name) => match self.vars.iter().rev().find(|(n, _)| n == name) {
                Some((_, ty)) => ty.clone(),
                None if functions::type_named(name).is_some() => Type::Named("type"),
                None => self.complain(expr.at, format!("undeclared reference to '{name}' (in container '')")),
            },
            Kind::Select { operand, field, optional } => {
                if let Kind::Ident(space) = &operand.kind
                    && !self.is_var(space)
                    && functions::type_named(&format!("{space}.{field}")).is_some()
                {
                    return Type::Named("type");
                }
                let base = self.visit(operand);
                self.select(expr.at, &base, field, *optional)
            }
            Kind::Has { operand, field } => {
                let base = self.visit(operand);
                self.select(expr.at, &base, field, false);
                BOOL
            }
            Kind::List(items) => {
                let types: Vec<Type<'s>> = items
                    .iter()
                    .map(|(item, optional)| match (self.visit(item), optional) {
                        (Type::Optional(inner), true) => *inner,
                        (ty, _) => ty,
                    })
                    .collect();
                Type::List(Box::new(joined(types)))
            }
            Kind::Map(entries) => {
                let mut keys = Vec::new();
                let mut values = Vec::new();
                for (key, value, optional) in entries {
                    keys.push(self.visit(key));
                    values.push(match (self.visit(value), optional) {
                        (Type::Optional(inner), true) => *inner,
                        (ty, _) => ty,
                    });
                }
                Type::Map(Box::new(joined(keys)), Box::new(joined(values)))
            }
            Kind::Macro(call) => self.run_macro(expr.at, call),
            Kind::Call { target, name, args } => self.call(expr.at, target.as_deref(), name, args),
        }
    }

    fn select(&mut self, at: Position, base: &Type<'s>, field: &str, optional: bool) -> Type<'s> {
        let found = match base {
            Type::Dyn => Type::Dyn,
            Type::Map(_, value) => (**value).clone(),
            Type::Object { .. } => match base.field(field) {
                Some(ty) => ty,
                None => self.complain(at, format!("undefined field '{field}'")),
            },
            Type::Optional(inner) => {
                let inner = self.select(at, inner, field, false);
                return match inner {
                    already @ Type::Optional(_) => already,
                    ty => Type::Optional(Box::new(ty)),
                };
            }
            other => {
                let text = format!("type '{other}' does not support field selection");
                self.complain(at, text)
            }
        };
        if optional { Type::Optional(Box::new(found)) } else { found }
    }

    fn call(&mut self, at: Position, target: Option<&Expr>, name: &str, args: &[Expr]) -> Type<'s> {
        if let Some(Expr { kind: Kind::Ident(space), .. }) = target
            && !self.is_var(space)
        {
            let full = format!("{space}.{name}");
            if overloads(&full).is_some() {
                let types: Vec<Type<'s>> = args.iter().map(|a| self.visit(a)).collect();
                return self.resolve(at, &full, false, &types);
            }
            if full == "math.greatest" || full == "math.least" {
                let types: Vec<Type<'s>> = args.iter().map(|a| self.visit(a)).collect();
                return match types.as_slice() {
                    [Type::List(item)] => (**item).clone(),
                    _ => joined(types),
                };
            }
        }
        let mut types: Vec<Type<'s>> = target.map(|t| self.visit(t)).into_iter().collect();
        types.extend(args.iter().map(|a| self.visit(a)));
        self.resolve(at, name, target.is_some(), &types)
    }

    fn resolve(&mut self, at: Position, name: &str, member: bool, types: &[Type<'s>]) -> Type<'s> {
        let Some(all) = overloads(name).filter(|all| all.iter().any(|o| o.member == member)) else {
            return self.complain(at, format!("undeclared reference to '{name}' (in container '')"));
        };
        let mut result: Option<Type<'s>> = None;
        for overload in all.iter().filter(|o| o.member == member && o.args.len() == types.len()) {
            let mut bound: Bindings<'s> = Bindings::new();
            if !overload.args.iter().zip(types).all(|(wanted, given)| fits(wanted, given, &mut bound)) {
                continue;
            }
            let ty = filled(&overload.result, &bound);
            result = Some(match result {
                None => ty,
                // Several could be meant because an argument is dynamic: so is the result, unless they agree.
                Some(known) => joined(vec![known, ty]),
            });
        }
        result.unwrap_or_else(|| {
            let shown =
                |list: &[Type<'s>]| list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            let applied = match (member, types.split_first()) {
                (true, Some((first, rest))) => format!("{first}.({})", shown(rest)),
                _ => format!("({})", shown(types)),
            };
            self.complain(at, format!("found no matching overload for '{name}' applied to '{applied}'"))
        })
    }

    fn run_macro(&mut self, at: Position, call: &Macro) -> Type<'s> {
        let range = self.visit(&call.range);
        let two = call.vars.len() == 2;
        let bound: Vec<Type<'s>> = match (&range, call.kind) {
            (Type::Optional(inner), MacroKind::OptMap | MacroKind::OptFlatMap) => vec![(**inner).clone()],
            (Type::Dyn, _) => vec![Type::Dyn; call.vars.len()],
            (Type::List(item), _) if two => vec![INT, (**item).clone()],
            (Type::List(item), _) => vec![(**item).clone()],
            (Type::Map(key, value), _) if two => vec![(**key).clone(), (**value).clone()],
            (Type::Map(key, _), _) => vec![(**key).clone()],
            (other, _) => {
                let text = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.complain(call.range.at, text);
                vec![Type::Dyn; call.vars.len()]
            }
        };
        let mark = self.vars.len();
        self.vars.extend(call.vars.iter().cloned().zip(bound.iter().cloned()));
        let types: Vec<Type<'s>> = call.args.iter().map(|a| self.visit(a)).collect();
        self.vars.truncate(mark);
        let predicate = match call.kind {
            MacroKind::All | MacroKind::Exists | MacroKind::ExistsOne | MacroKind::Filter => types.first(),
            MacroKind::Map
            | MacroKind::TransformList
            | MacroKind::TransformMap
            | MacroKind::TransformMapEntry
                if types.len() > 1 =>
            {
                types.first()
            }
            _ => None,
        };
        if let Some(ty) = predicate.filter(|ty| !matches!(ty, Type::Dyn | Type::Named("bool"))) {
            let place = call.args.first().map_or(at, |a| a.at);
            let text = format!(
                "found no matching overload for '{}' applied to '(bool, {ty})'",
                if call.kind == MacroKind::Exists { "_||_" } else { "_&&_" }
            );
            self.complain(place, text);
        }
        let last = types.last().cloned().unwrap_or(Type::Dyn);
        match call.kind {
            MacroKind::All | MacroKind::Exists | MacroKind::ExistsOne => BOOL,
            MacroKind::Filter => Type::List(Box::new(bound.first().cloned().unwrap_or(Type::Dyn))),
            MacroKind::SortBy => range,
            MacroKind::Map | MacroKind::TransformList => Type::List(Box::new(last)),
            MacroKind::TransformMap => {
                Type::Map(Box::new(bound.first().cloned().unwrap_or(Type::Dyn)), Box::new(last))
            }
            MacroKind::TransformMapEntry | MacroKind::OptFlatMap => last,
            MacroKind::OptMap => Type::Optional(Box::new(last)),
        }
    }
}

/// One type for several expressions: theirs if they agree, else dynamic.
fn joined<'s>(types: Vec<Type<'s>>) -> Type<'s> {
    let mut types = types.into_iter();
    let Some(first) = types.next() else { return Type::Dyn };
    let agree = types.all(|other| {
        !matches!(other, Type::Dyn)
            && fits(&first, &other, &mut Bindings::new())
            && fits(&other, &first, &mut Bindings::new())
    });
    if agree { first } else { Type::Dyn }
}
