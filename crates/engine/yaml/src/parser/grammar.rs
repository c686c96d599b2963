//! The grammar of collections: one function per kind, which decides what comes next.

use super::build::{Expects, Kind};
use super::{Next, Parser};
use crate::error::Error;
use crate::scanner::{Mark, Token};

const FLOW_NODE: Next = Next::Node { block: false, dashes: false };

impl Parser<'_> {
    pub(super) fn step(&mut self) -> Result<Next, Error> {
        match self.frame().kind {
            Kind::BlockSeq => self.step_block_seq(),
            Kind::DashesOnly => self.step_dashes(),
            Kind::BlockMap => self.step_block_map(),
            Kind::FlowSeq => self.step_flow_seq(),
            Kind::FlowMap => self.step_flow_map(),
            Kind::FlowPair => self.step_flow_pair(),
        }
    }

    fn node_or_empty(empty: bool, mark: Mark, dashes: bool) -> Next {
        if empty { Next::Empty(mark) } else { Next::Node { block: true, dashes } }
    }

    fn step_block_seq(&mut self) -> Result<Next, Error> {
        let (token, mark) = self.scanner.peek()?;
        match token {
            Token::BlockEntry => {
                self.scanner.take()?;
                let empty = matches!(self.scanner.peek()?.0, Token::BlockEntry | Token::BlockEnd);
                Ok(Self::node_or_empty(empty, behind(mark), false))
            }
            Token::BlockEnd => {
                self.scanner.take()?;
                Ok(Next::Finished)
            }
            _ => Err(Self::error(self.frame().mark, mark, "did not find expected '-' indicator")),
        }
    }

    fn step_dashes(&mut self) -> Result<Next, Error> {
        let (token, mark) = self.scanner.peek()?;
        if *token != Token::BlockEntry {
            return Ok(Next::Finished);
        }
        self.scanner.take()?;
        let empty =
            matches!(self.scanner.peek()?.0, Token::BlockEntry | Token::Key | Token::Value | Token::BlockEnd);
        Ok(Self::node_or_empty(empty, behind(mark), false))
    }

    fn step_block_map(&mut self) -> Result<Next, Error> {
        let ends = |token: &Token<'_>| matches!(token, Token::Key | Token::Value | Token::BlockEnd);
        let wanted = self.frame().wants;
        let (token, mark) = self.scanner.peek()?;
        if wanted == Expects::Value {
            let no_value = *token != Token::Value;
            self.frame().wants = Expects::Key;
            if no_value {
                return Ok(Next::Empty(mark));
            }
            self.scanner.take()?;
            let empty = ends(self.scanner.peek()?.0);
            return Ok(Self::node_or_empty(empty, behind(mark), true));
        }
        match token {
            Token::Key => {
                self.scanner.take()?;
                self.frame().wants = Expects::Value;
                let empty = ends(self.scanner.peek()?.0);
                Ok(Self::node_or_empty(empty, behind(mark), true))
            }
            Token::BlockEnd => {
                self.scanner.take()?;
                Ok(Next::Finished)
            }
            _ => Err(Self::error(self.frame().mark, mark, "did not find expected key")),
        }
    }

    /// Consumes the comma before every item but the first; `None` if there is another token.
    fn separator(&mut self, end: &Token<'_>) -> Result<Option<Mark>, Error> {
        let first = std::mem::replace(&mut self.frame().first, false);
        let (token, mark) = self.scanner.peek()?;
        if token == end || first {
            return Ok(None);
        }
        if *token != Token::FlowEntry {
            return Ok(Some(mark));
        }
        self.scanner.take()?;
        Ok(None)
    }

    fn step_flow_seq(&mut self) -> Result<Next, Error> {
        if let Some(mark) = self.separator(&Token::FlowSequenceEnd)? {
            return Err(Self::error(self.frame().mark, mark, "did not find expected ',' or ']'"));
        }
        match self.scanner.peek()?.0 {
            Token::FlowSequenceEnd => {
                self.scanner.take()?;
                Ok(Next::Finished)
            }
            Token::Key => Ok(Next::Pair),
            _ => Ok(FLOW_NODE),
        }
    }

    fn step_flow_pair(&mut self) -> Result<Next, Error> {
        let wanted = self.frame().wants;
        let (token, mark) = self.scanner.peek()?;
        match wanted {
            Expects::Key => {
                let empty = matches!(token, Token::Value | Token::FlowEntry | Token::FlowSequenceEnd);
                self.frame().wants = Expects::Value;
                if empty {
                    // libyaml consumes the token here, so `[? : x]` is rejected later.
                    self.scanner.take()?;
                    return Ok(Next::Empty(behind(mark)));
                }
                Ok(FLOW_NODE)
            }
            Expects::Value => {
                let has_value = *token == Token::Value;
                self.frame().wants = Expects::End;
                if has_value {
                    self.scanner.take()?;
                    if !matches!(self.scanner.peek()?.0, Token::FlowEntry | Token::FlowSequenceEnd) {
                        return Ok(FLOW_NODE);
                    }
                }
                Ok(Next::Empty(mark))
            }
            Expects::NoValue | Expects::End => Ok(Next::Finished),
        }
    }

    fn step_flow_map(&mut self) -> Result<Next, Error> {
        let ends = |token: &Token<'_>| matches!(token, Token::FlowEntry | Token::FlowMappingEnd);
        match self.frame().wants {
            Expects::NoValue => {
                self.frame().wants = Expects::Key;
                return Ok(Next::Empty(self.scanner.peek()?.1));
            }
            Expects::Value => {
                self.frame().wants = Expects::Key;
                let (token, mark) = self.scanner.peek()?;
                if *token != Token::Value {
                    return Ok(Next::Empty(mark));
                }
                self.scanner.take()?;
                let (token, mark) = self.scanner.peek()?;
                return Ok(if ends(token) { Next::Empty(mark) } else { FLOW_NODE });
            }
            Expects::Key | Expects::End => {}
        }
        if let Some(mark) = self.separator(&Token::FlowMappingEnd)? {
            return Err(Self::error(self.frame().mark, mark, "did not find expected ',' or '}'"));
        }
        match self.scanner.peek()?.0 {
            Token::FlowMappingEnd => {
                self.scanner.take()?;
                Ok(Next::Finished)
            }
            Token::Key => {
                self.scanner.take()?;
                self.frame().wants = Expects::Value;
                let (token, mark) = self.scanner.peek()?;
                let empty = ends(token) || *token == Token::Value;
                Ok(if empty { Next::Empty(mark) } else { FLOW_NODE })
            }
            _ => {
                self.frame().wants = Expects::NoValue;
                Ok(FLOW_NODE)
            }
        }
    }
}

/// The position after a one-character token.
fn behind(mark: Mark) -> Mark {
    Mark { column: mark.column + 1, ..mark }
}
