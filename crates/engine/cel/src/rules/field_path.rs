//! `fieldPath` of a rule: a simple JSON path that must exist in the schema.

use fl_schema::Schema;

/// The path as errors print it (`spec.a`, `map[key]`), or why it is not valid.
pub fn field_path(path: &str, schema: &Schema) -> Result<String, String> {
    let mut out = String::new();
    let mut here = schema;
    let mut rest = path;
    while !rest.is_empty() {
        let name;
        if let Some(after) = rest.strip_prefix('[') {
            let quoted = after
                .strip_prefix('\'')
                .ok_or_else(|| format!("expected single quoted string but got {after}"))?;
            let end = closing_quote(quoted).ok_or("unexpected end of JSON path")?;
            name = unescape(&quoted[..end])?;
            rest = quoted[end + 1..].strip_prefix(']').ok_or("unexpected end of JSON path")?;
        } else if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[', ']']).unwrap_or(after.len());
            if end == 0 {
                return Err("unexpected end of JSON path".to_owned());
            }
            name = after[..end].to_owned();
            rest = &after[end..];
        } else {
            let end = rest.find(['.', '[', ']']).filter(|end| *end > 0).unwrap_or(rest.len());
            return Err(format!("expected [ or . but got: {}", &rest[..end]));
        }
        if !here.properties.is_empty() {
            here = here.property(&name).ok_or("does not refer to a valid field")?;
            if !out.is_empty() {
                out.push('.');
            }
            out.push_str(&name);
        } else if let Some(values) = here.map_values() {
            here = values;
            out.push_str(&format!("[{name}]"));
        } else {
            return Err("does not refer to a valid field".to_owned());
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

fn unescape(text: &str) -> Result<String, String> {
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
                return Err(format!(
                    "invalid string literal: invalid escape char \\{}",
                    other.map(String::from).unwrap_or_default()
                ));
            }
        });
    }
    Ok(out)
}
