//! Builds nodes: open collections, entries, anchors.

use std::borrow::Cow;

use rustc_hash::FxHashSet;
use smol_str::SmolStr;
use thin_vec::ThinVec;

use super::Parser;
use crate::error::{Error, Stage};
use crate::map::{Entry, Map};
use crate::node::{Node, Style, Tag, Value};
use crate::options::{Aliases, Duplicates};
use crate::resolve::Dialect;
use crate::scanner::Mark;
use crate::{merge, resolve};

/// Mappings up to this size find duplicates by comparison, larger ones with a hash table.
const SMALL_MAP: usize = 12;

#[derive(Debug)]
pub(super) enum Anchored {
    Unfinished,
    Finished { node: Node, visits: usize },
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    BlockSeq,
    /// A sequence at the indentation of its key.
    DashesOnly,
    BlockMap,
    FlowSeq,
    FlowMap,
    /// `a: b` as an item of a flow sequence.
    FlowPair,
}

/// What a mapping expects next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Expects {
    Key,
    Value,
    /// The value of a key in a flow mapping without `:`.
    NoValue,
    End,
}

/// An open collection. Its items or entries are those from `start` on.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) kind: Kind,
    pub(super) wants: Expects,
    pub(super) first: bool,
    merges: bool,
    tag: Tag,
    pub(super) mark: Mark,
    start: usize,
    visits_before: usize,
    key: Option<Node>,
    /// Tag and anchor, if any.
    properties: Option<Box<Properties>>,
    seen: Option<Box<FxHashSet<SmolStr>>>,
}

/// The properties before a node.
#[derive(Debug, Default)]
pub(super) struct Properties {
    pub(super) tag: Tag,
    pub(super) custom_tag: SmolStr,
    pub(super) anchor: SmolStr,
}

impl<'a> Parser<'a> {
    pub(super) fn open(&mut self, kind: Kind, mark: Mark, p: Properties) -> Result<(), Error> {
        if self.stack.len() >= self.options.max_depth {
            let message = format!("exceeded max depth of {}", self.options.max_depth);
            return Err(Self::error(mark, mark, &message));
        }
        if !p.anchor.is_empty() {
            self.anchors.insert(p.anchor.clone(), Anchored::Unfinished);
        }
        let start = match kind {
            Kind::BlockSeq | Kind::DashesOnly | Kind::FlowSeq => self.items.len(),
            Kind::BlockMap | Kind::FlowMap | Kind::FlowPair => self.entries.len(),
        };
        let tag = p.tag;
        let special = !(p.anchor.is_empty() && p.custom_tag.is_empty());
        self.stack.push(Frame {
            kind,
            wants: Expects::Key,
            first: true,
            merges: false,
            tag,
            mark,
            start,
            visits_before: self.visited,
            key: None,
            properties: special.then(|| Box::new(p)),
            seen: None,
        });
        self.visited += 1;
        Ok(())
    }

    /// The innermost open collection.
    #[inline]
    pub(super) fn frame(&mut self) -> &mut Frame {
        self.stack.last_mut().expect("a collection is open here")
    }

    /// A scalar without properties.
    #[inline]
    pub(super) fn plain_scalar(&mut self, text: &str, style: Style, mark: Mark) -> Node {
        self.visited += 1;
        Node::read(Value::Scalar(SmolStr::new(text)), mark.line + 1, mark.column + 1, style, Tag::Auto)
    }

