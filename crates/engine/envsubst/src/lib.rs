//! The variable substitution language of Flux's post-build step.
//!
//! `${name}` with shell-like operators as Flux's envsubst library defines them: defaults, substrings, case,
//! pattern removal, replacement, length. `$$` is a dollar sign; `$name` without braces is plain text. Unlike
//! in a shell, `:=` does not assign, `:+` and `:?` are defaults, too, and replacement is literal.
//!
//! ```
//! let text = "image: ${registry:=ghcr.io}/${name,,}:${tag}";
//! let lookup = |name: &str| match name { "name" => Some("WEB".to_owned()), "tag" => Some("1.2".to_owned()), _ => None };
//! assert_eq!(fl_envsubst::expand(text, fl_envsubst::Missing::Refuse, lookup).unwrap(), "image: ghcr.io/web:1.2");
//! ```

mod error;
mod eval;
mod glob;
mod parse;

pub use error::{Error, UnsetVariable};
pub use eval::{Missing, expand, expand_bytes, expand_reporting};
pub use parse::Template;

/// Whether Flux accepts a variable of this name: a letter or underscore, then letters, digits and underscores
/// (ASCII).
#[must_use]
pub fn is_valid_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}
