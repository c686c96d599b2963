//! Tokens to trees. One loop and an explicit stack: depth costs heap, never the call stack.

use std::borrow::Cow;

use rustc_hash::{FxHashMap, FxHashSet};
use smol_str::SmolStr;
use thin_vec::ThinVec;

use crate::error::{Error, Stage};
use crate::map::Map;
use crate::node::{Node, Style, Tag, Value};
use crate::options::{Aliases, Duplicates, Options};
use crate::resolve::Dialect;
use crate::scanner::{Mark, Scanner, Token};
use crate::{merge, resolve};

/// Mappings up to this size look for duplicates by comparing, larger ones keep a table.
const SMALL_MAP: usize = 12;

/// Reads the documents of a text one by one.
#[derive(Debug)]
pub(crate) struct Parser<'a> {
    scanner: Scanner<'a>,
    options: Options,
    tag_directives: Vec<(&'a str, String)>,
    first_document: bool,
    finished: bool,
    anchors: FxHashMap<SmolStr, Anchored>,
    /// How many values a Go decoder would have visited, and how many of them through aliases.
    visited: usize,
    through_aliases: usize,
    /// The first problem with a value. Go sees it only after the whole document was read, so syntax errors win.
    deferred: Option<Error>,
}

#[derive(Debug)]
enum Anchored {
    Unfinished,
    Finished { node: Node, visits: usize },
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    BlockSeq,
    /// A sequence at the indentation of its key.
    DashesOnly,
    BlockMap,
    FlowSeq,
    FlowMap,
    /// `a: b` as an item of a flow sequence.
    FlowPair,
}

/// What a mapping waits for.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Wants {
    Key,
    Value,
    /// The value of a flow mapping's key that had no `:`.
    NoValue,
    End,
}

#[derive(Debug)]
struct Frame {
    kind: Kind,
    wants: Wants,
    first: bool,
    mark: Mark,
    tag: Tag,
    custom_tag: SmolStr,
    anchor: SmolStr,
    visits_before: usize,
    items: ThinVec<Node>,
    map: Map,
    key: Option<Node>,
    merges: bool,
    seen: Option<FxHashSet<SmolStr>>,
}

/// The properties before a node.
#[derive(Debug, Default)]
struct Properties {
    tag: Tag,
    custom_tag: SmolStr,
    anchor: SmolStr,
}

enum Next {
    Node { block: bool, dashes: bool },
    Empty(Mark),
    Finished,
}

impl<'a> Parser<'a> {
    pub(crate) fn new(text: &'a str, options: Options) -> Self {
        Self {
            scanner: Scanner::new(text, options.max_depth),
            options,
            tag_directives: Vec::new(),
            first_document: true,
            finished: false,
            anchors: FxHashMap::default(),
            visited: 0,
            through_aliases: 0,
            deferred: None,
        }
    }

    fn error(context: Mark, problem: Mark, message: &str) -> Error {
        Error::at(Stage::Parser, problem.line, problem.column, message).with_context(context.line)
    }

