//! Selectors of patches and replacements: expressions for kind, name and namespace, label and annotation selectors.

use std::str::FromStr;

use fl_types::Selector as LabelSelector;
use fl_yaml::SmolStr;
use regex::Regex;

use crate::ident::{Gvk, ResId};
use crate::resource::Resource;
use crate::tree::metadata_pair;

/// A selector as written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Selector {
    /// Group, version and kind: expressions.
    pub(crate) gvk: Gvk,
    /// Name: an expression.
    pub(crate) name: SmolStr,
    /// Namespace: an expression.
    pub(crate) namespace: SmolStr,
    /// Label selector.
    pub(crate) labels: String,
    /// Annotation selector.
    pub(crate) annotations: String,
}

impl Selector {
    /// Whether no part of the identity is named.
    pub(crate) fn names_nothing(&self) -> bool {
        self.gvk == Gvk::default() && self.name.is_empty() && self.namespace.is_empty()
    }
}

/// An anchored expression; most are plain words and need no automaton.
#[derive(Debug)]
enum Pattern {
    Any,
    Word(SmolStr),
    Expression(Regex),
}

impl Pattern {
    fn new(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Pattern::Any);
        }
        if text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'/')) {
            return Ok(Pattern::Word(text.into()));
        }
        compile(&format!("^(?:{text})$")).map(Pattern::Expression)
    }

    fn matches(&self, text: &str) -> bool {
        match self {
            Pattern::Any => true,
            Pattern::Word(word) => word == text,
            Pattern::Expression(expression) => expression.is_match(text),
        }
    }
}

/// Compiles an expression with a bound on its size: hostile ones are refused, all others run in linear time.
pub(crate) fn compile(expression: &str) -> Result<Regex, String> {
    fl_goregex::compile(expression).map_err(|why| format!("invalid expression `{expression}`: {why}"))
}

/// A compiled selector.
#[derive(Debug)]
pub(crate) struct Matcher {
    group: Pattern,
    version: Pattern,
    kind: Pattern,
    name: Pattern,
    namespace: Pattern,
    labels: Option<LabelSelector>,
    annotations: Option<LabelSelector>,
}

impl Matcher {
    pub(crate) fn new(selector: &Selector) -> Result<Self, String> {
        let pairs = |text: &str| {
            if text.is_empty() {
                return Ok(None);
            }
            LabelSelector::from_str(text).map(Some).map_err(|e| e.to_string())
        };
        Ok(Self {
            group: Pattern::new(&selector.gvk.group)?,
            version: Pattern::new(&selector.gvk.version)?,
            kind: Pattern::new(&selector.gvk.kind)?,
            name: Pattern::new(&selector.name)?,
            namespace: Pattern::new(&selector.namespace)?,
            labels: pairs(&selector.labels)?,
            annotations: pairs(&selector.annotations)?,
        })
    }

    pub(crate) fn matches_gvk(&self, gvk: &Gvk) -> bool {
        self.kind.matches(&gvk.kind) && self.group.matches(&gvk.group) && self.version.matches(&gvk.version)
    }

    /// Group, version, kind, name and namespace as they stand in the identity.
    pub(crate) fn matches_id(&self, id: &ResId) -> bool {
        self.name.matches(&id.name) && self.namespace.matches(&id.namespace) && self.matches_gvk(&id.gvk)
    }

    pub(crate) fn matches_pairs(&self, resource: &Resource) -> bool {
        let fits = |selector: &Option<LabelSelector>, field: &str| {
            selector.as_ref().is_none_or(|s| s.matches(|key| metadata_pair(&resource.node, field, key)))
        };
        fits(&self.labels, "labels") && fits(&self.annotations, "annotations")
    }

    /// The selection of patches: the original or the current name and namespace may match.
    pub(crate) fn selects(&self, resource: &Resource) -> bool {
        let current = &resource.id;
        if !self.matches_gvk(&current.gvk) {
            return false;
        }
        let either = |pattern: &Pattern, original: &str, now: &str| {
            pattern.matches(now) || (original != now && pattern.matches(original))
        };
        let (name, namespace) = resource.original();
        either(&self.name, name, &current.name)
            && either(&self.namespace, namespace, current.effective_namespace())
            && self.matches_pairs(resource)
    }

    /// The name that every selected object has or had, when the selector spells one out.
    pub(crate) fn exact_name(&self) -> Option<&str> {
        if let Pattern::Word(word) = &self.name { Some(word) } else { None }
    }

    /// The kind that every selected object has, when the selector spells one out.
    pub(crate) fn exact_kind(&self) -> Option<&str> {
        if let Pattern::Word(word) = &self.kind { Some(word) } else { None }
    }
}
