//! Errors of compiling and evaluating expressions.

use std::fmt;

use thiserror::Error;

/// A compilation issue with its position in the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    pub message: String,
    /// Offset in characters.
    pub at: usize,
}

/// Error of compiling an expression; formatted as in cel-go, with source line and caret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompileError {
    pub issues: Vec<Issue>,
    pub source: String,
}

impl std::error::Error for CompileError {}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, issue) in self.issues.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            let before: String = self.source.chars().take(issue.at).collect();
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
            let text = self.source.split('\n').nth(line - 1).unwrap_or_default();
            // Multi-byte characters are treated as wide.
            let mark = |c: char, narrow: char, wide: char| if c.len_utf8() > 1 { wide } else { narrow };
            let dots: String = text.chars().take(column).map(|c| mark(c, '.', '．')).collect();
            let caret = text.chars().nth(column).map_or('^', |c| mark(c, '^', '＾'));
            let (place, message) = (column + 1, &issue.message);
            let text = text.replace('\t', " ");
            write!(f, "ERROR: <input>:{line}:{place}: {message}\n | {text}\n | {dots}{caret}")?;
        }
        Ok(())
    }
}

/// Error of an evaluation.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EvalError {
    /// An error raised by the expression, such as `no such key: a`.
    #[error("{0}")]
    Message(String),
    /// The expression exceeds its cost limit.
    #[error("operation cancelled: actual cost limit exceeded")]
    CostExceeded,
}

impl EvalError {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        EvalError::Message(text.into())
    }

    pub(crate) fn no_overload() -> Self {
        EvalError::Message("no such overload".to_owned())
    }
}
