//! How to read.

use crate::resolve::Dialect;

/// What to do with a key that is there twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duplicates {
    /// An error that names both places.
    Refuse,
    /// The last value counts, at the place of the first.
    LastWins,
    /// Both entries stay.
    Keep,
}

/// What to do with anchors and aliases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aliases {
    /// Every alias becomes a copy of what it stands for; too many of them are refused.
    Expand,
    /// Anchors and aliases stay in the tree (for editing files).
    Keep,
}

/// How to read; start from one of the constructors.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Whose rules apply to keys and tags.
    pub dialect: Dialect,
    /// Keys that are there twice.
    pub duplicates: Duplicates,
    /// Anchors and aliases.
    pub aliases: Aliases,
    /// Whether `<<` merges; otherwise it is an ordinary key.
    pub merge_keys: bool,
    /// Whether a core tag that does not fit its text (`!!int x`) is an error at once.
    pub check_tags: bool,
    /// How deep collections may nest.
    pub max_depth: usize,
}

/// Go stops at 10,000 levels. Code that walks our trees recurses, so the limit leaves room on a small stack.
const MAX_DEPTH: usize = 1000;

impl Options {
    /// As kustomize reads resources: `yaml.v3` rules, aliases and merge keys resolved, duplicates refused.
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

    /// As `sigs.k8s.io/yaml` reads (Helm values, manifests, kubectl): all keys become strings, the last duplicate wins.
    #[must_use]
    pub const fn sigs() -> Self {
        Self { dialect: Dialect::Sigs, duplicates: Duplicates::LastWins, ..Self::v3() }
    }

    /// As `sigs.k8s.io/yaml` reads in strict mode: duplicates are refused.
    #[must_use]
    pub const fn sigs_strict() -> Self {
        Self { duplicates: Duplicates::Refuse, ..Self::sigs() }
    }

    /// For files that are changed and written back: anchors, aliases and merge keys stay.
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
