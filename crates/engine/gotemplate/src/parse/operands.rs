//! Operands: constants, fields, variables, functions, and pipelines in parentheses.

use std::sync::Arc;

use super::lex::Tok;
use super::node::{self, Callee, Operand, OperandKind};
use super::{MAX_PARENS, Parse, Parser, number};
use crate::func::Functions;
use crate::strconv::unquote;
use crate::value::Str;

impl Parser<'_> {
    pub(super) fn operand(&mut self) -> Parse<Option<Operand>> {
        let Some(node) = self.term()? else { return Ok(None) };
        let next = self.peek();
        if next.tok != Tok::Field {
            return Ok(Some(node));
        }
        let fields = self.chain(next.start, next.start);
        use OperandKind as K;
        let kind = match node.kind {
            K::Bool(_) | K::String(..) | K::Number(_) | K::Nil | K::Dot => {
                let mut shown = Vec::new();
                node::print_operand(&mut shown, &node, &self.tree);
                return self.error(format!("unexpected . after term {}", crate::fmt::quoted(&shown)));
            }
            _ => K::Chain(Box::new((node, fields))),
        };
        Ok(Some(Operand { pos: next.start, kind }))
    }

    /// Takes the fields that follow without a blank what stands at `start..end`; all names from `start` on.
    fn chain(&mut self, start: u32, mut end: u32) -> Arc<[Str]> {
        while self.peek().tok == Tok::Field {
            end = self.next().end;
        }
        self.work.names.chain(&self.text[start as usize..end as usize])
    }

    fn term(&mut self) -> Parse<Option<Operand>> {
        let item = self.next_non_space();
        let mut pos = item.start;
        let kind = match item.tok {
            Tok::Identifier => {
                let name = item.text(self.text);
                let functions = self.functions;
                match self.work.names.word(name, |name| callee(functions, name)) {
                    Some(word) => OperandKind::Identifier(word),
                    None => return self.error(format!("function {} not defined", crate::fmt::quoted(name))),
                }
            }
            Tok::Dot => OperandKind::Dot,
            Tok::Nil => OperandKind::Nil,
            Tok::Variable => {
                let name = item.text(self.text);
                if !self.frame.vars.iter().any(|known| known.as_bytes() == name) {
                    return self.error(format!("undefined variable {}", crate::fmt::quoted(name)));
                }
                // With fields behind it a variable or field is said to be where the second name begins, as Go says it.
                if self.peek().tok == Tok::Field {
                    pos = self.peek().start;
                }
                OperandKind::Variable(self.chain(item.start, item.end))
            }
            Tok::Field => {
                let fields = self.chain(item.start, item.end);
                if fields.len() > 1 {
                    pos = item.end;
                }
                OperandKind::Field(fields)
            }
            Tok::Bool => OperandKind::Bool(item.text(self.text) == b"true"),
            Tok::CharConstant | Tok::Complex | Tok::Number => {
                match number::parse_number(item.text(self.text), item.tok) {
                    Ok(number) => OperandKind::Number(Box::new(number)),
                    Err(message) => return self.error(message),
                }
            }
            Tok::LeftParen => {
                if self.frame.paren_depth >= MAX_PARENS {
                    return self.error("max expression depth exceeded");
                }
                self.frame.paren_depth += 1;
                let pipe = self.pipeline("parenthesized pipeline", Tok::RightParen)?;
                self.frame.paren_depth -= 1;
                return Ok(Some(Operand { pos: pipe.pos, kind: OperandKind::Pipe(Box::new(pipe)) }));
            }
            Tok::String | Tok::RawString => match unquote(item.text(self.text)) {
                Some(text) => OperandKind::String(self.work.names.share(&text), item.end),
                None => return self.error("invalid syntax"),
            },
            _ => {
                self.backup();
                return Ok(None);
            }
        };
        Ok(Some(Operand { pos, kind }))
    }
}

fn callee(functions: &Functions, name: &str) -> Option<Callee> {
    if let Some(function) = functions.get(name) {
        return Some(Callee::Native(function));
    }
    match name {
        "and" => Some(Callee::And),
        "or" => Some(Callee::Or),
        "call" => Some(Callee::Call),
        "len" => Some(Callee::Len),
        _ => crate::builtins::find(name).map(Callee::Native),
    }
}
