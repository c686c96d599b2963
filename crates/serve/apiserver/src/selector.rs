//! Label and field selectors.

use serde_json::Value;

use crate::status::ApiError;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Operator {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Missing,
    Greater(i64),
    Less(i64),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    key: String,
    operator: Operator,
}

/// A label selector; the empty one selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector(Vec<Requirement>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(String),
    Sign(&'static str),
    End,
}

struct Lexer<'a> {
    rest: &'a str,
}

impl Lexer<'_> {
    fn next(&mut self) -> Token {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
        if self.rest.is_empty() {
            return Token::End;
        }
        for sign in ["==", "!=", "=", "!", "(", ")", ",", ">", "<"] {
            if let Some(rest) = self.rest.strip_prefix(sign) {
                self.rest = rest;
                return Token::Sign(sign);
            }
        }
        let special =
            |c: char| matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<' | ' ' | '\t' | '\r' | '\n');
        let end = self.rest.find(special).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        Token::Word(word.to_owned())
    }

    fn peek(&self) -> Token {
        Lexer { rest: self.rest }.next()
    }
}

fn show(token: &Token) -> &str {
    match token {
        Token::Word(word) => word,
        Token::Sign(sign) => sign,
        Token::End => "",
    }
}

impl LabelSelector {
    /// Reads the query form: `a=b,c!=d,e in (x,y),!f`.
    pub fn parse(text: &str) -> Result<Self, ApiError> {
        Self::requirements(text).map(Self).map_err(ApiError::bad_request)
    }

    fn requirements(text: &str) -> Result<Vec<Requirement>, String> {
        let mut lexer = Lexer { rest: text };
        let mut out = Vec::new();
        if lexer.peek() == Token::End {
            return Ok(out);
        }
        loop {
            match lexer.peek() {
                Token::Word(_) | Token::Sign("!") => {
                    let read = requirement(&mut lexer)
                        .map_err(|why| format!("unable to parse requirement: {why}"))?;
                    out.push(read);
                }
                other => {
                    return Err(format!(
                        "found '{}', expected: !, identifier, or 'end of string'",
                        show(&other)
                    ));
                }
            }
            match lexer.next() {
                Token::End => return Ok(out),
                Token::Sign(",") => match lexer.peek() {
                    Token::Word(_) | Token::Sign("!") => {}
                    other => return Err(format!("found '{}', expected: identifier after ','", show(&other))),
                },
                other => return Err(format!("found '{}', expected: ',' or 'end of string'", show(&other))),
            }
        }
    }

    /// Reads the object form (`matchLabels`, `matchExpressions`); `None` for a value that is not one.
    #[must_use]
    pub fn from_object(selector: &Value) -> Option<Self> {
        let map = selector.as_object()?;
        let mut out = Vec::new();
        for (key, value) in map.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
            out.push(Requirement {
                key: key.clone(),
                operator: Operator::In(vec![value.as_str()?.to_owned()]),
            });
        }
        for item in map.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
            let key = item.get("key")?.as_str()?.to_owned();
            let values = || -> Vec<String> {
                let list = item.get("values").and_then(Value::as_array);
                list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
            };
            let operator = match item.get("operator")?.as_str()? {
                "In" => Operator::In(values()),
                "NotIn" => Operator::NotIn(values()),
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::Missing,
                _ => return None,
            };
            out.push(Requirement { key, operator });
        }
        Some(Self(out))
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether labels (a JSON map, or null) match.
    #[must_use]
    pub fn matches(&self, labels: Option<&Value>) -> bool {
        self.0.iter().all(|r| {
            let value = labels.and_then(|l| l.get(&r.key)).and_then(Value::as_str);
            match &r.operator {
                Operator::In(values) => value.is_some_and(|v| values.iter().any(|w| w == v)),
                Operator::NotIn(values) => value.is_none_or(|v| !values.iter().any(|w| w == v)),
                Operator::Exists => value.is_some(),
                Operator::Missing => value.is_none(),
                Operator::Greater(n) => value.and_then(|v| v.parse::<i64>().ok()).is_some_and(|v| v > *n),
                Operator::Less(n) => value.and_then(|v| v.parse::<i64>().ok()).is_some_and(|v| v < *n),
            }
        })
    }
}

