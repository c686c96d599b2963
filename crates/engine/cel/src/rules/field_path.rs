//! `fieldPath` of a rule: a simple JSON path that must exist in the schema.

use fl_schema::Schema;

/// Error of an invalid `fieldPath`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldPathError {
    /// A bracket without a quoted name.
    #[error("expected single quoted string but got {0}")]
    ExpectedQuote(String),
    /// An invalid escape in a quoted name.
    #[error("invalid string literal: invalid escape char \\{0}")]
    Escape(String),
    /// Neither a bracket nor a dot.
    #[error("expected [ or . but got: {0}")]
    ExpectedSeparator(String),
    /// The path ends within an element.
    #[error("unexpected end of JSON path")]
    UnexpectedEnd,
    /// The schema has no such field.
    #[error("does not refer to a valid field")]
    UnknownField,
}

/// Returns the path as shown in errors (`spec.a`, `map[key]`).
///
/// # Errors
/// The path is malformed or does not exist in the schema.
pub fn field_path(path: &str, schema: &Schema) -> Result<String, FieldPathError> {
    let mut out = String::new();
    let mut here = schema;
    let mut rest = path;
    while !rest.is_empty() {
        let name;
        if let Some(after) = rest.strip_prefix('[') {
            let quoted =
                after.strip_prefix('\'').ok_or_else(|| FieldPathError::ExpectedQuote(after.to_owned()))?;
            let end = closing_quote(quoted).ok_or(FieldPathError::UnexpectedEnd)?;
            name = unescape(&quoted[..end])?;
            rest = quoted[end + 1..].strip_prefix(']').ok_or(FieldPathError::UnexpectedEnd)?;
        } else if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[', ']']).unwrap_or(after.len());
            if end == 0 {
                return Err(FieldPathError::UnexpectedEnd);
            }
            name = after[..end].to_owned();
            rest = &after[end..];
        } else {
            let end = rest.find(['.', '[', ']']).filter(|end| *end > 0).unwrap_or(rest.len());
            return Err(FieldPathError::ExpectedSeparator(rest[..end].to_owned()));
        }
        if !here.properties.is_empty() {
            here = here.property(&name).ok_or(FieldPathError::UnknownField)?;
            if !out.is_empty() {
                out.push('.');
            }
            out.push_str(&name);
        } else if let Some(values) = here.map_values() {
            here = values;
            out.push_str(&format!("[{name}]"));
        } else {
            return Err(FieldPathError::UnknownField);
        }
    }
    Ok(out)
}

fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.char_indices().find_map(|(at, c)| {
        let found = c == '\'' && !escaped;
        escaped = c == '\\' && !escaped;
        found.then_some(at)
    })
}

fn unescape(text: &str) -> Result<String, FieldPathError> {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        out.push(match chars.next() {
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some('a') => '\u{7}',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('v') => '\u{b}',
            Some(same @ ('\'' | '\\')) => same,
            other => {
                return Err(FieldPathError::Escape(other.map(String::from).unwrap_or_default()));
            }
        });
    }
    Ok(out)
}
