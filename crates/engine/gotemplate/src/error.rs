//! Errors with Go's messages.

use std::fmt;

use crate::value::Value;

/// Error of parsing or executing a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// `template: NAME:LINE: …`
    #[error("{0}")]
    Parse(String, Option<Box<Excerpt>>),
    /// `template: NAME:LINE:COL: executing "NAME" at <…>: …`
    #[error("{0}")]
    Exec(String, Option<Box<Excerpt>>),
    /// A limit on steps, depth, output or time was reached; the message names the template and location.
    #[error("{0}")]
    Budget(String),
}

impl Error {
    /// Whether a limit was reached.
    pub fn is_budget(&self) -> bool {
        matches!(self, Error::Budget(_))
    }

    /// Whether the limit was [`Limits::stack`](crate::Limits::stack): with a larger stack the execution may
    /// succeed.
    pub fn exceeded_stack(&self) -> bool {
        matches!(self, Error::Budget(text) if text.ends_with(crate::limits::TOO_DEEP))
    }

    /// Source line and values at the innermost location of the error.
    pub fn excerpt(&self) -> Option<&Excerpt> {
        match self {
            Error::Parse(_, excerpt) | Error::Exec(_, excerpt) => excerpt.as_deref(),
            Error::Budget(_) => None,
        }
    }

    pub(crate) fn into_excerpt(self) -> Option<Box<Excerpt>> {
        match self {
            Error::Parse(_, excerpt) | Error::Exec(_, excerpt) => excerpt,
            Error::Budget(_) => None,
        }
    }
}

/// Source line of an error and the values used there. It is not part of the error message because values can
/// be secrets: show it to the user who runs the template, do not log it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// Name of the text.
    pub template: String,
    /// Line, from 1.
    pub line: usize,
    /// Byte offset in the line, from 0; `None` if only the line is known.
    pub column: Option<usize>,
    /// The line itself.
    pub source: String,
    /// Expressions and their values.
    pub values: Vec<(String, String)>,
}

/// Maximum length of a line or value.
const MAX_SHOWN_CHARS: usize = 160;

impl Excerpt {
    /// The excerpt for a byte offset of a text.
    pub(crate) fn at(template: String, text: &[u8], pos: usize) -> Self {
        let before = &text[..pos.min(text.len())];
        let start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
        let end = memchr::memchr(b'\n', &text[start..]).map_or(text.len(), |at| start + at);
        Excerpt {
            template,
            line: 1 + memchr::memchr_iter(b'\n', before).count(),
            column: Some(before.len() - start),
            source: String::from_utf8_lossy(&text[start..end]).trim_end().to_owned(),
            values: Vec::new(),
        }
    }

    pub(crate) fn note(&mut self, expression: String, value: &Value) {
        self.values.push((expression, shown(value)));
    }
}

/// A value and its type, truncated if long.
fn shown(value: &Value) -> String {
    match value {
        Value::Nil => "nil".to_owned(),
        Value::Str(text) => cut(crate::fmt::quoted(text)),
        Value::Bool(_) => crate::fmt::display(value),
        other => format!("{} ({})", cut(crate::fmt::display(other)), other.type_name()),
    }
}

fn cut(text: String) -> String {
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

impl fmt::Display for Excerpt {
    /// The location, the line, a mark below the column, then the values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.line.to_string();
        let margin = " ".repeat(number.len());
        write!(f, "  --> {}:{number}", self.template)?;
        write!(f, "\n  {number} | {}", cut(self.source.clone()))?;
        if let Some(column) = self.column.filter(|column| *column <= MAX_SHOWN_CHARS) {
            // Tabs are kept so that the mark is below its character.
            let before = self.source.chars().scan(0, |at, c| {
                *at += c.len_utf8();
                (*at <= column).then_some(if c == '\t' { '\t' } else { ' ' })
            });
            write!(f, "\n  {margin} | {}^", before.collect::<String>())?;
        }
        for (expression, value) in &self.values {
            write!(f, "\n  {margin} = {expression} is {value}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts_show_the_line_and_the_values() {
        let text = b"a: 1\n\tb: {{ .x.y }}\nc: 2\n";
        let mut excerpt = Excerpt::at("c/templates/a.yaml".into(), text, 13);
        excerpt.note(".x".into(), &Value::Nil);
        excerpt.note(".s".into(), &Value::str("t\"x"));
        excerpt.note(".n".into(), &Value::int(3));
        assert_eq!(
            excerpt.to_string(),
            "  --> c/templates/a.yaml:2\n  2 | \tb: {{ .x.y }}\n    | \t       ^\n    = .x is nil\n    = .s is \"t\\\"x\"\n    = .n is 3 (int)"
        );
    }
}
