//! Recursive descent parser.

use crate::ast::{Expr, Kind, Literal, Macro, MacroKind, Position};
use crate::error::{CompileError, Issue};
use crate::identifier_escaping::RESERVED;
use crate::lexer::{Token, tokens};

/// Maximum nesting of an expression, well within the stack.
const MAX_DEPTH: usize = 100;
const MAX_SOURCE: usize = 100_000;

/// Tokens that start an expression besides brackets, in the order of cel-go's parser.
const BEGINNINGS: &str =
    "'.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER";

pub(crate) fn parse(source: &str) -> Result<Expr, CompileError> {
    let fail = |issue: Issue| CompileError { issues: vec![issue], source: source.to_owned() };
    if source.chars().count() > MAX_SOURCE {
        return Err(fail(Issue {
            message: format!(
                "expression code point size exceeds limit: size: {}, limit {MAX_SOURCE}",
                source.chars().count()
            ),
            at: 0,
        }));
    }
    let (tokens, mut issues) = tokens(source).map_err(fail)?;
    let mut parser = Parser { tokens, next: 0, depth: 0 };
    match parser.expr().and_then(|e| parser.end().map(|()| e)) {
        Ok(expr) if issues.is_empty() => return Ok(expr),
        Ok(_) => {}
        Err(issue) => issues.push(issue),
    }
    issues.sort_by_key(|issue| issue.at);
    Err(CompileError { issues, source: source.to_owned() })
}

struct Parser {
    tokens: Vec<(Token, Position)>,
    next: usize,
    depth: usize,
}

type Parsed = Result<Expr, Issue>;

fn call(at: Position, name: &str, args: Vec<Expr>) -> Expr {
    Expr { at, kind: Kind::Call { target: None, name: name.to_owned(), args } }
}

impl Parser {
    fn peek(&self) -> &Token {
        &self.tokens[self.next].0
    }

    fn at(&self) -> Position {
        self.tokens[self.next].1
    }

