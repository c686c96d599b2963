//! Type checker: rejects expressions that cannot succeed.

use crate::ast::{Expr, Kind, Literal, Macro, MacroKind, Position};
use crate::error::{CompileError, Issue};
use crate::functions;
use crate::types::{BOOL, Bindings, ERROR, INT, TEXT, Type, fits, overloads, substitute};

/// Checks an expression against its variables and returns its type.
pub(crate) fn check<'s>(
    expr: &Expr,
    vars: &[(&str, Type<'s>)],
    source: &str,
) -> Result<Type<'s>, CompileError> {
    let mut checker = Checker {
        vars: vars.iter().map(|(n, t)| ((*n).to_owned(), t.clone())).collect(),
        issues: Vec::new(),
        mixed: Vec::new(),
        formatting: 0,
        typed: !vars.iter().any(|(_, ty)| matches!(ty, Type::Dyn)),
    };
    let ty = checker.visit(expr);
    let mut issues = checker.issues;
    if issues.is_empty() {
        issues = crate::literals::check(expr);
        issues.append(&mut checker.mixed);
    }
    if issues.is_empty() {
        return Ok(ty);
    }
    issues.sort_by_key(|issue| issue.at);
    Err(CompileError { issues, source: source.to_owned() })
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
    /// Literals with items of several types; reported only if there are no other issues.
    mixed: Vec<Issue>,
    /// Depth of enclosing calls of `format`, whose arguments may have any types.
    formatting: usize,
    /// Whether variables have types; if not, items of literals may have any type.
    typed: bool,
}

