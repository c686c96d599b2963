//! Builds trees from tokens, with a loop and an explicit stack: nesting uses the heap, not the call stack.

mod build;
mod fast;
mod grammar;

use std::borrow::Cow;

use rustc_hash::FxHashMap;
use smol_str::SmolStr;

use self::build::{Anchored, Frame, Kind, Properties};
use crate::error::{Error, Stage};
use crate::map::Entry;
use crate::node::{Node, Style, Tag, Value};
use crate::options::Options;
use crate::scanner::{Mark, Scanner, Token};

/// Parses the documents of a text one by one.
#[derive(Debug)]
pub(crate) struct Parser<'a> {
    scanner: Scanner<'a>,
    options: Options,
    tag_directives: Vec<(&'a str, String)>,
    first_document: bool,
    finished: bool,
    /// The open collections, and their contents in two shared vectors: a collection is allocated once, when
    /// its size is known.
    stack: Vec<Frame>,
    items: Vec<Node>,
    entries: Vec<Entry>,
    anchors: FxHashMap<SmolStr, Anchored>,
    /// Number of values that Go's decoder would have visited, and how many of them through aliases.
    visited: usize,
    through_aliases: usize,
    /// Selects the entries of the root that are built; `None` for all.
    wanted: Option<fn(&str) -> bool>,
    /// Whether the current entry of the root is discarded.
    discarded: bool,
    /// The first error of a value. Go reports it after the whole document was parsed, so syntax errors take
    /// precedence.
    deferred: Option<Error>,
}

enum Next {
    Node {
        block: bool,
        dashes: bool,
    },
    Empty(Mark),
    Finished,
    /// A pair begins inside of a flow sequence.
    Pair,
}

impl<'a> Parser<'a> {
    pub(crate) fn new(text: &'a str, options: Options) -> Self {
        Self {
            scanner: Scanner::new(text, options.max_depth),
            options,
            tag_directives: Vec::new(),
            first_document: true,
            finished: false,
            stack: Vec::new(),
            items: Vec::new(),
            entries: Vec::new(),
            anchors: FxHashMap::default(),
            visited: 0,
            through_aliases: 0,
            wanted: None,
            discarded: false,
            deferred: None,
        }
    }

    /// Builds only the entries of the root that `wanted` selects; the contents of others are discarded.
    pub(crate) fn outline(&mut self, wanted: fn(&str) -> bool) {
        self.wanted = Some(wanted);
    }

    fn error(context: Mark, problem: Mark, message: &str) -> Error {
        Error::at(Stage::Parser, problem.line, problem.column, message).with_context(context.line)
    }

    /// The next document; `None` after the last one. An empty document is null.
    pub(crate) fn next_document(&mut self) -> Result<Option<Node>, Error> {
        if self.finished {
            return Ok(None);
        }
        if !self.first_document {
            while *self.scanner.peek()?.0 == Token::DocumentEnd {
                self.scanner.take()?;
            }
        }
        let implicit = self.first_document;
        self.first_document = false;
        self.anchors.clear();
        self.tag_directives.clear();
        (self.visited, self.through_aliases) = (1, 0);
        let mut empty = None;
        match self.scanner.peek()?.0 {
            Token::StreamEnd => {
                self.finished = true;
                return Ok(None);
            }
            Token::Version { .. } | Token::TagDirective { .. } | Token::DocumentStart => {
                self.read_directives()?;
                let (token, mark) = self.scanner.take()?;
                if token != Token::DocumentStart {
                    return Err(Self::error(Mark::default(), mark, "did not find expected <document start>"));
                }
                let (token, mark) = self.scanner.peek()?;
                let ends = matches!(
                    token,
                    Token::Version { .. }
                        | Token::TagDirective { .. }
                        | Token::DocumentStart
                        | Token::DocumentEnd
                        | Token::StreamEnd
                );
                empty = ends.then_some(mark);
            }
            _ if implicit => {}
            _ => {
                let mark = self.scanner.peek()?.1;
                return Err(Self::error(Mark::default(), mark, "did not find expected <document start>"));
            }
        }
        let root = match empty {
            Some(mark) => self.empty_scalar(mark),
            None => self.parse_tree()?,
        };
        // An explicit end belongs to this document; otherwise the next one must begin.
        if *self.scanner.peek()?.0 == Token::DocumentEnd {
            self.scanner.take()?;
        }
        if let Some(error) = self.deferred.take() {
            return Err(error);
        }
        Ok(Some(root))
    }

