//! Validation of literals: invalid durations, times and patterns are compilation errors.

use crate::ast::{Expr, Kind, Literal};
use crate::error::Issue;
use crate::functions::{is_pattern, pattern_error, time};

/// A function whose first argument is validated, and the validation.
type Checked = (&'static str, fn(&str) -> bool);

const CHECKED: [Checked; 3] = [
    ("duration", |text| time::parse_go_duration(text).is_some()),
    ("timestamp", |text| time::parse_timestamp(text).is_some()),
    ("matches", is_pattern),
];

/// Issues of the literals of an expression.
pub(crate) fn check(expr: &Expr) -> Vec<Issue> {
    let mut found = Vec::new();
    visit(expr, &mut found);
    found
}

/// Error of the first invalid pattern of `find` or `findAll`, which Kubernetes reports only when it plans the
/// checked expression.
pub(crate) fn invalid_find_pattern(expr: &Expr) -> Option<String> {
    fn first<'e>(mut items: impl Iterator<Item = &'e Expr>) -> Option<String> {
        items.find_map(invalid_find_pattern)
    }
    match &expr.kind {
        Kind::Literal(_) | Kind::Ident(_) => None,
        Kind::Select { operand, .. } | Kind::Has { operand, .. } => invalid_find_pattern(operand),
        Kind::Call { target, name, args } => {
            let pattern = match args.first().map(|arg| &arg.kind) {
                Some(Kind::Literal(Literal::Text(text))) if matches!(name.as_str(), "find" | "findAll") => {
                    pattern_error(text)
                }
                _ => None,
            };
            pattern.or_else(|| first(target.as_deref().into_iter().chain(args)))
        }
        Kind::List(items) => first(items.iter().map(|(item, _)| item)),
        Kind::Map(entries) => first(entries.iter().flat_map(|(key, value, _)| [key, value])),
        Kind::Macro(call) => first(std::iter::once(&call.range).chain(&call.args)),
    }
}

fn visit(expr: &Expr, found: &mut Vec<Issue>) {
    match &expr.kind {
        Kind::Literal(_) | Kind::Ident(_) => {}
        Kind::Select { operand, .. } | Kind::Has { operand, .. } => visit(operand, found),
        Kind::Call { target, name, args } => {
            if let Some((_, reads)) = CHECKED.iter().find(|(checked, _)| checked == name)
                && let Some(Expr { at, kind: Kind::Literal(literal) }) = args.first()
            {
                let fine = match literal {
                    Literal::Text(text) => reads(text),
                    // A number has no unit.
                    _ => name != "duration",
                };
                if !fine {
                    found.push(Issue { message: format!("invalid {name} argument"), at: *at });
                }
            }
            target.iter().for_each(|target| visit(target, found));
            args.iter().for_each(|arg| visit(arg, found));
        }
        Kind::List(items) => items.iter().for_each(|(item, _)| visit(item, found)),
        Kind::Map(entries) => entries.iter().for_each(|(key, value, _)| {
            visit(key, found);
            visit(value, found);
        }),
        Kind::Macro(call) => {
            visit(&call.range, found);
            call.args.iter().for_each(|arg| visit(arg, found));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Expression;

    #[test]
    fn invalid_literals_are_rejected() {
        for (source, at) in [
            ("self.matches('(')", 13),
            ("duration('abc') > duration('1s')", 9),
            ("self == timestamp('yesterday')", 18),
        ] {
            let error = Expression::compile(source, &["self"]).expect_err(source);
            assert_eq!(error.issues.iter().map(|i| i.at).collect::<Vec<_>>(), [at], "{source}");
            assert!(error.issues[0].message.starts_with("invalid "), "{source}");
        }
        assert!(Expression::compile("self.matches('[a-z]+') && self.matches(self)", &["self"]).is_ok());
    }
}