fn requirement(lexer: &mut Lexer<'_>) -> Result<Requirement, String> {
    let negated = lexer.peek() == Token::Sign("!");
    if negated {
        lexer.next();
    }
    let Token::Word(key) = lexer.next() else { return Err("found '', expected: identifier".into()) };
    check_label_key(&key)?;
    let made = |operator| Ok(Requirement { key: key.clone(), operator });
    if negated {
        return made(Operator::Missing);
    }
    match lexer.peek() {
        Token::End | Token::Sign(",") => return made(Operator::Exists),
        _ => {}
    }
    match lexer.next() {
        Token::Sign("=" | "==") => made(Operator::In(vec![value(lexer, &key)?])),
        Token::Sign("!=") => made(Operator::NotIn(vec![value(lexer, &key)?])),
        Token::Word(word) if word == "in" => made(Operator::In(values(lexer, &key)?)),
        Token::Word(word) if word == "notin" => made(Operator::NotIn(values(lexer, &key)?)),
        Token::Sign(sign @ (">" | "<")) => {
            let text = value(lexer, &key)?;
            let n: i64 = text.parse().map_err(|_| {
                format!(
                    "values[0]: Invalid value: {text:?}: for 'Gt', 'Lt' operators, the value must be an integer"
                )
            })?;
            made(if sign == ">" { Operator::Greater(n) } else { Operator::Less(n) })
        }
        other => Err(format!("found '{}', expected: in, notin, =, ==, !=, gt, lt", show(&other))),
    }
}

fn value(lexer: &mut Lexer<'_>, key: &str) -> Result<String, String> {
    let value = match lexer.peek() {
        Token::Word(word) => {
            lexer.next();
            word
        }
        Token::End | Token::Sign(",") => String::new(),
        other => return Err(format!("found '{}', expected: identifier", show(&other))),
    };
    check_label_value(key, 0, &value)?;
    Ok(value)
}

fn values(lexer: &mut Lexer<'_>, key: &str) -> Result<Vec<String>, String> {
    let open = lexer.next();
    if open != Token::Sign("(") {
        return Err(format!("found '{}' expected: '('", show(&open)));
    }
    let mut out = Vec::new();
    loop {
        match lexer.next() {
            Token::Word(word) => {
                check_label_value(key, out.len(), &word)?;
                out.push(word);
                match lexer.next() {
                    Token::Sign(",") => {
                        if lexer.peek() == Token::Sign(")") {
                            out.push(String::new());
                        }
                    }
                    Token::Sign(")") => return Ok(out),
                    other => return Err(format!("found '{}', expected: ',' or ')'", show(&other))),
                }
            }
            Token::Sign(",") => out.push(String::new()),
            Token::Sign(")") => {
                if out.is_empty() {
                    out.push(String::new());
                }
                return Ok(out);
            }
            other => return Err(format!("found '{}', expected: ',', or identifier", show(&other))),
        }
    }
}

fn check_label_key(key: &str) -> Result<(), String> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let mut wrong = Vec::new();
    if name.contains('/') {
        let why = "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
        return Err(format!("<nil>: Invalid value: {key:?}: {why}"));
    }
    if let Some(prefix) = prefix {
        if prefix.is_empty() {
            wrong.push("prefix part must be non-empty".to_owned());
        } else {
            wrong.extend(
                fl_builtin::name_validation::dns1123_subdomain(prefix, false)
                    .into_iter()
                    .map(|w| format!("prefix part {w}")),
            );
        }
    }
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        wrong.push("name part must be no more than 63 characters".to_owned());
    }
    if !qualified(name) {
        wrong.push("name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')".to_owned());
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(format!("<nil>: Invalid value: {key:?}: {}", wrong.join("; ")))
    }
}

fn qualified(text: &str) -> bool {
    let b = text.as_bytes();
    !b.is_empty()
        && b[0].is_ascii_alphanumeric()
        && b[b.len() - 1].is_ascii_alphanumeric()
        && b.iter().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.'))
}

