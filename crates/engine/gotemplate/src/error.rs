//! Errors, worded as Go words them.

use std::fmt;

use crate::value::Value;

/// What went wrong while parsing or executing a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// `template: NAME:LINE: …`
    #[error("{0}")]
    Parse(String, Option<Box<Finding>>),
    /// `template: NAME:LINE:COL: executing "NAME" at <…>: …`
    #[error("{0}")]
    Exec(String, Option<Box<Finding>>),
    /// Steps, depth, output or time ran out; the text names the template and place.
    #[error("{0}")]
    Budget(String),
}

impl Error {
    /// Whether a budget stopped the work.
    pub fn is_budget(&self) -> bool {
        matches!(self, Error::Budget(_))
    }

    /// Whether [`Limits::stack`](crate::Limits::stack) was the budget that ran out: with more of it the work may succeed.
    pub fn wants_deeper_stack(&self) -> bool {
        matches!(self, Error::Budget(text) if text.ends_with(crate::limits::TOO_DEEP))
    }

    /// What was found at the innermost place of the failure.
    pub fn finding(&self) -> Option<&Finding> {
        match self {
            Error::Parse(_, finding) | Error::Exec(_, finding) => finding.as_deref(),
            Error::Budget(_) => None,
        }
    }

    pub(crate) fn into_finding(self) -> Option<Box<Finding>> {
        match self {
            Error::Parse(_, finding) | Error::Exec(_, finding) => finding,
            Error::Budget(_) => None,
        }
    }
}

/// The place of a failure, and the values it met there. Kept apart from the error's text: values can be secret, so this is
/// for the person who runs the template and not for logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The name of the text.
    pub template: String,
    /// The line, from 1.
    pub line: usize,
    /// The byte in the line, from 0; none when only the line is known.
    pub column: Option<usize>,
    /// The line itself.
    pub source: String,
    /// Expressions and what they were.
    pub values: Vec<(String, String)>,
}

/// Longest line and value shown.
const SHOWN: usize = 160;

impl Finding {
    /// What is at a byte of a text.
    pub(crate) fn at(template: String, text: &[u8], pos: usize) -> Self {
        let before = &text[..pos.min(text.len())];
        let start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
        let end = memchr::memchr(b'\n', &text[start..]).map_or(text.len(), |at| start + at);
        Finding {
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

/// A value and its type, cut when it is long.
fn shown(value: &Value) -> String {
    match value {
        Value::Nil => "nil".to_owned(),
        Value::Str(text) => cut(crate::fmt::quoted(text)),
        Value::Bool(_) => crate::fmt::display(value),
        other => format!("{} ({})", cut(crate::fmt::display(other)), other.type_name()),
    }
}

fn cut(text: String) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

impl fmt::Display for Finding {
    /// The line under its place, a mark below the column, then the values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.line.to_string();
        let margin = " ".repeat(number.len());
        write!(f, "  --> {}:{number}", self.template)?;
        write!(f, "\n  {number} | {}", cut(self.source.clone()))?;
        if let Some(column) = self.column.filter(|column| *column <= SHOWN) {
            // Tabs stay tabs, so that the mark stands below its character.
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
    fn findings_show_the_line_and_the_values() {
        let text = b"a: 1\n\tb: {{ .x.y }}\nc: 2\n";
        let mut finding = Finding::at("c/templates/a.yaml".into(), text, 13);
        finding.note(".x".into(), &Value::Nil);
        finding.note(".s".into(), &Value::str("t\"x"));
        finding.note(".n".into(), &Value::int(3));
        assert_eq!(
            finding.to_string(),
            "  --> c/templates/a.yaml:2\n  2 | \tb: {{ .x.y }}\n    | \t       ^\n    = .x is nil\n    = .s is \"t\\\"x\"\n    = .n is 3 (int)"
        );
    }
}