impl<'s> Checker<'s> {
    fn report(&mut self, at: Position, message: String) -> Type<'s> {
        self.issues.push(Issue { message, at });
        ERROR
    }

    /// Reports a value that should be a boolean.
    fn expect_bool(&mut self, at: Position, ty: &Type<'s>) {
        if !ty.is_dynamic() && !matches!(ty, Type::Named("bool")) {
            self.report(at, format!("expected type 'bool' but found '{}'", ty.shown()));
        }
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
                None => self.report(expr.at, format!("undeclared reference to '{name}' (in container '')")),
            },
            Kind::Select { operand, field, optional } => {
                if let Some(name) = crate::eval::qualified(operand, field)
                    && !self.is_var(name.split('.').next().unwrap_or_default())
                    && functions::type_named(&name).is_some()
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
                self.check_item_types(types.iter().zip(items.iter().map(|(item, _)| item.at)));
                Type::List(Box::new(common_type(types)))
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
                self.check_item_types(keys.iter().zip(entries.iter().map(|(key, _, _)| key.at)));
                self.check_item_types(values.iter().zip(entries.iter().map(|(_, value, _)| value.at)));
                Type::Map(Box::new(common_type(keys)), Box::new(common_type(values)))
            }
            Kind::Macro(call) => self.run_macro(expr.at, call),
            Kind::Call { target, name, args } => self.call(expr.at, target.as_deref(), name, args),
        }
    }

    /// Checks that the items of one literal have one type.
    fn check_item_types<'t>(&mut self, items: impl Iterator<Item = (&'t Type<'s>, Position)>)
    where
        's: 't,
    {
        let mut first = None;
        for (ty, at) in items {
            let expected = *first.get_or_insert(ty);
            let either_is_dynamic = expected.is_dynamic() || ty.is_dynamic();
            if self.formatting == 0 && !expected.is_same(ty) && (self.typed || !either_is_dynamic) {
                let message = format!("expected type '{}' but found '{}'", expected.shown(), ty.shown());
                self.mixed.push(Issue { message, at });
                return;
            }
        }
    }

    fn select(&mut self, at: Position, base: &Type<'s>, field: &str, optional: bool) -> Type<'s> {
        let found = match base {
            open if open.is_dynamic() => open.clone(),
            Type::Map(_, value) => (**value).clone(),
            Type::Object { .. } | Type::Record(_) => match base.field(field) {
                Some(ty) => ty,
                None => self.report(at, format!("undefined field '{field}'")),
            },
            Type::Optional(inner) => {
                let inner = self.select(at, inner, field, false);
                return match inner {
                    already @ Type::Optional(_) => already,
                    ty => Type::Optional(Box::new(ty)),
                };
            }
            other => {
                let text = format!("type '{}' does not support field selection", other.shown());
                self.report(at, text)
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
        }
        let formats = usize::from(name == "format");
        self.formatting += formats;
        let mut types: Vec<Type<'s>> = target.map(|t| self.visit(t)).into_iter().collect();
        types.extend(args.iter().map(|a| self.visit(a)));
        self.formatting -= formats;
        if let ("_&&_" | "_||_", [left, right]) = (name, args) {
            let (first, second) = (types[0].clone(), types[1].clone());
            self.expect_bool(left.at, &first);
            self.expect_bool(right.at, &second);
            return BOOL;
        }
        if let (
            "format",
            Some(Expr { kind: Kind::Literal(Literal::Text(text)), .. }),
            [Expr { kind: Kind::List(items), .. }],
        ) = (name, target, args)
        {
            self.check_clauses(at, text, items);
        }
        self.resolve(at, name, target.is_some(), &types)
    }

    /// Checks the clauses of `format` against its arguments; reported only if there are no other issues.
    fn check_clauses(&mut self, at: Position, text: &str, items: &[(Expr, bool)]) {
        let known = (self.issues.len(), self.mixed.len());
        let types: Vec<Type<'s>> = items.iter().map(|(item, _)| self.visit(item)).collect();
        // Issues of the items themselves were reported already.
        self.issues.truncate(known.0);
        self.mixed.truncate(known.1);
        let names: Vec<Option<&str>> = types
            .iter()
            .map(|ty| match ty {
                Type::Named("!error!") => None,
                Type::Named(name) => Some(*name),
                Type::List(_) => Some("list"),
                Type::Map(..) => Some("map"),
                _ => None,
            })
            .collect();
        if let Some(fault) = crate::format_check::check(text, &names) {
            let at = fault.argument.map_or(at, |index| items[index].0.at);
            self.mixed.push(Issue { message: fault.message, at });
        }
    }

    fn resolve(&mut self, at: Position, name: &str, member: bool, types: &[Type<'s>]) -> Type<'s> {
        // The library of validation rules is older than that of free expressions.
        let hidden = self.typed && name == "reverse";
        // A known name is known as function and as method, so the arguments do not match.
        let Some(all) = overloads(name).filter(|_| !hidden) else {
            return self.report(at, format!("undeclared reference to '{name}' (in container '')"));
        };
        let mut result: Option<Type<'s>> = None;
        for overload in all.iter().filter(|o| o.member == member && o.args.len() == types.len()) {
            let mut bound: Bindings<'s> = Bindings::new();
            if !overload.args.iter().zip(types).all(|(wanted, given)| fits(wanted, given, &mut bound)) {
                continue;
            }
            let ty = substitute(&overload.result, &bound);
            result = Some(match result {
                None => ty,
                // Several overloads match a dynamic argument: the result is dynamic unless they agree.
                Some(known) => common_type(vec![known, ty]),
            });
        }
        result.unwrap_or_else(|| {
            let shown = |list: &[Type<'s>]| list.iter().map(Type::shown).collect::<Vec<_>>().join(", ");
            let applied = match (member, types.split_first()) {
                (true, Some((first, rest))) => format!("{}.({})", first.shown(), shown(rest)),
                _ => format!("({})", shown(types)),
            };
            self.report(at, format!("found no matching overload for '{name}' applied to '{applied}'"))
        })
    }

    fn run_macro(&mut self, at: Position, call: &Macro) -> Type<'s> {
        let range = self.visit(&call.range);
        let two = call.vars.len() == 2;
        let bound: Vec<Type<'s>> = match (&range, call.kind) {
            (Type::Optional(inner), MacroKind::OptMap | MacroKind::OptFlatMap) => vec![(**inner).clone()],
            (open, _) if open.is_dynamic() => vec![Type::Dyn; call.vars.len()],
            (Type::List(item), _) if two => vec![INT, (**item).clone()],
            (Type::List(item), _) => vec![(**item).clone()],
            (Type::Map(key, value), _) if two => vec![(**key).clone(), (**value).clone()],
            (Type::Map(key, _), _) => vec![(**key).clone()],
            (other, _) => {
                let text = format!(
                    "expression of type '{}' cannot be range of a comprehension (must be list, map, or dynamic)",
                    other.shown()
                );
                self.report(call.range.at, text);
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
        if let Some(ty) = predicate.filter(|ty| !ty.is_dynamic() && !matches!(ty, Type::Named("bool"))) {
            let place = call.args.first().map_or(at, |a| a.at);
            match call.kind {
                MacroKind::All | MacroKind::Exists => self.expect_bool(place, ty),
                // The other macros are conditions on the current item.
                kind => {
                    let gathered = match kind {
                        MacroKind::ExistsOne => INT.shown(),
                        MacroKind::Filter => list_of(bound.first()),
                        _ => list_of(types.last()),
                    };
                    let shown = ty.shown();
                    let applied = format!("({shown}, {gathered}, {gathered})");
                    self.report(at, format!("found no matching overload for '_?_:_' applied to '{applied}'"));
                }
            }
        }
        let last = types.last().cloned().unwrap_or(Type::Dyn);
        match call.kind {
            MacroKind::All | MacroKind::Exists | MacroKind::ExistsOne => BOOL,
            MacroKind::Filter => Type::List(Box::new(bound.first().cloned().unwrap_or(Type::Dyn))),
            MacroKind::Map | MacroKind::TransformList => Type::List(Box::new(last)),
            MacroKind::TransformMap => {
                Type::Map(Box::new(bound.first().cloned().unwrap_or(Type::Dyn)), Box::new(last))
            }
            MacroKind::TransformMapEntry | MacroKind::OptFlatMap => last,
            MacroKind::OptMap => Type::Optional(Box::new(last)),
        }
    }
}

/// Formats the type of a list.
fn list_of(item: Option<&Type<'_>>) -> String {
    format!("list({})", item.map_or_else(|| Type::Dyn.to_string(), Type::shown))
}

/// The common type of several expressions; dynamic if they differ.
fn common_type<'s>(types: Vec<Type<'s>>) -> Type<'s> {
    let mut types = types.into_iter();
    let Some(first) = types.next() else { return Type::Dyn };
    let agree = types.all(|other| {
        !other.is_dynamic()
            && fits(&first, &other, &mut Bindings::new())
            && fits(&other, &first, &mut Bindings::new())
    });
    if agree { first } else { Type::Dyn }
}
