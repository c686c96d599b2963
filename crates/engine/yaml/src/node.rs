//! The tree: 40 bytes per node, cheap to clone, with positions.

use smol_str::SmolStr;
use thin_vec::ThinVec;

use crate::map::Map;
use crate::resolve::{Dialect, Scalar};

/// The style a node was or will be written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Style {
    /// Plain scalar, block collection: no quotes, no brackets.
    #[default]
    Plain,
    /// `'…'`
    SingleQuoted,
    /// `"…"`
    DoubleQuoted,
    /// `|`
    Literal,
    /// `>`
    Folded,
    /// `[…]` and `{…}`
    Flow,
    /// `*name`: an alias whose text is the name. Only with [`crate::Aliases::Keep`].
    Alias,
}

/// The tag of a node. `Auto` means none: text and style decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tag {
    /// No tag: resolved from text and style on demand.
    #[default]
    Auto,
    /// `!!str`
    Str,
    /// `!!int`
    Int,
    /// `!!float`
    Float,
    /// `!!bool`
    Bool,
    /// `!!null`
    Null,
    /// `!!timestamp`
    Timestamp,
    /// `!!binary`
    Binary,
    /// `!!merge`
    Merge,
    /// `!!map`
    Map,
    /// `!!seq`
    Seq,
    /// `!`: non-specific; a scalar is plain then, even if it is quoted.
    NonSpecific,
    /// Any other tag; its text is in [`Node::custom_tag`].
    Custom,
}

/// Rare attributes, kept apart so that nodes stay small.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extra {
    /// The text of a tag that is not one of the core ones (`!custom`, `tag:example.com,2000:x`).
    pub tag: SmolStr,
    /// The name given with `&name`; kept only with [`crate::Aliases::Keep`].
    pub anchor: SmolStr,
    /// Comment lines above the node, with their `#`.
    pub head_comment: SmolStr,
    /// The comment at the end of the node's line, with its `#`.
    pub line_comment: SmolStr,
    /// Comment lines below the node, with their `#`.
    pub foot_comment: SmolStr,
}

/// The content of a node.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A scalar: its text without quotes, escapes and folding.
    Scalar(SmolStr),
    /// A sequence.
    Seq(ThinVec<Node>),
    /// A mapping in the order of the text.
    Map(Map),
}

/// One node of a YAML document.
#[derive(Debug, Clone)]
pub struct Node {
    /// The content.
    pub value: Value,
    line: u32,
    column: u16,
    /// The style it was written in.
    pub style: Style,
    /// The explicit tag, or [`Tag::Auto`].
    pub tag: Tag,
    extra: Option<Box<Extra>>,
}

/// Compares contents. Positions and comments are ignored; styles and tags count only if they change the
/// meaning.
impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        let meaning = |n: &Node| (n.tag, n.is_quoted());
        match (&self.value, &other.value) {
            (Value::Scalar(a), Value::Scalar(b)) => a == b && meaning(self) == meaning(other),
            (a, b) => a == b,
        }
    }
}

impl From<Value> for Node {
    fn from(value: Value) -> Self {
        Self { value, line: 0, column: 0, style: Style::Plain, tag: Tag::Auto, extra: None }
    }
}

impl Default for Node {
    fn default() -> Self {
        Self::null()
    }
}

impl Node {
    /// A plain scalar whose type follows from its text, as if it was parsed.
    #[must_use]
    pub fn plain(text: impl Into<SmolStr>) -> Self {
        Self::from(Value::Scalar(text.into()))
    }

    /// A string, whatever it looks like.
    #[must_use]
    pub fn string(text: impl Into<SmolStr>) -> Self {
        Self { tag: Tag::Str, ..Self::plain(text) }
    }

    /// `null`
    #[must_use]
    pub fn null() -> Self {
        Self { tag: Tag::Null, ..Self::plain(SmolStr::new_static("null")) }
    }

    /// `true` or `false`
    #[must_use]
    pub fn bool(value: bool) -> Self {
        Self { tag: Tag::Bool, ..Self::plain(SmolStr::new_static(if value { "true" } else { "false" })) }
    }

    /// An integer.
    #[must_use]
    pub fn int(value: i64) -> Self {
        Self { tag: Tag::Int, ..Self::plain(smol_str::format_smolstr!("{value}")) }
    }

    /// A float, printed as by Go's encoding/json.
    #[must_use]
    pub fn float(value: f64) -> Self {
        let mut text = String::new();
        fl_go::float::push_json(&mut text, value);
        Self { tag: Tag::Float, ..Self::plain(text) }
    }

    /// A sequence.
    #[must_use]
    pub fn seq(items: impl IntoIterator<Item = Node>) -> Self {
        Self::from(Value::Seq(items.into_iter().collect()))
    }

    /// An empty mapping.
    #[must_use]
    pub fn map() -> Self {
        Self::from(Value::Map(Map::default()))
    }

