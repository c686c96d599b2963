//! What does not fit a schema, and the lines that tell it.

use serde_json::Value as Json;

/// What kind of failure it is, as far as printing depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    /// Several failures of one schema.
    Group,
    /// What is wrong behind a reference.
    Reference,
}

/// A value that does not fit, why, and what led to that.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) at: String,
    pub(super) words: String,
    pub(super) kind: Kind,
    pub(super) causes: Vec<Failure>,
}

impl Failure {
    pub(super) fn new(at: &str, words: impl Into<String>) -> Self {
        Self { at: at.to_owned(), words: words.into(), kind: Kind::Plain, causes: Vec::new() }
    }

    pub(super) fn because(self, causes: Vec<Failure>) -> Self {
        Self { causes, ..self }
    }

    /// One failure stands for itself; several become a group.
    pub(super) fn of(at: &str, mut failures: Vec<Failure>) -> Result<(), Self> {
        match failures.len() {
            0 => Ok(()),
            1 => Err(failures.remove(0)),
            _ => Err(Self { kind: Kind::Group, ..Self::new(at, "validation failed") }.because(failures)),
        }
    }

    /// The failures of a group; another failure by itself.
    pub(super) fn ungrouped(self) -> Vec<Failure> {
        if self.kind == Kind::Group { self.causes } else { vec![self] }
    }

    /// This failure as that of a reference.
    pub(super) fn referenced(self, at: &str) -> Self {
        Self { kind: Kind::Reference, ..Self::new(at, "validation failed") }.because(self.ungrouped())
    }

    /// One line per failure; what led to it follows indented. A reference is told only where it leads to more than one.
    pub(super) fn print(&self, indent: usize, out: &mut String) {
        let told = self.kind != Kind::Reference || self.causes.len() != 1;
        if told {
            let indent = "  ".repeat(indent);
            out.push_str(&format!("{indent}- at {}: {}\n", quoted(&self.at), self.words));
        }
        self.causes.iter().for_each(|cause| cause.print(indent + usize::from(told), out));
    }
}

/// The place of a member or an item.
pub(super) fn below(at: &str, token: &str) -> String {
    format!("{at}/{}", token.replace('~', "~0").replace('/', "~1"))
}

/// Names in quotes, with commas between.
pub(super) fn listed<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    names.into_iter().map(quoted).collect::<Vec<_>>().join(", ")
}

/// The name of a value's type.
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

/// A value where a message names it.
pub(super) fn shown(value: &Json) -> String {
    match value {
        Json::String(text) => quoted(text),
        Json::Null => "<nil>".into(),
        Json::Array(_) | Json::Object(_) => "value".into(),
        other => other.to_string(),
    }
}

/// Numbers are printed with separators, as the reference's English printer does.
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

/// A text in single quotes.
pub(super) fn quoted(text: &str) -> String {
    let text = fl_gotemplate::fmt::quoted(text.as_bytes());
    let inner = text[1..text.len() - 1].replace("\\\"", "\"").replace('\'', "\\'");
    format!("'{inner}'")
}
