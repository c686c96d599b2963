//! Options for parsing.

use crate::resolve::Dialect;

/// Handling of duplicate keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duplicates {
    /// An error that names both positions.
    Refuse,
    /// The last value wins, at the position of the first.
    LastWins,
    /// Both entries are kept.
    Keep,
}

/// Handling of anchors and aliases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aliases {
    /// Every alias becomes a copy of its anchor; too many of them are an error.
    Expand,
    /// Anchors and aliases are kept in the tree, for editing files.
    Keep,
}

/// Options for parsing; start from one of the constructors.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// The library whose rules apply to keys and tags.
    pub dialect: Dialect,
    /// Handling of duplicate keys.
    pub duplicates: Duplicates,
    /// Anchors and aliases.
    pub aliases: Aliases,
    /// Whether `<<` merges; otherwise it is an ordinary key.
    pub merge_keys: bool,
    /// Whether a core tag that does not match its text (`!!int x`) is an error immediately.
    pub check_tags: bool,
    /// Maximum nesting of collections.
    pub max_depth: usize,
}

/// Go's limit is 10,000 levels. Code that walks the tree recurses, so this one suits a small stack.
const MAX_DEPTH: usize = 1000;

impl Options {
    /// kustomize's resources: rules of `yaml.v3`, aliases and merge keys resolved, duplicates rejected.
    #[must_use]
    pub const fn v3() -> Self {
        Self {
            dialect: Dialect::V3,
            duplicates: Duplicates::Refuse,
            aliases: Aliases::Expand,
            merge_keys: true,
            check_tags: true,
            max_depth: MAX_DEPTH,
        }
    }

    /// `sigs.k8s.io/yaml` (Helm values, manifests, kubectl): all keys become strings, the last duplicate
    /// wins.
    #[must_use]
    pub const fn sigs() -> Self {
        Self { dialect: Dialect::Sigs, duplicates: Duplicates::LastWins, ..Self::v3() }
    }

    /// `sigs.k8s.io/yaml` in strict mode: duplicates are rejected.
    #[must_use]
    pub const fn sigs_strict() -> Self {
        Self { duplicates: Duplicates::Refuse, ..Self::sigs() }
    }

    /// For files that are edited: anchors, aliases and merge keys are kept.
    #[must_use]
    pub const fn editing() -> Self {
        Self {
            aliases: Aliases::Keep,
            merge_keys: false,
            check_tags: false,
            duplicates: Duplicates::Keep,
            ..Self::v3()
        }
    }
}
