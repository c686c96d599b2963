//! The short way through plain block lines: `key: value`, `- item` and what they nest.
//!
//! Everything here gives the same nodes as the tokens would. Whatever is not plain (quotes over several lines, flow
//! collections, anchors, tags, odd indentation, tabs) is left to them, at a place where both ways agree on the state.

use super::Parser;
use super::build::{Kind, Properties, Wants};
use crate::error::Error;
use crate::node::Style;
use crate::scanner::{Found, Mark};

impl Parser<'_> {
    /// Reads lines as long as they are plain. Afterwards the scanner stands where the tokens take over.
    pub(super) fn read_plain_lines(&mut self) -> Result<(), Error> {
        loop {
            let Some(column) = self.scanner.at_plain_line() else { return Ok(()) };
            if !self.close_deeper_than(column) {
                return Ok(());
            }
            let (kind, wants) = (self.frame().kind, self.frame().wants);
            let went_on = match kind {
                Kind::BlockMap if wants == Wants::Key => self.plain_entry(column)?,
                Kind::BlockSeq | Kind::DashesOnly => self.plain_item(column)?,
                _ => false,
            };
            if !went_on {
                return Ok(());
            }
        }
    }

    /// Closes what a line at `column` ends; false when the tokens must decide.
    fn close_deeper_than(&mut self, column: u32) -> bool {
        let dash = self.scanner.at_dash();
        loop {
            let done = match self.frame().kind {
                Kind::DashesOnly => self.scanner.indent() != column as i32 || !dash,
                Kind::BlockMap | Kind::BlockSeq => self.scanner.indent() > column as i32,
                _ => return false,
            };
            if !done {
                // Indentation that fits no open collection is an error, and theirs to word.
                return self.scanner.indent() == column as i32;
            }
            // A mapping that waits for the value of its key is not at its end yet; neither is the whole document.
            if self.frame().kind != Kind::DashesOnly {
                if self.frame().wants == Wants::Value || self.stack.len() == 1 {
                    return false;
                }
                self.scanner.leave_block();
            }
            let node = self.finish();
            self.deliver(node);
        }
    }

    fn plain_entry(&mut self, column: u32) -> Result<bool, Error> {
        let mark = Mark { line: self.scanner.line(), column };
        let Some(key) = self.scanner.plain_key() else { return Ok(false) };
        let key_node = self.plain_scalar(key, Style::Plain, mark);
        self.set_key(key_node);
        let colon = column + key.len() as u32;
        self.value_of_key(column, Mark { column: colon, ..mark })
    }

    /// Behind the colon of a key: its value, or the collection that follows.
    fn value_of_key(&mut self, column: u32, colon: Mark) -> Result<bool, Error> {
        let start = self.scanner.place();
        let blanks = self.scanner.skip_spaces();
        let mark = Mark { column: colon.column + 1 + blanks, ..colon };
        match self.scanner.plain_value() {
            Found::Scalar(text, style) => {
                let text = if self.is_dropped() { "" } else { text };
                let node = self.plain_scalar(text, style, mark);
                self.deliver(node);
                Ok(true)
            }
            Found::Empty(seq) => {
                self.open(if seq { Kind::FlowSeq } else { Kind::FlowMap }, mark, Properties::default())?;
                let node = self.finish();
                self.deliver(node);
                Ok(true)
            }
            Found::Block => {
                let (text, style) = self.scanner.block_scalar(mark)?;
                let node = self.scalar(text, style, mark, Properties::default());
                self.deliver(node);
                Ok(true)
            }
            Found::LineEnd => self.block_of_key(column, colon),
            Found::Key(_) | Found::Other => {
                self.scanner.leave_to_tokens(start, Some(colon));
                self.frame().wants = Wants::Value;
                Ok(false)
            }
        }
    }

    /// The value of a key that has nothing behind it on its line.
    fn block_of_key(&mut self, column: u32, colon: Mark) -> Result<bool, Error> {
        let start = self.scanner.place();
        let Some(next) = self.scanner.next_plain_line() else {
            self.scanner.leave_to_tokens(start, Some(colon));
            self.frame().wants = Wants::Value;
            return Ok(false);
        };
        let mark = Mark { line: self.scanner.line(), column: next };
        let kind = match (self.scanner.at_dash(), next.cmp(&column)) {
            (true, std::cmp::Ordering::Equal) => Kind::DashesOnly,
            (true, std::cmp::Ordering::Greater) => Kind::BlockSeq,
            (false, std::cmp::Ordering::Greater) if self.scanner.peek_plain_key() => Kind::BlockMap,
            (_, std::cmp::Ordering::Greater) => {
                self.scanner.leave_to_tokens(start, Some(colon));
                self.frame().wants = Wants::Value;
                return Ok(false);
            }
            _ => {
                let node = self.empty_scalar(Mark { column: colon.column + 1, ..colon });
                self.deliver(node);
                return Ok(true);
            }
        };
        if kind != Kind::DashesOnly {
            self.scanner.enter_block(next);
        }
        self.open(kind, mark, Properties::default())?;
        Ok(true)
    }

    /// `- ` and what stands behind it on the line.
    fn plain_item(&mut self, column: u32) -> Result<bool, Error> {
        let start = self.scanner.place();
        if !self.scanner.at_dash() {
            return Ok(false);
        }
        let blanks = self.scanner.skip_dash();
        let mark = Mark { line: self.scanner.line(), column: column + 1 + blanks };
        match self.scanner.plain_value() {
            Found::Scalar(text, style) => {
                let text = if self.is_dropped() { "" } else { text };
                let node = self.plain_scalar(text, style, mark);
                self.deliver(node);
                Ok(true)
            }
            Found::Empty(seq) => {
                self.open(if seq { Kind::FlowSeq } else { Kind::FlowMap }, mark, Properties::default())?;
                let node = self.finish();
                self.deliver(node);
                Ok(true)
            }
            Found::Key(key) => {
                self.scanner.enter_block(mark.column);
                self.open(Kind::BlockMap, mark, Properties::default())?;
                let colon = mark.column + key.len() as u32;
                let key_node = self.plain_scalar(key, Style::Plain, mark);
                self.set_key(key_node);
                self.value_of_key(mark.column, Mark { column: colon, ..mark })
            }
            Found::Block | Found::LineEnd | Found::Other => {
                self.scanner.leave_to_tokens(start, None);
                Ok(false)
            }
        }
    }
}
