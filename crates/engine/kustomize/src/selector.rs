//! Selectors of patches and replacements: regular expressions for kind, name and namespace, label and
//! annotation selectors.

use std::str::FromStr;

use fl_go::regexp::PatternError;
use fl_types::Selector as LabelSelector;
use fl_yaml::SmolStr;
use regex::Regex;

use crate::resid::{Gvk, ResId};
use crate::resource::Resource;
use crate::tree::metadata_pair;

/// A selector.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Selector {
    /// Group, version and kind: regular expressions.
    pub(crate) gvk: Gvk,
    /// Name: a regular expression.
    pub(crate) name: SmolStr,
    /// Namespace: a regular expression.
    pub(crate) namespace: SmolStr,
    /// Label selector.
    pub(crate) labels: String,
    /// Annotation selector.
    pub(crate) annotations: String,
}

impl Selector {
    /// Whether no part of the identity is set.
    pub(crate) fn has_no_identity(&self) -> bool {
        self.gvk == Gvk::default() && self.name.is_empty() && self.namespace.is_empty()
    }
}

/// An anchored regular expression; most are plain words, which are compared directly.
#[derive(Debug)]
enum Pattern {
    Any,
    Word(SmolStr),
    Expression(Regex),
}

impl Pattern {
    fn new(text: &str) -> Result<Self, SelectorError> {
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

/// Why a selector cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SelectorError {
    #[error("invalid expression `{expression}`: {error}")]
    Expression {
        expression: String,
        #[source]
        error: PatternError,
    },
    #[error(transparent)]
    Labels(#[from] fl_types::SelectorError),
}

/// Compiles a regular expression with a limit on its size. Matching takes linear time.
pub(crate) fn compile(expression: &str) -> Result<Regex, SelectorError> {
    fl_go::regexp::compile(expression)
        .map_err(|error| SelectorError::Expression { expression: expression.to_owned(), error })
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
    pub(crate) fn new(selector: &Selector) -> Result<Self, SelectorError> {
        let pairs = |text: &str| {
            if text.is_empty() {
                return Ok(None);
            }
            LabelSelector::from_str(text).map(Some)
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

    /// Matches group, version, kind, name and namespace of an identity.
    pub(crate) fn matches_id(&self, id: &ResId) -> bool {
        self.name.matches(&id.name) && self.namespace.matches(&id.namespace) && self.matches_gvk(&id.gvk)
    }

    pub(crate) fn matches_pairs(&self, resource: &Resource) -> bool {
        let fits = |selector: &Option<LabelSelector>, field: &str| {
            selector.as_ref().is_none_or(|s| s.matches(|key| metadata_pair(&resource.node, field, key)))
        };
        fits(&self.labels, "labels") && fits(&self.annotations, "annotations")
    }

    /// Whether a patch selects a resource: original or current name and namespace may match.
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

    /// The literal name of the selector, if it is one.
    pub(crate) fn exact_name(&self) -> Option<&str> {
        if let Pattern::Word(word) = &self.name { Some(word) } else { None }
    }

    /// The literal kind of the selector, if it is one.
    pub(crate) fn exact_kind(&self) -> Option<&str> {
        if let Pattern::Word(word) = &self.kind { Some(word) } else { None }
    }
}