    fn accept(&mut self, wanted: &[&'static str]) -> Option<(&'static str, Position)> {
        let Token::Sign(sign) = self.peek() else { return None };
        let found = wanted.iter().find(|w| *w == sign)?;
        let at = self.at();
        self.next += 1;
        Some((found, at))
    }

    fn expect(&mut self, sign: &'static str) -> Result<Position, Issue> {
        match self.accept(&[sign]) {
            Some((_, at)) => Ok(at),
            None => Err(self.unexpected(&format!("'{sign}'"))),
        }
    }

    fn end(&self) -> Result<(), Issue> {
        match self.peek() {
            Token::End => Ok(()),
            _ => {
                Err(self
                    .extra_token("<EOF>", matches!(self.tokens.get(self.next + 1), Some((Token::End, _)))))
            }
        }
    }

    /// An extra token: "extraneous" if it could be left out, otherwise "mismatched".
    fn extra_token(&self, wanted: &str, alone: bool) -> Issue {
        if !alone {
            return self.unexpected(wanted);
        }
        Issue {
            message: format!("Syntax error: extraneous input '{}' expecting {wanted}", self.shown()),
            at: self.at(),
        }
    }

    /// Error of an unclosed bracket.
    fn unclosed(&self, close: &str) -> Issue {
        match self.peek() {
            Token::End => {
                Issue { message: format!("Syntax error: missing '{close}' at '<EOF>'"), at: self.at() }
            }
            _ => self.unexpected(&format!("'{close}'")),
        }
    }

    /// Error of a dot without a name.
    fn missing_name(&self) -> Issue {
        let read = match self.peek() {
            Token::End => ".".to_owned(),
            _ => format!(".{}", self.shown()),
        };
        Issue { message: format!("Syntax error: no viable alternative at input '{read}'"), at: self.at() }
    }

    /// Error of a missing separator between items or after the last one.
    fn missing_separator(&self, close: &str) -> Issue {
        self.unexpected(&format!("{{'{close}', ','}}"))
    }

    fn shown(&self) -> String {
        match self.peek() {
            Token::Ident(name) => name.clone(),
            Token::Sign(sign) => (*sign).to_owned(),
            Token::End => "<EOF>".to_owned(),
            Token::Literal(literal) => match literal {
                Literal::Null => "null".to_owned(),
                Literal::Bool(b) => b.to_string(),
                Literal::Int(n) => n.to_string(),
                Literal::Uint(n) => format!("{n}u"),
                Literal::Double(n) => n.to_string(),
                Literal::Text(text) => format!("'{text}'"),
                Literal::Bytes(_) => "b'…'".to_owned(),
            },
        }
    }

    fn unexpected(&self, wanted: &str) -> Issue {
        Issue {
            message: format!("Syntax error: mismatched input '{}' expecting {wanted}", self.shown()),
            at: self.at(),
        }
    }

    fn expr(&mut self) -> Parsed {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Issue {
                message: format!("expression recursion limit exceeded: {MAX_DEPTH}"),
                at: self.at(),
            });
        }
        let condition = self.or()?;
        let result = match self.accept(&["?"]) {
            None => Ok(condition),
            Some((_, at)) => {
                let yes = self.or()?;
                self.expect(":")?;
                let no = self.expr()?;
                Ok(call(at, "_?_:_", vec![condition, yes, no]))
            }
        };
        self.depth -= 1;
        result
    }

    fn or(&mut self) -> Parsed {
        let mut left = self.and()?;
        while let Some((_, at)) = self.accept(&["||"]) {
            let right = self.and()?;
            left = call(at, "_||_", vec![left, right]);
        }
        Ok(left)
    }

    fn and(&mut self) -> Parsed {
        let mut left = self.relation()?;
        while let Some((_, at)) = self.accept(&["&&"]) {
            let right = self.relation()?;
            left = call(at, "_&&_", vec![left, right]);
        }
        Ok(left)
    }

    fn relation(&mut self) -> Parsed {
        let mut left = self.sum()?;
        while let Some((sign, at)) = self.accept(&["==", "!=", "<=", ">=", "<", ">", "in"]) {
            let right = self.sum()?;
            let name = if sign == "in" { "@in".to_owned() } else { format!("_{sign}_") };
            left = call(at, &name, vec![left, right]);
        }
        Ok(left)
    }

    fn sum(&mut self) -> Parsed {
        let mut left = self.product()?;
        while let Some((sign, at)) = self.accept(&["+", "-"]) {
            let right = self.product()?;
            left = call(at, &format!("_{sign}_"), vec![left, right]);
        }
        Ok(left)
    }

    fn product(&mut self) -> Parsed {
        let mut left = self.unary()?;
        while let Some((sign, at)) = self.accept(&["*", "/", "%"]) {
            let right = self.unary()?;
            left = call(at, &format!("_{sign}_"), vec![left, right]);
        }
        Ok(left)
    }

    fn unary(&mut self) -> Parsed {
        let mut signs = Vec::new();
        while let Some((sign, at)) = self.accept(&["!", "-"]) {
            // A negative number is a literal, so that the smallest int can be written.
            if sign == "-"
                && let Token::Literal(Literal::Int(_) | Literal::Double(_)) = self.peek()
            {
                let literal = match self.peek().clone() {
                    Token::Literal(Literal::Int(n)) => Literal::Int(n.wrapping_neg()),
                    Token::Literal(Literal::Double(n)) => Literal::Double(-n),
                    _ => return Err(self.unexpected("a number")),
                };
                self.next += 1;
                let operand = self.postfix(Expr { at, kind: Kind::Literal(literal) })?;
                return Ok(wrap(signs, operand));
            }
            signs.push((sign, at));
            if signs.len() > MAX_DEPTH {
                return Err(Issue {
                    message: format!("expression recursion limit exceeded: {MAX_DEPTH}"),
                    at,
                });
            }
        }
        if let (Token::Literal(Literal::Int(i64::MIN)), at) = &self.tokens[self.next] {
            return Err(Issue { message: "invalid int literal".to_owned(), at: *at });
        }
        let primary = self.primary()?;
        let operand = self.postfix(primary)?;
        Ok(wrap(signs, operand))
    }

    fn postfix(&mut self, mut operand: Expr) -> Parsed {
        let mut steps = 0;
        while let Some((sign, at)) = self.accept(&[".", ".?", "[", "[?"]) {
            steps += 1;
            if steps > 5_000 {
                return Err(Issue { message: "expression recursion limit exceeded".to_owned(), at });
            }
            if sign.starts_with('[') {
                if !self.begins() {
                    let (open, rest) = BEGINNINGS.split_at("'.', '-', '!', ".len());
                    return Err(self.unexpected(&format!("{{'[', '{{', '(', {open}'?', {rest}}}")));
                }
                let index = self.expr()?;
                self.expect("]")?;
                operand = call(at, if sign == "[?" { "_[?_]" } else { "_[_]" }, vec![operand, index]);
                continue;
            }
            let Token::Ident(field) = self.peek().clone() else { return Err(self.missing_name()) };
            self.next += 1;
            operand = match self.accept(&["("]) {
                Some((_, open)) if sign == "." => {
                    let args = self.arguments(")")?;
                    method(operand, field, args, open)?
                }
                Some((_, open)) => {
                    return Err(Issue {
                        message: "Syntax error: unsupported optional call".to_owned(),
                        at: open,
                    });
                }
                None => Expr {
                    at,
                    kind: Kind::Select { operand: Box::new(operand), field, optional: sign == ".?" },
                },
            };
        }
        Ok(operand)
    }

    fn arguments(&mut self, close: &'static str) -> Result<Vec<Expr>, Issue> {
        let mut args = Vec::new();
        if self.accept(&[close]).is_some() {
            return Ok(args);
        }
        if !self.begins() {
            // Directly after the bracket the list may also be empty.
            return Err(self.unexpected(&format!("{{'[', '{{', '(', '{close}', {BEGINNINGS}}}")));
        }
        loop {
            args.push(self.expr()?);
            if self.accept(&[","]).is_none() {
                if self.accept(&[close]).is_none() {
                    return Err(self.missing_separator(close));
                }
                return Ok(args);
            }
        }
    }

    /// Whether an expression can start here.
    fn begins(&self) -> bool {
        match self.peek() {
            Token::Literal(_) | Token::Ident(_) => true,
            Token::Sign(sign) => matches!(*sign, "." | "(" | "[" | "[?" | "{" | "{?" | "!" | "-"),
            Token::End => false,
        }
    }

    fn primary(&mut self) -> Parsed {
        let at = self.at();
        match self.peek().clone() {
            Token::Literal(literal) => {
                self.next += 1;
                Ok(Expr { at, kind: Kind::Literal(literal) })
            }
            Token::Ident(name) => {
                self.next += 1;
                self.name(name, at)
            }
            Token::Sign(".") => {
                self.next += 1;
                let Token::Ident(name) = self.peek().clone() else {
                    return Err(self.unexpected("IDENTIFIER"));
                };
                self.next += 1;
                self.name(name, at)
            }
            Token::Sign("(") => {
                self.next += 1;
                let inner = self.expr()?;
                if self.accept(&[")"]).is_none() {
                    return Err(self.unclosed(")"));
                }
                Ok(inner)
            }
            Token::Sign(sign @ ("[" | "[?")) => {
                self.next += 1;
                self.list(at, sign == "[?")
            }
            Token::Sign(sign @ ("{" | "{?")) => {
                self.next += 1;
                self.map(at, sign == "{?")
            }
            _ => {
                let begins = |token: Option<&(Token, Position)>| {
                    token.is_some_and(|(t, _)| matches!(t, Token::Literal(_) | Token::Ident(_)))
                };
                let alone = begins(self.tokens.get(self.next + 1));
                Err(self.extra_token(&format!("{{'[', '{{', '(', {BEGINNINGS}}}"), alone))
            }
        }
    }

    fn name(&mut self, name: String, at: Position) -> Parsed {
        if RESERVED.contains(&name.as_str()) {
            return Err(Issue { message: format!("reserved identifier: {name}"), at });
        }
        match self.accept(&["("]) {
            None => Ok(Expr { at, kind: Kind::Ident(name) }),
            Some((_, open)) => {
                let mut args = self.arguments(")")?;
                if name == "has" && args.len() == 1 {
                    let argument = args.remove(0);
                    let at = argument.at;
                    return match argument.kind {
                        Kind::Select { operand, field, optional: false } => {
                            Ok(Expr { at: open, kind: Kind::Has { operand, field } })
                        }
                        _ => Err(Issue { message: "invalid argument to has() macro".to_owned(), at }),
                    };
                }
                Ok(Expr { at: open, kind: Kind::Call { target: None, name, args } })
            }
        }
    }

    fn list(&mut self, at: Position, mut optional: bool) -> Parsed {
        let mut items = Vec::new();
        loop {
            if !optional && self.accept(&["]"]).is_some() {
                break;
            }
            optional |= self.accept(&["?"]).is_some();
            items.push((self.expr()?, optional));
            optional = false;
            if self.accept(&[","]).is_none() {
                if self.accept(&["]"]).is_none() {
                    return Err(self.missing_separator("]"));
                }
                break;
            }
        }
        Ok(Expr { at, kind: Kind::List(items) })
    }

    fn map(&mut self, at: Position, mut optional: bool) -> Parsed {
        let mut entries = Vec::new();
        loop {
            if !optional && self.accept(&["}"]).is_some() {
                break;
            }
            optional |= self.accept(&["?"]).is_some();
            let key = self.expr()?;
            self.expect(":")?;
            entries.push((key, self.expr()?, optional));
            optional = false;
            if self.accept(&[","]).is_none() {
                if self.accept(&["}"]).is_none() {
                    return Err(self.missing_separator("}"));
                }
                break;
            }
        }
        Ok(Expr { at, kind: Kind::Map(entries) })
    }
}

