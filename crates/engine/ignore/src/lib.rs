//! Ignore rules: which files of a source are excluded from its artifact.
//!
//! The syntax is that of gitignore; matching follows go-git, the library Flux uses. It differs from git in
//! ways that repositories depend on: an ignored directory does not hide a file that a later line re-includes,
//! `a/**` matches `a` itself, and a `**` next to other characters never matches.
//!
//! ```
//! use fl_ignore::Rules;
//!
//! let rules = Rules::for_source([("", "/*\n!/deploy\n")], None);
//! assert!(rules.ignores("README.md", false));
//! assert!(!rules.ignores("deploy/app.yaml", false));
//! ```

mod glob;
mod pattern;
mod rules;

pub use rules::{IGNORE_FILE, Rules};