    fn read_directives(&mut self) -> Result<(), Error> {
        let mut version_seen = false;
        loop {
            let (token, mark) = self.scanner.peek()?;
            match token {
                Token::Version { major, minor } => {
                    if version_seen {
                        return Err(Self::error(Mark::default(), mark, "found duplicate %YAML directive"));
                    }
                    if (*major, *minor) != (1, 1) {
                        return Err(Self::error(Mark::default(), mark, "found incompatible YAML document"));
                    }
                    version_seen = true;
                }
                Token::TagDirective { handle, prefix } => {
                    if self.tag_directives.iter().any(|(h, _)| h == handle) {
                        return Err(Self::error(Mark::default(), mark, "found duplicate %TAG directive"));
                    }
                    self.tag_directives.push((handle, prefix.clone()));
                }
                _ => return Ok(()),
            }
            self.scanner.take()?;
        }
    }

    fn empty_scalar(&mut self, mark: Mark) -> Node {
        self.visited += 1;
        Node::read(Value::Scalar(SmolStr::default()), mark.line + 1, mark.column + 1, Style::Plain, Tag::Auto)
    }

    fn parse_tree(&mut self) -> Result<Node, Error> {
        let mut next = Next::Node { block: true, dashes: false };
        loop {
            let node = match next {
                Next::Node { block, dashes } => self.begin_node(block, dashes)?,
                Next::Empty(mark) => Some(self.empty_scalar(mark)),
                Next::Finished => Some(self.finish()),
                Next::Pair => {
                    let mark = self.scanner.take()?.1;
                    self.open(Kind::FlowPair, mark, Properties::default())?;
                    None
                }
            };
            if let Some(node) = node {
                if self.stack.is_empty() {
                    return Ok(node);
                }
                self.add_node(node);
            }
            // Most of a manifest is plain block lines, which need no tokens.
            if self.scanner.is_drained() {
                self.read_plain_lines()?;
            }
            next = self.step()?;
        }
    }

    /// Parses a scalar or an alias, or opens a collection.
    fn begin_node(&mut self, block: bool, dashes: bool) -> Result<Option<Node>, Error> {
        let mut start = self.scanner.peek()?.1;
        let mut properties = Properties::default();
        let mut tagged = false;
        loop {
            let (token, mark) = self.scanner.peek()?;
            match token {
                Token::Scalar(..) => {
                    let (Token::Scalar(text, style), _) = self.scanner.take()? else {
                        unreachable!("peeked")
                    };
                    return Ok(Some(self.scalar(text, style, start, properties)));
                }
                Token::Alias(_) if properties.anchor.is_empty() && !tagged => {
                    let (Token::Alias(name), mark) = self.scanner.take()? else { unreachable!("peeked") };
                    return self.alias(name, mark).map(Some);
                }
                Token::Anchor(name) if properties.anchor.is_empty() => {
                    properties.anchor = SmolStr::new(name);
                    if !tagged {
                        start = mark;
                    }
                    self.scanner.take()?;
                }
                Token::Tag { .. } if !tagged => {
                    let (Token::Tag { handle, suffix }, mark) = self.scanner.take()? else {
                        unreachable!("peeked")
                    };
                    (properties.tag, properties.custom_tag) = self.tag(handle, suffix, start, mark)?;
                    tagged = true;
                }
                token => {
                    let kind = match token {
                        Token::BlockEntry if dashes => Kind::DashesOnly,
                        Token::FlowSequenceStart => Kind::FlowSeq,
                        Token::FlowMappingStart => Kind::FlowMap,
                        Token::BlockSequenceStart if block => Kind::BlockSeq,
                        Token::BlockMappingStart if block => Kind::BlockMap,
                        _ if tagged || !properties.anchor.is_empty() => {
                            return Ok(Some(self.scalar(Cow::Borrowed(""), Style::Plain, start, properties)));
                        }
                        _ => {
                            return Err(Self::error(start, mark, "did not find expected node content"));
                        }
                    };
                    if kind != Kind::DashesOnly {
                        self.scanner.take()?;
                    }
                    self.open(kind, start, properties)?;
                    return Ok(None);
                }
            }
        }
    }

    fn tag(&self, handle: &str, suffix: String, start: Mark, mark: Mark) -> Result<(Tag, SmolStr), Error> {
        let full = if handle.is_empty() {
            suffix
        } else if let Some((_, prefix)) = self.tag_directives.iter().find(|(h, _)| *h == handle) {
            format!("{prefix}{suffix}")
        } else {
            match handle {
                "!" => format!("!{suffix}"),
                "!!" => format!("tag:yaml.org,2002:{suffix}"),
                _ => return Err(Self::error(start, mark, "found undefined tag handle")),
            }
        };
        let tag = Tag::from_text(&full);
        let text = match (tag, full.strip_prefix("tag:yaml.org,2002:")) {
            (Tag::Custom, Some(short)) => smol_str::format_smolstr!("!!{short}"),
            (Tag::Custom, None) => SmolStr::from(full),
            _ => SmolStr::default(),
        };
        Ok((tag, text))
    }
}
