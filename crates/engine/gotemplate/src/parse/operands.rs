//! Operands: constants, fields, variables, functions, and pipelines in parentheses.

use std::sync::Arc;

use super::lex::Tok;
use super::node::{self, Callee, Operand, OperandKind};
use super::{MAX_PARENS, Parse, Parser, number};
use crate::func::Functions;
use crate::strconv::unquote;
use crate::value::Str;

impl Parser<'_> {
    /// Parses the next operand, if there is one, and appends it to the unfinished list.
    pub(super) fn operand(&mut self) -> Parse<()> {
        if !self.term()? {
            return Ok(());
        }
        let next = self.peek();
        if next.tok != Tok::Field {
            return Ok(());
        }
        let fields = self.chain(next.start, next.start);
        let Some(node) = self.work.unfinished.operands.pop() else { return Ok(()) };
        if node.kind.is_constant() || matches!(node.kind, OperandKind::Dot) {
            let mut shown = Vec::new();
            node::print_operand(&mut shown, &node, &self.tree);
            return self.error(format!("unexpected . after term {}", crate::fmt::quoted(&shown)));
        }
        self.add_operand(next.start, OperandKind::Chain(Box::new((node, fields))));
        Ok(())
    }

    /// Operands are constructed in place: moving them would be most of their cost.
    #[inline]
    fn add_operand(&mut self, pos: u32, kind: OperandKind) -> bool {
        self.work.unfinished.operands.push(Operand { pos, kind });
        true
    }

    /// Consumes the fields that follow `start..end` without a blank; returns all names from `start` on.
    fn chain(&mut self, start: u32, mut end: u32) -> Arc<[Str]> {
        while self.peek().tok == Tok::Field {
            end = self.next().end;
        }
        self.work.names.chain(&self.text[start as usize..end as usize])
    }

    fn term(&mut self) -> Parse<bool> {
        let item = self.next_non_space();
        let mut pos = item.start;
        Ok(match item.tok {
            Tok::Identifier => {
                let name = item.text(self.text);
                let functions = self.functions;
                match self.work.names.word(name, |name| callee(functions, name)) {
                    Some(word) => self.add_operand(pos, OperandKind::Identifier(word)),
                    None => return self.error(format!("function {} not defined", crate::fmt::quoted(name))),
                }
            }
            Tok::Dot => self.add_operand(pos, OperandKind::Dot),
            Tok::Nil => self.add_operand(pos, OperandKind::Nil),
            Tok::Variable => {
                let name = item.text(self.text);
                if !self.frame.vars.iter().any(|known| known.as_bytes() == name) {
                    return self.error(format!("undefined variable {}", crate::fmt::quoted(name)));
                }
                // The position of a variable or field with more fields is where the second name starts, as in
                // Go.
                if self.peek().tok == Tok::Field {
                    pos = self.peek().start;
                }
                let names = self.chain(item.start, item.end);
                self.add_operand(pos, OperandKind::Variable(names))
            }
            Tok::Field => {
                let fields = self.chain(item.start, item.end);
                if fields.len() > 1 {
                    pos = item.end;
                }
                self.add_operand(pos, OperandKind::Field(fields))
            }
            Tok::Bool => self.add_operand(pos, OperandKind::Bool(item.text(self.text) == b"true")),
            Tok::CharConstant | Tok::Complex | Tok::Number => {
                let text = item.text(self.text);
                match self.work.names.number(text, || number::parse_number(text, item.tok)) {
                    Ok(number) => self.add_operand(pos, OperandKind::Number(number)),
                    Err(error) => return self.error(error.to_string()),
                }
            }
            Tok::LeftParen => {
                if self.frame.paren_depth >= MAX_PARENS {
                    return self.error("max expression depth exceeded");
                }
                self.frame.paren_depth += 1;
                let pipe = self.pipeline("parenthesized pipeline", Tok::RightParen)?;
                self.frame.paren_depth -= 1;
                self.add_operand(pipe.pos, OperandKind::Pipe(Box::new(pipe)))
            }
            Tok::String | Tok::RawString => match unquote(item.text(self.text)) {
                Some(text) => {
                    let text = self.work.names.share(&text);
                    self.add_operand(pos, OperandKind::String(text, item.end))
                }
                None => return self.error("invalid syntax"),
            },
            _ => {
                self.backup();
                false
            }
        })
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