    pub(super) fn scalar(&mut self, text: Cow<'a, str>, style: Style, mark: Mark, p: Properties) -> Node {
        self.visited += 1;
        let text = match text {
            Cow::Borrowed(slice) => SmolStr::new(slice),
            Cow::Owned(string) => SmolStr::from(string),
        };
        let mut node = Node::read(Value::Scalar(text), mark.line + 1, mark.column + 1, style, p.tag);
        if !p.custom_tag.is_empty() {
            node.extra_mut().tag = p.custom_tag;
        }
        if node.tag != Tag::Auto
            && self.options.check_tags
            && let Err(error) = resolve::resolve_node(&node, self.options.dialect)
        {
            self.defer(error);
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

    pub(super) fn alias(&mut self, name: &str, mark: Mark) -> Result<Node, Error> {
        let problem = |message: String| Error::at(Stage::Decoder, mark.line, mark.column, message);
        self.visited += 1;
        match self.anchors.get(name) {
            None => Err(problem(format!("unknown anchor '{name}' referenced"))),
            Some(_) if self.options.aliases == Aliases::Keep => {
                let text = Value::Scalar(SmolStr::new(name));
                Ok(Node::read(text, mark.line + 1, mark.column + 1, Style::Alias, Tag::Auto))
            }
            // Reported after parsing, because errors of the syntax take precedence.
            Some(Anchored::Unfinished) => {
                self.defer(problem(format!("anchor '{name}' value contains itself")));
                Ok(Node::null())
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

    /// Adds a finished node to the innermost open collection.
    pub(super) fn add_node(&mut self, node: Node) {
        let dropped = self.is_discarded();
        let frame = self.stack.last_mut().expect("a collection is open here");
        match frame.kind {
            Kind::BlockSeq | Kind::DashesOnly | Kind::FlowSeq if dropped => {}
            Kind::BlockSeq | Kind::DashesOnly | Kind::FlowSeq => self.items.push(node),
            Kind::BlockMap | Kind::FlowMap | Kind::FlowPair => match frame.key.take() {
                None => self.set_key(node),
                Some(key) => {
                    if let Err(error) = self.add_entry(key, node) {
                        self.defer(error);
                    }
                }
            },
        }
    }

    /// Keeps an error until the text has been parsed. Errors of the conversion to JSON have the lowest
    /// precedence.
    fn defer(&mut self, error: Error) {
        match &self.deferred {
            Some(first) if first.stage != Stage::Converter || error.stage == Stage::Converter => {}
            _ => self.deferred = Some(error),
        }
    }

    fn add_entry(&mut self, mut key: Node, value: Node) -> Result<(), Error> {
        let options = &self.options;
        let frame = self.stack.last_mut().expect("a mapping is open here");
        if options.merge_keys && merge::is_merge_key(&key, options.dialect) {
            if options.dialect == Dialect::Sigs {
                // `yaml.v2` merges immediately: keys before it are overwritten, keys after it overwrite.
                return merge::merge_now(&mut self.entries, frame.start, &key, value, options);
            }
            frame.merges = true;
            self.entries.push(Entry { key, value });
            return Ok(());
        }
        if options.merge_keys && options.dialect == Dialect::V3 && key.as_text() == Some("<<") {
            // kustomize removes the key by name after looking for merges, quoted or not.
            return Ok(());
        }
        if options.dialect == Dialect::Sigs {
            merge::make_string_key(&mut key, &value)?;
        }
        if self.is_discarded() {
            return Ok(());
        }
        let frame = self.stack.last_mut().expect("a mapping is open here");
        let entries = &mut self.entries[frame.start..];
        let duplicate = match (options.duplicates, &key.value) {
            (Duplicates::Keep, _) => None,
            (_, Value::Scalar(name)) if entries.len() <= SMALL_MAP => merge::find(entries, name),
            (_, Value::Scalar(name)) => {
                let seen = frame.seen.get_or_insert_with(|| {
                    Box::new(entries.iter().filter_map(|e| e.name().map(SmolStr::new)).collect())
                });
                if seen.insert(name.clone()) { None } else { merge::find(entries, name) }
            }
            _ => None,
        };
        match duplicate {
            None => self.entries.push(Entry { key, value }),
            Some(at) if options.duplicates == Duplicates::LastWins => entries[at].value = value,
            Some(at) => return Err(merge::duplicate(&entries[at].key, &key, &value, options.dialect)),
        }
        Ok(())
    }

    /// Closes the innermost collection.
    pub(super) fn finish(&mut self) -> Node {
        let frame = self.stack.pop().expect("only an open collection can finish");
        let (value, style) = match frame.kind {
            Kind::BlockSeq | Kind::DashesOnly => (self.finished_seq(frame.start), Style::Plain),
            Kind::FlowSeq => (self.finished_seq(frame.start), Style::Flow),
            Kind::BlockMap => (self.finished_map(&frame), Style::Plain),
            Kind::FlowMap | Kind::FlowPair => (self.finished_map(&frame), Style::Flow),
        };
        let mut node = Node::read(value, frame.mark.line + 1, frame.mark.column + 1, style, frame.tag);
        if let Some(properties) = frame.properties {
            if !properties.custom_tag.is_empty() {
                node.extra_mut().tag = properties.custom_tag;
            }
            if !properties.anchor.is_empty() {
                self.keep_anchor(properties.anchor, &mut node, self.visited - frame.visits_before);
            }
        }
        node
    }

    fn finished_seq(&mut self, start: usize) -> Value {
        let mut items = ThinVec::with_capacity(self.items.len() - start);
        items.extend(self.items.drain(start..));
        Value::Seq(items)
    }

    fn finished_map(&mut self, frame: &Frame) -> Value {
        let mut map = Map::with_capacity(self.entries.len() - frame.start);
        map.entries_mut().extend(self.entries.drain(frame.start..));
        if frame.merges {
            map = merge::merge_finished(map).unwrap_or_else(|error| {
                self.defer(error);
                Map::default()
            });
        }
        Value::Map(map)
    }

    /// Sets the next key of the innermost mapping.
    #[inline]
    pub(super) fn set_key(&mut self, key: Node) {
        if let (Some(wanted), [_]) = (self.wanted, &self.stack[..]) {
            self.discarded = key.as_text().is_some_and(|key| !wanted(key));
        }
        self.frame().key = Some(key);
    }

    /// Whether the content of the innermost collection is discarded.
    #[inline]
    pub(super) fn is_discarded(&self) -> bool {
        self.discarded && self.stack.len() > 1
    }
}

/// Go's limit: small documents may consist almost entirely of aliases, large ones to a tenth.
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
