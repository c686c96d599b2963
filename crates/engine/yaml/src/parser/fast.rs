//! Fast path for plain block lines: `key: value`, `- item` and nested ones.
//!
//! Creates the same nodes as the token-based parser. All other syntax (multi-line quotes, flow collections,
//! anchors, tags, unusual indentation, tabs) is left to it, at a position where both have the same state.

use super::Parser;
use super::build::{Expects, Kind, Properties};
use crate::error::Error;
use crate::node::Style;
use crate::scanner::{Mark, Syntax};

impl Parser<'_> {
    /// Parses lines as long as they are plain; the scanner is then where the tokens take over.
    pub(super) fn read_plain_lines(&mut self) -> Result<(), Error> {
        loop {
            let Some(column) = self.scanner.at_plain_line() else { return Ok(()) };
            if !self.close_deeper_than(column) {
                return Ok(());
            }
            let (kind, wants) = (self.frame().kind, self.frame().wants);
            let went_on = match kind {
                Kind::BlockMap if wants == Expects::Key => self.plain_entry(column)?,
                Kind::BlockSeq | Kind::DashesOnly => self.plain_item(column)?,
                _ => false,
            };
            if !went_on {
                return Ok(());
            }
        }
    }

    /// Closes the collections that a line at `column` ends; false if the tokens must decide.
    fn close_deeper_than(&mut self, column: u32) -> bool {
        let dash = self.scanner.at_dash();
        loop {
            let done = match self.frame().kind {
                Kind::DashesOnly => self.scanner.indent() != column as i32 || !dash,
                Kind::BlockMap | Kind::BlockSeq => self.scanner.indent() > column as i32,
                _ => return false,
            };
            if !done {
                // Indentation that matches no open collection is an error, which the token-based parser
                // reports.
                return self.scanner.indent() == column as i32;
            }
            // A mapping that expects the value of its key is not complete, and neither is the document.
            if self.frame().kind != Kind::DashesOnly {
                if self.frame().wants == Expects::Value || self.stack.len() == 1 {
                    return false;
                }
                self.scanner.leave_block();
            }
            let node = self.finish();
            self.add_node(node);
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

    /// After the colon of a key: its value, or the collection that follows.
    fn value_of_key(&mut self, column: u32, colon: Mark) -> Result<bool, Error> {
        let start = self.scanner.position();
        let blanks = self.scanner.skip_spaces();
        let mark = Mark { column: colon.column + 1 + blanks, ..colon };
        match self.scanner.plain_value() {
            Syntax::Scalar(text, style) => {
                let text = if self.is_discarded() { "" } else { text };
                let node = self.plain_scalar(text, style, mark);
                self.add_node(node);
                Ok(true)
            }
            Syntax::Empty(seq) => {
                self.open(if seq { Kind::FlowSeq } else { Kind::FlowMap }, mark, Properties::default())?;
                let node = self.finish();
                self.add_node(node);
                Ok(true)
            }
            Syntax::Block => {
                let (text, style) = self.scanner.block_scalar(mark)?;
                let node = self.scalar(text, style, mark, Properties::default());
                self.add_node(node);
                Ok(true)
            }
            Syntax::LineEnd => self.block_of_key(column, colon),
            Syntax::Key(_) | Syntax::Other => {
                self.scanner.return_to(start, Some(colon));
                self.frame().wants = Expects::Value;
                Ok(false)
            }
        }
    }

    /// The value of a key without a value on its line.
    fn block_of_key(&mut self, column: u32, colon: Mark) -> Result<bool, Error> {
        let start = self.scanner.position();
        let Some(next) = self.scanner.next_plain_line() else {
            self.scanner.return_to(start, Some(colon));
            self.frame().wants = Expects::Value;
            return Ok(false);
        };
        let mark = Mark { line: self.scanner.line(), column: next };
        let kind = match (self.scanner.at_dash(), next.cmp(&column)) {
            (true, std::cmp::Ordering::Equal) => Kind::DashesOnly,
            (true, std::cmp::Ordering::Greater) => Kind::BlockSeq,
            (false, std::cmp::Ordering::Greater) if self.scanner.peek_plain_key() => Kind::BlockMap,
            (_, std::cmp::Ordering::Greater) => {
                self.scanner.return_to(start, Some(colon));
                self.frame().wants = Expects::Value;
                return Ok(false);
            }
            _ => {
                let node = self.empty_scalar(Mark { column: colon.column + 1, ..colon });
                self.add_node(node);
                return Ok(true);
            }
        };
        if kind != Kind::DashesOnly {
            self.scanner.enter_block(next);
        }
        self.open(kind, mark, Properties::default())?;
        Ok(true)
    }

    /// `- ` and the rest of the line.
    fn plain_item(&mut self, column: u32) -> Result<bool, Error> {
        let start = self.scanner.position();
        if !self.scanner.at_dash() {
            return Ok(false);
        }
        let blanks = self.scanner.skip_dash();
        let mark = Mark { line: self.scanner.line(), column: column + 1 + blanks };
        match self.scanner.plain_value() {
            Syntax::Scalar(text, style) => {
                let text = if self.is_discarded() { "" } else { text };
                let node = self.plain_scalar(text, style, mark);
                self.add_node(node);
                Ok(true)
            }
            Syntax::Empty(seq) => {
                self.open(if seq { Kind::FlowSeq } else { Kind::FlowMap }, mark, Properties::default())?;
                let node = self.finish();
                self.add_node(node);
                Ok(true)
            }
            Syntax::Key(key) => {
                self.scanner.enter_block(mark.column);
                self.open(Kind::BlockMap, mark, Properties::default())?;
                let colon = mark.column + key.len() as u32;
                let key_node = self.plain_scalar(key, Style::Plain, mark);
                self.set_key(key_node);
                self.value_of_key(mark.column, Mark { column: colon, ..mark })
            }
            Syntax::Block | Syntax::LineEnd | Syntax::Other => {
                self.scanner.return_to(start, None);
                Ok(false)
            }
        }
    }
}