    /// The next document; `None` behind the last one. A document without content is a null.
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
        // An explicit end belongs to this document; anything else must begin the next one.
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
        let mut stack: Vec<Frame> = Vec::new();
        let mut next = Next::Node { block: true, dashes: false };
        loop {
            let node = match next {
                Next::Node { block, dashes } => self.begin_node(block, dashes, &mut stack)?,
                Next::Empty(mark) => Some(self.empty_scalar(mark)),
                Next::Finished => {
                    let frame = stack.pop().expect("only an open collection can finish");
                    Some(self.finish(frame))
                }
            };
            if let Some(node) = node {
                match stack.last_mut() {
                    Some(frame) => {
                        if let Err(error) = Self::deliver(frame, node, &self.options) {
                            self.deferred.get_or_insert(error);
                        }
                    }
                    None => return Ok(node),
                }
            }
            let frame = stack.last_mut().expect("a collection is open here");
            next = match frame.kind {
                Kind::BlockSeq => self.step_block_seq(frame)?,
                Kind::DashesOnly => self.step_dashes(frame)?,
                Kind::BlockMap => self.step_block_map(frame)?,
                Kind::FlowSeq => match self.step_flow_seq(frame)? {
                    Some(next) => next,
                    None => {
                        let mark = self.scanner.take()?.1;
                        self.open(&mut stack, Kind::FlowPair, mark, Properties::default())?;
                        let frame = stack.last_mut().expect("just opened");
                        self.step_flow_pair(frame)?
                    }
                },
                Kind::FlowMap => self.step_flow_map(frame)?,
                Kind::FlowPair => self.step_flow_pair(frame)?,
            };
        }
    }

    /// Reads a scalar or an alias, or opens a collection on the stack.
    fn begin_node(
        &mut self,
        block: bool,
        dashes: bool,
        stack: &mut Vec<Frame>,
    ) -> Result<Option<Node>, Error> {
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
                    self.open(stack, kind, start, properties)?;
                    return Ok(None);
                }
            }
        }
    }

    fn open(&mut self, stack: &mut Vec<Frame>, kind: Kind, mark: Mark, p: Properties) -> Result<(), Error> {
        if stack.len() >= self.options.max_depth {
            let message = format!("exceeded max depth of {}", self.options.max_depth);
            return Err(Self::error(mark, mark, &message));
        }
        self.visited += 1;
        if !p.anchor.is_empty() {
            self.anchors.insert(p.anchor.clone(), Anchored::Unfinished);
        }
        stack.push(Frame {
            kind,
            wants: Wants::Key,
            first: true,
            mark,
            tag: p.tag,
            custom_tag: p.custom_tag,
            anchor: p.anchor,
            visits_before: self.visited - 1,
            items: ThinVec::new(),
            map: Map::default(),
            key: None,
            merges: false,
            seen: None,
        });
        Ok(())
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

    #[inline]
    fn scalar(&mut self, text: Cow<'a, str>, style: Style, mark: Mark, p: Properties) -> Node {
        self.visited += 1;
        let text = match text {
            Cow::Borrowed(slice) => SmolStr::new(slice),
            Cow::Owned(string) => SmolStr::from(string),
        };
        let mut node = Node::read(Value::Scalar(text), mark.line + 1, mark.column + 1, style, p.tag);
        if !p.custom_tag.is_empty() {
            node.extra_mut().tag = p.custom_tag;
        }
        if node.tag != Tag::Auto && self.options.check_tags {
            if let Err(error) = resolve::resolve_node(&node, self.options.dialect) {
                self.deferred.get_or_insert(error);
            }
        }
        if !p.anchor.is_empty() {
            self.keep_anchor(p.anchor, &mut node, 1);
        }
        node
    }

    fn keep_anchor(&mut self, name: SmolStr, node: &mut Node, visits: usize) {
        if self.options.aliases == Aliases::Keep {
            node.extra_mut().anchor = name.clone();
            self.anchors.insert(name, Anchored::Finished { node: Node::null(), visits: 0 });
        } else {
            self.anchors.insert(name, Anchored::Finished { node: node.clone(), visits });
        }
    }

    fn alias(&mut self, name: &str, mark: Mark) -> Result<Node, Error> {
        let problem = |message: String| Error::at(Stage::Decoder, mark.line, mark.column, message);
        self.visited += 1;
        match self.anchors.get(name) {
            None => Err(problem(format!("unknown anchor '{name}' referenced"))),
            Some(Anchored::Unfinished) => Err(problem(format!("anchor '{name}' value contains itself"))),
            Some(Anchored::Finished { .. }) if self.options.aliases == Aliases::Keep => {
                let text = Value::Scalar(SmolStr::new(name));
                Ok(Node::read(text, mark.line + 1, mark.column + 1, Style::Alias, Tag::Auto))
            }
            Some(Anchored::Finished { node, visits }) => {
                self.visited += visits;
                self.through_aliases += visits;
                if excessive(self.through_aliases, self.visited) {
                    return Err(problem("document contains excessive aliasing".to_owned()));
                }
                Ok(node.clone())
            }
        }
    }

    fn deliver(frame: &mut Frame, node: Node, options: &Options) -> Result<(), Error> {
        match frame.kind {
            Kind::BlockSeq | Kind::DashesOnly | Kind::FlowSeq => frame.items.push(node),
            Kind::BlockMap | Kind::FlowMap | Kind::FlowPair => match frame.key.take() {
                None => frame.key = Some(node),
                Some(key) => Self::add_entry(frame, key, node, options)?,
            },
        }
        Ok(())
    }

    fn add_entry(frame: &mut Frame, mut key: Node, value: Node, options: &Options) -> Result<(), Error> {
        if options.merge_keys && merge::is_merge_key(&key, options.dialect) {
            if options.dialect == Dialect::Sigs {
                // The v2 library merges on the spot: keys before it are overwritten, keys behind it overwrite.
                return merge::merge_now(&mut frame.map, &key, value, options);
            }
            frame.merges = true;
            frame.map.push(key, value);
            return Ok(());
        }
        if options.dialect == Dialect::Sigs {
            merge::make_string_key(&mut key)?;
        }
        let duplicate = match (options.duplicates, key.as_text()) {
            (Duplicates::Keep, _) | (_, None) => None,
            (_, Some(name)) if frame.map.len() <= SMALL_MAP => frame.map.position(name),
            (_, Some(name)) => {
                let map = &frame.map;
                let seen = frame
                    .seen
                    .get_or_insert_with(|| map.iter().filter_map(|e| e.name().map(SmolStr::new)).collect());
                if seen.insert(SmolStr::new(name)) { None } else { map.position(name) }
            }
        };
        match duplicate {
            None => frame.map.push(key, value),
            Some(at) if options.duplicates == Duplicates::LastWins => {
                frame.map.entries_mut()[at].value = value;
            }
            Some(at) => {
                return Err(merge::duplicate(&frame.map.entries()[at].key, &key, &value, options.dialect));
            }
        }
        Ok(())
    }

    fn finish(&mut self, frame: Frame) -> Node {
        let style = match frame.kind {
            Kind::FlowSeq | Kind::FlowMap | Kind::FlowPair => Style::Flow,
            _ => Style::Plain,
        };
        let value = match frame.kind {
            Kind::BlockSeq | Kind::DashesOnly | Kind::FlowSeq => Value::Seq(frame.items),
            _ if frame.merges => Value::Map(merge::merge_finished(frame.map).unwrap_or_else(|error| {
                self.deferred.get_or_insert(error);
                Map::default()
            })),
            _ => Value::Map(frame.map),
        };
        let mut node = Node::read(value, frame.mark.line + 1, frame.mark.column + 1, style, frame.tag);
        if !frame.custom_tag.is_empty() {
            node.extra_mut().tag = frame.custom_tag;
        }
        if !frame.anchor.is_empty() {
            self.keep_anchor(frame.anchor, &mut node, self.visited - frame.visits_before);
        }
        node
    }

    fn step_block_seq(&mut self, frame: &Frame) -> Result<Next, Error> {
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
            _ => Err(Self::error(frame.mark, mark, "did not find expected '-' indicator")),
        }
    }

    fn node_or_empty(empty: bool, mark: Mark, dashes: bool) -> Next {
        if empty { Next::Empty(mark) } else { Next::Node { block: true, dashes } }
    }

    fn step_dashes(&mut self, _: &Frame) -> Result<Next, Error> {
        let (token, mark) = self.scanner.peek()?;
        if *token != Token::BlockEntry {
            return Ok(Next::Finished);
        }
        self.scanner.take()?;
        let empty =
            matches!(self.scanner.peek()?.0, Token::BlockEntry | Token::Key | Token::Value | Token::BlockEnd);
        Ok(Self::node_or_empty(empty, behind(mark), false))
    }

    fn step_block_map(&mut self, frame: &mut Frame) -> Result<Next, Error> {
        let (token, mark) = self.scanner.peek()?;
        let ends = |token: &Token<'_>| matches!(token, Token::Key | Token::Value | Token::BlockEnd);
        if frame.wants == Wants::Value {
            frame.wants = Wants::Key;
            if *token != Token::Value {
                return Ok(Next::Empty(mark));
            }
            self.scanner.take()?;
            let empty = ends(self.scanner.peek()?.0);
            return Ok(Self::node_or_empty(empty, behind(mark), true));
        }
        match token {
            Token::Key => {
                self.scanner.take()?;
                frame.wants = Wants::Value;
                let empty = ends(self.scanner.peek()?.0);
                Ok(Self::node_or_empty(empty, behind(mark), true))
            }
            Token::BlockEnd => {
                self.scanner.take()?;
                Ok(Next::Finished)
            }
            _ => Err(Self::error(frame.mark, mark, "did not find expected key")),
        }
    }

    /// `None`: a pair begins, its key indicator is the next token.
    fn step_flow_seq(&mut self, frame: &mut Frame) -> Result<Option<Next>, Error> {
        let (token, mark) = self.scanner.peek()?;
        if *token != Token::FlowSequenceEnd && !frame.first {
            if *token != Token::FlowEntry {
                return Err(Self::error(frame.mark, mark, "did not find expected ',' or ']'"));
            }
            self.scanner.take()?;
        }
        frame.first = false;
        match self.scanner.peek()?.0 {
            Token::FlowSequenceEnd => {
                self.scanner.take()?;
                Ok(Some(Next::Finished))
            }
            Token::Key => Ok(None),
            _ => Ok(Some(Next::Node { block: false, dashes: false })),
        }
    }

    fn step_flow_pair(&mut self, frame: &mut Frame) -> Result<Next, Error> {
        let (token, mark) = self.scanner.peek()?;
        let node = Next::Node { block: false, dashes: false };
        match frame.wants {
            Wants::Key => {
                frame.wants = Wants::Value;
                if matches!(token, Token::Value | Token::FlowEntry | Token::FlowSequenceEnd) {
                    // libyaml takes the token here, so `[? : x]` is refused later; so do we.
                    self.scanner.take()?;
                    return Ok(Next::Empty(mark));
                }
                Ok(node)
            }
            Wants::Value => {
                frame.wants = Wants::End;
                if *token == Token::Value {
                    self.scanner.take()?;
                    if !matches!(self.scanner.peek()?.0, Token::FlowEntry | Token::FlowSequenceEnd) {
                        return Ok(node);
                    }
                }
                Ok(Next::Empty(mark))
            }
            Wants::NoValue | Wants::End => Ok(Next::Finished),
        }
    }

    fn step_flow_map(&mut self, frame: &mut Frame) -> Result<Next, Error> {
        let (token, mark) = self.scanner.peek()?;
        let node = Next::Node { block: false, dashes: false };
        match frame.wants {
            Wants::NoValue => {
                frame.wants = Wants::Key;
                return Ok(Next::Empty(mark));
            }
            Wants::Value => {
                frame.wants = Wants::Key;
                if *token != Token::Value {
                    return Ok(Next::Empty(mark));
                }
                self.scanner.take()?;
                let (token, mark) = self.scanner.peek()?;
                let empty = matches!(token, Token::FlowEntry | Token::FlowMappingEnd);
                return Ok(if empty { Next::Empty(mark) } else { node });
            }
            Wants::Key | Wants::End => {}
        }
        if *token != Token::FlowMappingEnd && !frame.first {
            if *token != Token::FlowEntry {
                return Err(Self::error(frame.mark, mark, "did not find expected ',' or '}'"));
            }
            self.scanner.take()?;
        }
        frame.first = false;
        match self.scanner.peek()?.0 {
            Token::FlowMappingEnd => {
                self.scanner.take()?;
                Ok(Next::Finished)
            }
            Token::Key => {
                self.scanner.take()?;
                frame.wants = Wants::Value;
                let (token, mark) = self.scanner.peek()?;
                if matches!(token, Token::Value | Token::FlowEntry | Token::FlowMappingEnd) {
                    return Ok(Next::Empty(mark));
                }
                Ok(node)
            }
            _ => {
                frame.wants = Wants::NoValue;
                Ok(node)
            }
        }
    }
}

/// The place behind a one-character token.
fn behind(mark: Mark) -> Mark {
    Mark { column: mark.column + 1, ..mark }
}

/// Go's rule: small documents may consist of aliases nearly wholly, large ones by a tenth.
fn excessive(through_aliases: usize, visited: usize) -> bool {
    const LOW: f64 = 400_000.0;
    const HIGH: f64 = 4_000_000.0;
    if through_aliases <= 100 || visited <= 1000 {
        return false;
    }
    let n = visited as f64;
    let allowed = if n <= LOW {
        0.99
    } else if n >= HIGH {
        0.10
    } else {
        0.99 - 0.89 * ((n - LOW) / (HIGH - LOW))
    };
    through_aliases as f64 / n > allowed
}
