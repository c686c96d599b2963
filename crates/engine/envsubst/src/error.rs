//! Errors of a text or its variables.

use std::fmt;

/// A variable that is used but not set, and the first line that uses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsetVariable {
    /// Its name.
    pub name: String,
    /// The line, from 1.
    pub line: usize,
}

/// Why a text cannot be expanded. Lines count from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A malformed expression.
    #[error("line {line}: bad substitution")]
    BadSubstitution {
        /// The line of the expression.
        line: usize,
    },
    /// `${name` without closing brace, or with an unknown operator.
    #[error("line {line}: missing closing brace")]
    MissingClosingBrace {
        /// The line of the expression.
        line: usize,
    },
    /// `${}`, `${.x}`, `${ x }`
    #[error("line {line}: unable to parse variable name")]
    VariableName {
        /// The line of the expression.
        line: usize,
    },
    /// An operator without its argument.
    #[error("line {line}: unable to parse substitution within function")]
    FunctionArgument {
        /// The line of the expression.
        line: usize,
    },
    /// A malformed default operator.
    #[error("line {line}: unable to parse default function")]
    DefaultFunction {
        /// The line of the expression.
        line: usize,
    },
    /// Nested deeper than any real use.
    #[error("line {line}: expressions nest deeper than {max} levels")]
    TooDeep {
        /// The line of the expression.
        line: usize,
        /// The limit.
        max: usize,
    },
    /// Variables that are not set, in strict mode.
    #[error("variable not set (strict mode): {}", UnsetList(.0))]
    UnsetVariable(Vec<UnsetVariable>),
    /// A substring split a character.
    #[error("the result is not valid UTF-8: a substring splits a character")]
    NotText,
}

struct UnsetList<'a>(&'a [UnsetVariable]);

impl fmt::Display for UnsetList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, unset) in self.0.iter().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            write!(f, "{comma}{:?} (line {})", unset.name, unset.line)?;
        }
        Ok(())
    }
}

impl Error {
    /// The message of Flux's library, which has no line numbers and stops at the first unset variable.
    #[must_use]
    pub fn flux_text(&self) -> String {
        match self {
            Error::BadSubstitution { .. } => "bad substitution".to_owned(),
            Error::MissingClosingBrace { .. } => "missing closing brace".to_owned(),
            Error::VariableName { .. } => "unable to parse variable name".to_owned(),
            Error::FunctionArgument { .. } => "unable to parse substitution within function".to_owned(),
            Error::DefaultFunction { .. } => "unable to parse default function".to_owned(),
            Error::UnsetVariable(unset) => {
                let first = unset.first().map(|u| u.name.as_str()).unwrap_or_default();
                format!("variable not set (strict mode): \"{first}\"")
            }
            other => other.to_string(),
        }
    }
}