fn wrap(signs: Vec<(&'static str, Position)>, operand: Expr) -> Expr {
    signs.into_iter().rev().fold(operand, |inner, (sign, at)| call(at, &format!("{sign}_"), vec![inner]))
}

/// A method call, or the macro of that name.
fn method(target: Expr, name: String, args: Vec<Expr>, at: Position) -> Parsed {
    let kind = match (name.as_str(), args.len()) {
        ("all", 2 | 3) => MacroKind::All,
        ("exists", 2 | 3) => MacroKind::Exists,
        ("exists_one" | "existsOne", 2 | 3) => MacroKind::ExistsOne,
        ("map", 2 | 3) => MacroKind::Map,
        ("filter", 2) => MacroKind::Filter,
        ("transformList", 3 | 4) => MacroKind::TransformList,
        ("transformMap", 3 | 4) => MacroKind::TransformMap,
        ("transformMapEntry", 3 | 4) => MacroKind::TransformMapEntry,
        ("optMap", 2) => MacroKind::OptMap,
        ("optFlatMap", 2) => MacroKind::OptFlatMap,
        _ => return Ok(Expr { at, kind: Kind::Call { target: Some(Box::new(target)), name, args } }),
    };
    let two = match kind {
        MacroKind::All | MacroKind::Exists | MacroKind::ExistsOne => args.len() == 3,
        MacroKind::TransformList | MacroKind::TransformMap | MacroKind::TransformMapEntry => true,
        _ => false,
    };
    let mut args = args.into_iter();
    let mut vars = Vec::new();
    for arg in args.by_ref().take(if two { 2 } else { 1 }) {
        match arg.kind {
            Kind::Ident(name) => vars.push(name),
            _ => return Err(Issue { message: "argument must be a simple name".to_owned(), at: arg.at }),
        }
    }
    Ok(Expr { at, kind: Kind::Macro(Box::new(Macro { kind, range: target, vars, args: args.collect() })) })
}
