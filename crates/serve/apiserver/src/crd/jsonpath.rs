//! The part of JSONPath that printer columns use: fields, indices, wildcards, filters on equality.

use serde_json::Value;

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Field(String),
    Index(i64),
    All,
    /// `?(@.path == value)`.
    Filter {
        path: Vec<String>,
        equal: bool,
        value: Value,
    },
}

/// A compiled path. A path with a syntax error matches nothing.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct JsonPath {
    text: String,
    steps: Option<Vec<Step>>,
}

impl JsonPath {
    pub(super) fn parse(text: &str) -> Self {
        let inner = text.trim().trim_start_matches('{').trim_end_matches('}').trim_start_matches('$');
        Self { text: text.to_owned(), steps: steps(inner) }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn find<'a>(&self, object: &'a Value) -> Vec<&'a Value> {
        let Some(steps) = &self.steps else { return Vec::new() };
        let mut here = vec![object];
        for step in steps {
            here = here.into_iter().flat_map(|v| apply(step, v)).collect();
        }
        here.retain(|v| !v.is_null());
        here
    }
}

fn apply<'a>(step: &Step, value: &'a Value) -> Vec<&'a Value> {
    match step {
        Step::Field(name) => value.get(name).into_iter().collect(),
        Step::Index(i) => {
            let Some(list) = value.as_array() else { return Vec::new() };
            let at = if *i < 0 { list.len() as i64 + i } else { *i };
            usize::try_from(at).ok().and_then(|at| list.get(at)).into_iter().collect()
        }
        Step::All => match value {
            Value::Array(list) => list.iter().collect(),
            Value::Object(map) => map.values().collect(),
            _ => Vec::new(),
        },
        Step::Filter { path, equal, value: wanted } => {
            let Some(list) = value.as_array() else { return Vec::new() };
            list.iter()
                .filter(|item| {
                    let found = path.iter().try_fold(*item, |v, p| v.get(p));
                    found.is_some_and(|f| (f == wanted) == *equal)
                })
                .collect()
        }
    }
}

fn steps(text: &str) -> Option<Vec<Step>> {
    let mut out = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(tail) = rest.strip_prefix('.') {
            if tail.starts_with('[') || tail.is_empty() {
                rest = tail;
                continue;
            }
            let (name, tail) = field(tail);
            out.push(if name == "*" { Step::All } else { Step::Field(name) });
            rest = tail;
        } else if let Some(tail) = rest.strip_prefix('[') {
            let end = closing(tail)?;
            out.push(bracket(&tail[..end])?);
            rest = &tail[end + 1..];
        } else {
            let (name, tail) = field(rest);
            if name.is_empty() {
                return None;
            }
            out.push(Step::Field(name));
            rest = tail;
        }
    }
    Some(out)
}

/// Reads a field name; a backslash escapes the next character.
fn field(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut chars = text.char_indices();
    while let Some((i, c)) = chars.next() {
        match c {
            '\\' => name.extend(chars.next().map(|(_, c)| c)),
            '.' | '[' => return (name, &text[i..]),
            c => name.push(c),
        }
    }
    (name, "")
}

fn closing(text: &str) -> Option<usize> {
    let mut quote = None;
    for (i, c) in text.char_indices() {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(q), c) if q == c => quote = None,
            (None, ']') => return Some(i),
            _ => {}
        }
    }
    None
}

fn literal(text: &str) -> Option<Value> {
    let text = text.trim();
    for quote in ['"', '\''] {
        if let Some(inner) = text.strip_prefix(quote).and_then(|t| t.strip_suffix(quote)) {
            return Some(Value::from(inner));
        }
    }
    serde_json::from_str(text).ok()
}

fn bracket(text: &str) -> Option<Step> {
    let text = text.trim();
    if text == "*" {
        return Some(Step::All);
    }
    if let Some(filter) = text.strip_prefix("?(").and_then(|t| t.strip_suffix(')')) {
        let (at, equal) = match (filter.find("=="), filter.find("!=")) {
            (Some(i), _) => (i, true),
            (None, Some(i)) => (i, false),
            (None, None) => return None,
        };
        let path = filter[..at].trim().strip_prefix("@.")?.split('.').map(str::to_owned).collect();
        return Some(Step::Filter { path, equal, value: literal(&filter[at + 2..])? });
    }
    match literal(text)? {
        Value::String(name) => Some(Step::Field(name)),
        Value::Number(n) => n.as_i64().map(Step::Index),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_match_fields_indices_and_filters() {
        let object = json!({"metadata": {"labels": {"a.b/c": "x"}}, "spec": {"l": [1, 2], "m": [{"t": "A", "v": 1}, {"t": "B", "v": 2}]}});
        for (path, want) in [
            (".spec.l[0]", vec![json!(1)]),
            (".spec.l[-1]", vec![json!(2)]),
            (".spec.l[*]", vec![json!(1), json!(2)]),
            (r".metadata.labels.a\.b/c", vec![json!("x")]),
            (".metadata.labels['a.b/c']", vec![json!("x")]),
            (r#".spec.m[?(@.t=="B")].v"#, vec![json!(2)]),
            (".spec.none.deep", vec![]),
            (".spec.l[", vec![]),
        ] {
            let found: Vec<Value> = JsonPath::parse(path).find(&object).into_iter().cloned().collect();
            assert_eq!(found, want, "{path}");
        }
    }
}
