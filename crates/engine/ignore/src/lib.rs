//! Which files of a source are left out of its artifact.
//!
//! The syntax is that of gitignore, the matching that of the library Flux uses, which differs from git's in ways that users'
//! repositories depend on: a directory that is ignored does not hide a file that a later line re-includes, `a/**` matches
//! `a` itself, and a `**` glued to other characters never matches.
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
