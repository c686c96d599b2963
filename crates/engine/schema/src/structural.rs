//! The structural schema: compact, shareable, without descriptions.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use regex::Regex;
use serde_json::Value;

use crate::node::Node;

/// Name of a field, definition or format: borrowed from the tables, or owned by a parsed schema.
pub type Name = Cow<'static, str>;

/// The JSON type of a schema; `Any` if `type` is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Type {
    #[default]
    Any,
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

impl Type {
    /// The value of `type`; empty for [`Type::Any`].
    pub fn as_str(self) -> &'static str {
        match self {
            Type::Any => "",
            Type::Object => "object",
            Type::Array => "array",
            Type::String => "string",
            Type::Integer => "integer",
            Type::Number => "number",
            Type::Boolean => "boolean",
        }
    }
}

/// `x-kubernetes-list-type`. An absent one means atomic for apply, but validation distinguishes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ListType {
    #[default]
    Unset,
    Atomic,
    Set,
    Map,
}

/// `x-kubernetes-map-type`. Absent means granular.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MapType {
    #[default]
    Unset,
    Granular,
    Atomic,
}

/// `x-kubernetes-patch-strategy`, for strategic merge patches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PatchStrategy {
    pub merge: bool,
    pub replace: bool,
    pub retain_keys: bool,
}

/// How strategic merge patch treats the field.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Patch {
    pub strategy: PatchStrategy,
    pub merge_key: Option<Name>,
}

/// `additionalProperties` of an object.
#[derive(Debug, Clone, Default)]
pub enum Additional {
    /// Absent.
    #[default]
    Unset,
    /// `additionalProperties: true` or `false`.
    Allowed(bool),
    /// A map of values of one schema.
    Schema(Node),
}

/// Properties sorted by name, found by binary search.
#[derive(Debug, Clone, Default)]
pub struct Properties(Vec<(Name, Node)>);

impl Properties {
    /// Sorts; a later duplicate of a name wins.
    pub fn new(mut list: Vec<(Name, Node)>) -> Self {
        list.sort_by(|a, b| a.0.cmp(&b.0));
        list.reverse();
        list.dedup_by(|a, b| a.0 == b.0);
        list.reverse();
        Self(list)
    }

    pub fn get(&self, name: &str) -> Option<&Node> {
        self.0.binary_search_by(|(n, _)| n.as_ref().cmp(name)).ok().map(|at| &self.0[at].1)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.0.iter().map(|(n, s)| (n.as_ref(), s))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl FromIterator<(Name, Node)> for Properties {
    fn from_iter<I: IntoIterator<Item = (Name, Node)>>(iter: I) -> Self {
        Self::new(iter.into_iter().collect())
    }
}

/// A numeric bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Number(pub f64);

/// One entry of `x-kubernetes-validations`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CelRule {
    pub rule: String,
    pub message: String,
    pub message_expression: String,
    pub reason: Option<String>,
    pub field_path: String,
    pub optional_old_self: Option<bool>,
}

/// Value validations, kept apart from the structure because most nodes have none.
#[derive(Debug, Default)]
pub struct Rules {
    pub required: Vec<Name>,
    pub enumeration: Vec<Value>,
    pub pattern: Option<String>,
    pub minimum: Option<Number>,
    pub exclusive_minimum: bool,
    pub maximum: Option<Number>,
    pub exclusive_maximum: bool,
    pub multiple_of: Option<Number>,
    pub min_length: Option<i64>,
    pub max_length: Option<i64>,
    pub min_items: Option<i64>,
    pub max_items: Option<i64>,
    pub unique_items: bool,
    pub min_properties: Option<i64>,
    pub max_properties: Option<i64>,
    pub all_of: Vec<Node>,
    pub any_of: Vec<Node>,
    pub one_of: Vec<Node>,
    pub not: Option<Node>,
    pub cel: Vec<CelRule>,
    pub(crate) regex: OnceLock<Option<Regex>>,
}

impl Rules {
    /// The compiled pattern; `None` if there is none or it does not compile, which CRD validation rejects.
    pub fn regex(&self) -> Option<&Regex> {
        self.regex
            .get_or_init(|| self.pattern.as_deref().and_then(|p| fl_go::regexp::compile(p).ok()))
            .as_ref()
    }
}

/// A schema node.
#[derive(Debug, Clone, Default)]
pub struct Schema {
    /// Definition name such as `io.k8s.api.apps.v1.DeploymentSpec`, for named built-in types only.
    pub name: Option<Name>,
    /// Go's type for error messages, where it cannot be derived from the name, such as `v1.PullPolicy`.
    pub go_type: Option<Name>,
    pub ty: Type,
    pub format: Option<Name>,
    pub nullable: bool,
    pub int_or_string: bool,
    pub embedded_resource: bool,
    pub preserve_unknown: bool,
    pub list: ListType,
    pub list_keys: Vec<Name>,
    pub map: MapType,
    pub patch: Patch,
    pub properties: Arc<Properties>,
    pub items: Option<Node>,
    pub additional: Additional,
    pub default: Option<Arc<Value>>,
    pub rules: Option<Arc<Rules>>,
}

impl Schema {
    /// The schema of the named property.
    pub fn property(&self, name: &str) -> Option<&Node> {
        self.properties.get(name)
    }

    /// The schema of the values of a map.
    pub fn map_values(&self) -> Option<&Node> {
        match &self.additional {
            Additional::Schema(node) => Some(node),
            _ => None,
        }
    }

    /// The schema of a member of an object: a property, else the map's value schema.
    pub fn member(&self, name: &str) -> Option<&Node> {
        self.property(name).or_else(|| self.map_values())
    }

    /// Whether the node does not specify its content, so that apply deduces the structure from values.
    pub fn is_untyped(&self) -> bool {
        !self.int_or_string
            && matches!(self.ty, Type::Any | Type::Object)
            && self.properties.is_empty()
            && !matches!(self.additional, Additional::Schema(_))
            && self.items.is_none()
    }
}
