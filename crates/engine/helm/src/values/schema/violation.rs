//! A violation of a schema and its error lines.

use serde_json::Value as Json;

/// Type of a violation, as far as printing depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    /// Several violations of one schema.
    Group,
    /// A violation behind a reference.
    Reference,
}

/// A violation: location, message and causes.
#[derive(Debug)]
pub(super) struct Violation {
    pub(super) at: String,
    pub(super) words: String,
    pub(super) kind: Kind,
    pub(super) causes: Vec<Violation>,
}

impl Violation {
    pub(super) fn new(at: &str, words: impl Into<String>) -> Self {
        Self { at: at.to_owned(), words: words.into(), kind: Kind::Plain, causes: Vec::new() }
    }

    pub(super) fn because(self, causes: Vec<Violation>) -> Self {
        Self { causes, ..self }
    }

    /// A single violation is returned as is; several become a group.
    pub(super) fn of(at: &str, mut failures: Vec<Violation>) -> Result<(), Self> {
        match failures.len() {
            0 => Ok(()),
            1 => Err(failures.remove(0)),
            _ => Err(Self { kind: Kind::Group, ..Self::new(at, "validation failed") }.because(failures)),
        }
    }

    /// The violations of a group; any other violation on its own.
    pub(super) fn ungrouped(self) -> Vec<Violation> {
        if self.kind == Kind::Group { self.causes } else { vec![self] }
    }

    /// Wraps the violation as the cause of a reference.
    pub(super) fn referenced(self, at: &str) -> Self {
        Self { kind: Kind::Reference, ..Self::new(at, "validation failed") }.because(self.ungrouped())
    }

    /// Prints one line per violation, with its causes indented. A reference is printed only if it has more
    /// than one cause.
    pub(super) fn print(&self, indent: usize, out: &mut String) {
        let told = self.kind != Kind::Reference || self.causes.len() != 1;
        if told {
            let indent = "  ".repeat(indent);
            out.push_str(&format!("{indent}- at {}: {}\n", quoted(&self.at), self.words));
        }
        self.causes.iter().for_each(|cause| cause.print(indent + usize::from(told), out));
    }
}

/// JSON pointer of a member or an item.
pub(super) fn below(at: &str, token: &str) -> String {
    format!("{at}/{}", token.replace('~', "~0").replace('/', "~1"))
}

/// Quoted names, separated by commas.
pub(super) fn listed<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    names.into_iter().map(quoted).collect::<Vec<_>>().join(", ")
}

/// JSON type name of a value.
pub(super) fn type_name(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(_) => "number",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    }
}

/// A value as shown in messages.
pub(super) fn shown(value: &Json) -> String {
    match value {
        Json::String(text) => quoted(text),
        Json::Null => "<nil>".into(),
        Json::Array(_) | Json::Object(_) => "value".into(),
        other => other.to_string(),
    }
}

/// A number with thousands separators, as Go's English `message.Printer` formats it.
pub(super) fn number(value: &Json) -> String {
    let text = value.to_string();
    let (sign, digits) = text.strip_prefix('-').map_or(("", text.as_str()), |rest| ("-", rest));
    let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(w, f)| (w, Some(f)));
    if !whole.bytes().all(|b| b.is_ascii_digit()) {
        return text;
    }
    let mut out = sign.to_owned();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    match fraction.filter(|f| *f != "0") {
        Some(fraction) => out + "." + fraction,
        None => out,
    }
}

/// A string in single quotes.
pub(super) fn quoted(text: &str) -> String {
    let text = fl_gotemplate::fmt::quoted(text.as_bytes());
    let inner = text[1..text.len() - 1].replace("\\\"", "\"").replace('\'', "\\'");
    format!("'{inner}'")
}
