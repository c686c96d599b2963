//! Go's regular expressions: used in selectors, filters, schemas, rules and templates.

mod translate;

use ::regex::{Regex, RegexBuilder};

pub use translate::{SyntaxError, translate, unique_group_name};

/// Maximum size of a compiled program, so that a malicious pattern cannot exhaust memory.
pub const MAX_PROGRAM: usize = 4 << 20;
/// Maximum nesting of groups.
pub const MAX_NESTING: u32 = 250;

/// Error of compiling a regular expression, with Go's message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("error parsing regexp: {0}")]
    Syntax(String),
    #[error("regular expression is too large")]
    TooLarge,
}

impl PatternError {
    /// Error of the `regex` crate for a translated pattern.
    #[must_use]
    pub fn from_engine(error: &regex::Error) -> Self {
        match error {
            regex::Error::CompiledTooBig(_) => Self::TooLarge,
            // The crate's message spans several lines; the last one has the cause.
            other => {
                let text = other.to_string();
                let last = text.lines().last().unwrap_or_default();
                Self::Syntax(last.trim_start_matches("error: ").to_owned())
            }
        }
    }
}

/// Compiles a pattern; matching takes linear time.
pub fn compile(pattern: &str) -> Result<Regex, PatternError> {
    let bytes = pattern.as_bytes();
    let translated = translate(bytes).map_err(|error| PatternError::Syntax(error.text(bytes)))?;
    RegexBuilder::new(&translated)
        .size_limit(MAX_PROGRAM)
        .dfa_size_limit(MAX_PROGRAM)
        .nest_limit(MAX_NESTING)
        .build()
        .map_err(|error| PatternError::from_engine(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded from Go 1.24's `regexp.Compile`.
    #[test]
    fn error_messages_match_go() {
        let refused = [
            ("(", "missing closing ): `(`"),
            ("a)", "unexpected ): `a)`"),
            ("[a", "missing closing ]: `[a`"),
            ("*a", "missing argument to repetition operator: `*`"),
            ("a**", "invalid nested repetition operator: `**`"),
            ("a{2000}", "invalid repeat count: `{2000}`"),
            ("a{2,1}", "invalid repeat count: `{2,1}`"),
            ("(a{100}){100}", "invalid repeat count: `{100}`"),
            ("((a{10}){10}){11}", "invalid repeat count: `{11}`"),
            ("x{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
            ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
            ("[b-a]", "invalid character class range: `b-a`"),
            ("(?P<>a)", "invalid named capture: `(?P<>`"),
            (r"\pX", r"invalid character class range: `\pX`"),
            ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
            (r"\y", r"invalid escape sequence: `\y`"),
        ];
        for (pattern, why) in refused {
            let error = compile(pattern).expect_err(pattern).to_string();
            assert_eq!(error, format!("error parsing regexp: {why}"), "{pattern}");
        }
    }

    #[test]
    fn go_patterns_are_accepted() {
        for pattern in ["(a{100}){10}", "(?P<n>a)(?P<n>b)", r"\Q", "^*", "a{,2}", r"[\d-z]", "(a{1000}|b){1}"]
        {
            assert!(compile(pattern).is_ok(), "{pattern}");
        }
    }

    #[test]
    fn shorthands_are_ascii() {
        let digits = compile(r"^\d+$").expect("a pattern");
        assert!(digits.is_match("42"));
        assert!(!digits.is_match("٤٢"), "Arabic digits are none to Go");
        assert!(compile(r"^\Qa.b\E$").expect("a pattern").is_match("a.b"));
    }

    #[test]
    fn compiled_size_is_limited() {
        let hostile = r"[\pL\pN]{1000}".repeat(100);
        assert_eq!(compile(&hostile).err(), Some(PatternError::TooLarge));
    }
}