    pub(crate) fn read(value: Value, line: u32, column: u32, style: Style, tag: Tag) -> Self {
        Self { value, line, column: u16::try_from(column).unwrap_or(u16::MAX), style, tag, extra: None }
    }

    /// The line of its first character, from 1; 0 if it was created by a program.
    #[must_use]
    pub fn line(&self) -> u32 {
        self.line
    }

    /// The column of its first character, from 1 (at most 65535); 0 if it was created by a program.
    #[must_use]
    pub fn column(&self) -> u32 {
        u32::from(self.column)
    }

    /// Takes over the position of `other`, for nodes that replace a parsed one.
    pub fn set_position_of(&mut self, other: &Node) {
        (self.line, self.column) = (other.line, other.column);
    }

    /// The text of a scalar.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar(text) if self.style != Style::Alias => Some(text),
            _ => None,
        }
    }

    /// The mapping, if it is one.
    #[must_use]
    pub fn as_map(&self) -> Option<&Map> {
        if let Value::Map(map) = &self.value { Some(map) } else { None }
    }

    /// The mapping, if it is one, mutable.
    pub fn as_map_mut(&mut self) -> Option<&mut Map> {
        if let Value::Map(map) = &mut self.value { Some(map) } else { None }
    }

    /// The items, if it is a sequence.
    #[must_use]
    pub fn as_seq(&self) -> Option<&[Node]> {
        if let Value::Seq(items) = &self.value { Some(items) } else { None }
    }

    /// The items, if it is a sequence, mutable.
    pub fn as_seq_mut(&mut self) -> Option<&mut ThinVec<Node>> {
        if let Value::Seq(items) = &mut self.value { Some(items) } else { None }
    }

    /// The value of a key, if it is a mapping that has it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.as_map()?.get(key)
    }

    /// The value of a key, if it is a mapping that has it, mutable.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.as_map_mut()?.get_mut(key)
    }

    /// The node at a path of keys.
    #[must_use]
    pub fn at(&self, path: &[&str]) -> Option<&Node> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    /// Whether it is a scalar.
    #[must_use]
    pub fn is_scalar(&self) -> bool {
        matches!(self.value, Value::Scalar(_))
    }

    /// Whether it is a scalar in quotes or a block scalar.
    #[must_use]
    pub fn is_quoted(&self) -> bool {
        matches!(self.style, Style::SingleQuoted | Style::DoubleQuoted | Style::Literal | Style::Folded)
    }

    /// The typed value of a scalar in `dialect`; `None` for collections and for tags that do not match their
    /// text.
    #[must_use]
    pub fn scalar(&self, dialect: Dialect) -> Option<Scalar<'_>> {
        crate::resolve::resolve_node(self, dialect).ok()
    }

    /// The text, if it is a scalar that is a string in `dialect`.
    #[must_use]
    pub fn as_str(&self, dialect: Dialect) -> Option<&str> {
        let text = self.as_text()?;
        (self.short_tag(dialect) == Tag::Str).then_some(text)
    }

    /// Whether it is null in `dialect`.
    #[must_use]
    pub fn is_null(&self, dialect: Dialect) -> bool {
        self.is_scalar() && self.short_tag(dialect) == Tag::Null
    }

    /// The resolved tag: never `Auto` or `NonSpecific`.
    #[must_use]
    pub fn short_tag(&self, dialect: Dialect) -> Tag {
        match (&self.value, self.tag) {
            (Value::Scalar(text), Tag::Auto) if !self.is_quoted() => crate::resolve::tag_of(text, dialect),
            (Value::Scalar(text), Tag::NonSpecific) if dialect == Dialect::V3 && !self.is_quoted() => {
                crate::resolve::tag_of(text, dialect)
            }
            (Value::Scalar(_), Tag::Auto | Tag::NonSpecific) => Tag::Str,
            (Value::Seq(_), Tag::Auto | Tag::NonSpecific) => Tag::Seq,
            (Value::Map(_), Tag::Auto | Tag::NonSpecific) => Tag::Map,
            (_, tag) => tag,
        }
    }

    /// The text of a tag that is not a core one.
    #[must_use]
    pub fn custom_tag(&self) -> Option<&str> {
        self.extra.as_deref().filter(|_| self.tag == Tag::Custom).map(|e| e.tag.as_str())
    }

    /// Anchor, comments and custom tag, if it has any.
    #[must_use]
    pub fn extra(&self) -> Option<&Extra> {
        self.extra.as_deref()
    }

    /// Anchor, comments and custom tag, mutable.
    pub fn extra_mut(&mut self) -> &mut Extra {
        self.extra.get_or_insert_default()
    }

    /// Number of nodes, including itself and keys.
    #[must_use]
    pub fn count(&self) -> usize {
        1 + match &self.value {
            Value::Scalar(_) => 0,
            Value::Seq(items) => items.iter().map(Node::count).sum(),
            Value::Map(map) => map.iter().map(|e| e.key.count() + e.value.count()).sum(),
        }
    }
}
