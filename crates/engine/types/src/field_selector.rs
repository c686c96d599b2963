//! Field selectors: `metadata.name=x,status.phase!=Running`, with `\,`, `\=` and `\\` escapes in values.

use std::fmt;
use std::str::FromStr;

use crate::text_serde::text_serde;

/// A parsed field selector; all requirements must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    requirements: Vec<FieldRequirement>,
}

/// One comparison of a field with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRequirement {
    /// Path of the field as the resource declares it: `metadata.name`.
    pub field: String,
    /// Equal or not.
    pub operator: FieldOperator,
    /// The value, unescaped.
    pub value: String,
}

/// Operator of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldOperator {
    /// `=` or `==`
    Equals,
    /// `!=`
    NotEquals,
}

/// Why a text is not a field selector, with Kubernetes' messages.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldSelectorError {
    /// A term without an operator.
    #[error("invalid selector: '{selector}'; can't understand '{term}'")]
    Term {
        /// The whole selector.
        selector: String,
        /// The term.
        term: String,
    },
    /// A backslash before a character that needs no escape.
    #[error("invalid field selector: invalid escape sequence: {0}")]
    Escape(String),
    /// An unescaped comma or equals sign in a value; Kubernetes prints its code point.
    #[error("invalid field selector: unescaped character in value: {}", u32::from(*.0))]
    Unescaped(char),
}

impl FieldSelector {
    /// The requirements, sorted by their text.
    #[must_use]
    pub fn requirements(&self) -> &[FieldRequirement] {
        &self.requirements
    }

    /// Whether the selector matches everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether an object matches. `get` returns the value of a field, empty when absent.
    pub fn matches<'a>(&self, get: impl Fn(&str) -> &'a str) -> bool {
        self.requirements.iter().all(|r| (get(&r.field) == r.value) == (r.operator == FieldOperator::Equals))
    }

    /// The value that the selector requires for a field with `=`, if any.
    #[must_use]
    pub fn requires_exact(&self, field: &str) -> Option<&str> {
        let exact = |r: &&FieldRequirement| r.field == field && r.operator == FieldOperator::Equals;
        self.requirements.iter().find(exact).map(|r| r.value.as_str())
    }
}

/// Escapes a value for use in a field selector.
#[must_use]
pub fn escape_field_value(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for c in value.chars() {
        if matches!(c, '\\' | ',' | '=') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

fn unescape(value: &str) -> Result<String, FieldSelectorError> {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => out.push(c),
                Some(c) => return Err(FieldSelectorError::Escape(format!("\\{c}"))),
                None => return Err(FieldSelectorError::Escape("\\".to_owned())),
            },
            ',' | '=' => return Err(FieldSelectorError::Unescaped(c)),
            _ => out.push(c),
        }
    }
    Ok(out)
}

fn terms(text: &str) -> Vec<&str> {
    let (mut terms, mut start, mut escaped) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                terms.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

fn split(term: &str) -> Option<(&str, FieldOperator, &str)> {
    let operators =
        [("!=", FieldOperator::NotEquals), ("==", FieldOperator::Equals), ("=", FieldOperator::Equals)];
    term.char_indices().find_map(|(at, _)| {
        operators.iter().find_map(|(sign, operator)| {
            term[at..].strip_prefix(sign).map(|value| (&term[..at], *operator, value))
        })
    })
}

impl FromStr for FieldSelector {
    type Err = FieldSelectorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = terms(text);
        parts.sort_unstable();
        let mut requirements = Vec::new();
        for part in parts.into_iter().filter(|p| !p.is_empty()) {
            let (field, operator, value) = split(part).ok_or_else(|| FieldSelectorError::Term {
                selector: text.to_owned(),
                term: part.to_owned(),
            })?;
            requirements.push(FieldRequirement {
                field: field.to_owned(),
                operator,
                value: unescape(value)?,
            });
        }
        Ok(FieldSelector { requirements })
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, r) in self.requirements.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            let sign = if r.operator == FieldOperator::Equals { "=" } else { "!=" };
            write!(f, "{comma}{}{sign}{}", r.field, escape_field_value(&r.value))?;
        }
        Ok(())
    }
}

text_serde!(FieldSelector, "a field selector such as \"metadata.name=app\"");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_and_matches() {
        let selector: FieldSelector = "status.phase!=Done,metadata.name==a\\,b".parse().expect("a selector");
        assert_eq!(selector.to_string(), "metadata.name=a\\,b,status.phase!=Done");
        let get = |field: &str| if field == "metadata.name" { "a,b" } else { "" };
        assert!(selector.matches(get));
        assert_eq!(selector.requires_exact("metadata.name"), Some("a,b"));
        assert!("".parse::<FieldSelector>().expect("empty").matches(get));
    }

    #[test]
    fn invalid_selectors_are_rejected() {
        let table = [
            ("a", "invalid selector: 'a'; can't understand 'a'"),
            ("a=b=c", "invalid field selector: unescaped character in value: 61"),
            ("a=\\x", "invalid field selector: invalid escape sequence: \\x"),
            ("a=b\\", "invalid field selector: invalid escape sequence: \\"),
        ];
        for (text, error) in table {
            assert_eq!(text.parse::<FieldSelector>().expect_err(text).to_string(), error);
        }
    }
}