fn check_label_value(key: &str, at: usize, value: &str) -> Result<(), String> {
    if value.len() > 63 {
        return Err(format!(
            "values[{at}][{key}]: Invalid value: {value:?}: must be no more than 63 characters"
        ));
    }
    if value.is_empty() || qualified(value) {
        return Ok(());
    }
    Err(format!(
        "values[{at}][{key}]: Invalid value: {value:?}: a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
    ))
}

/// A field selector: terms that must all hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSelector {
    /// Field label, value, and whether it must be equal.
    pub terms: Vec<(String, String, bool)>,
}

impl FieldSelector {
    /// Reads `a=b,c!=d`, with backslashes before `,`, `=` and `\` inside values.
    pub fn parse(text: &str) -> Result<Self, ApiError> {
        let mut terms = Vec::new();
        for part in split_unescaped(text) {
            if part.is_empty() {
                continue;
            }
            let (at, width, equal) = find_operator(&part).ok_or_else(|| {
                ApiError::bad_request(format!("invalid selector: '{text}'; can't understand '{part}'"))
            })?;
            let value = unescape(&part[at + width..]).ok_or_else(|| {
                let why = if part[at + width..].contains('=') {
                    "unescaped character in value: 61".to_owned()
                } else {
                    format!("invalid escape in {part:?}")
                };
                ApiError::bad_request(format!("invalid field selector: {why}"))
            })?;
            terms.push((part[..at].to_owned(), value, equal));
        }
        Ok(Self { terms })
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// The value that the selector demands for a field, if it is exact.
    #[must_use]
    pub fn exact(&self, label: &str) -> Option<&str> {
        self.terms.iter().find(|(l, _, equal)| *equal && l == label).map(|(_, v, _)| v.as_str())
    }
}

fn split_unescaped(text: &str) -> Vec<String> {
    let (mut out, mut current, mut escaped) = (Vec::new(), String::new(), false);
    for c in text.chars() {
        if c == ',' && !escaped {
            out.push(std::mem::take(&mut current));
            continue;
        }
        escaped = c == '\\' && !escaped;
        current.push(c);
    }
    out.push(current);
    out
}

/// Position, width and meaning of the first operator of a term.
fn find_operator(term: &str) -> Option<(usize, usize, bool)> {
    let bytes = term.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        match bytes[i] {
            b'\\' => i += 1,
            b'!' if bytes.get(i + 1) == Some(&b'=') => return Some((i, 2, false)),
            b'=' if bytes.get(i + 1) == Some(&b'=') => return Some((i, 2, true)),
            b'=' => return Some((i, 1, true)),
            _ => {}
        }
        i += 1;
    }
    None
}

fn unescape(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next()? {
                c @ ('\\' | ',' | '=') => out.push(c),
                _ => return None,
            },
            ',' | '=' => return None,
            c => out.push(c),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn label_selectors_match() {
        let labels = json!({"a": "1", "b": "x"});
        for (text, want) in [
            ("", true),
            ("a", true),
            ("!a", false),
            ("a=1,b!=y", true),
            ("a in (1, 2),c notin (z)", true),
            ("b in (y)", false),
            ("a>0", true),
            ("a<1", false),
            ("c!=x", true),
            ("c=", false),
        ] {
            let selector = LabelSelector::parse(text).expect(text);
            assert_eq!(selector.matches(Some(&labels)), want, "{text}");
        }
    }

    #[test]
    fn invalid_label_selectors_are_rejected() {
        for text in ["==", "a in", "a in (", "a=b=c", "a,,b", ",", "a in (b", "a>x", "a/b/c=d", "/a"] {
            assert!(LabelSelector::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn field_selectors_decode_escapes() {
        let selector = FieldSelector::parse(r"metadata.name=a\,b,x!=y,z==1").expect("valid");
        let want = [("metadata.name", "a,b", true), ("x", "y", false), ("z", "1", true)];
        let got: Vec<_> = selector.terms.iter().map(|(l, v, e)| (l.as_str(), v.as_str(), *e)).collect();
        assert_eq!(got, want);
        assert!(FieldSelector::parse("a").is_err());
    }
}
