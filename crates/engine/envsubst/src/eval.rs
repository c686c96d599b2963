//! Expands parsed expressions.

use std::borrow::Cow;

use crate::error::{Error, UnsetVariable};
use crate::glob;
use crate::parse::{Call, Op, Part, Template};

/// What happens to a variable that is not set and has no default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// It expands to the empty string.
    Empty,
    /// Expansion fails with an error that names all such variables.
    Refuse,
}

/// Expands a text.
///
/// # Errors
/// The text has a malformed expression, or a variable is not set.
pub fn expand(
    text: &str,
    missing: Missing,
    lookup: impl Fn(&str) -> Option<String>,
) -> Result<String, Error> {
    String::from_utf8(expand_bytes(text, missing, lookup)?).map_err(|_| Error::NotText)
}

/// Expands a text and reports what operators make of variables: `derived` is called with the value of a variable and
/// the result of an operator on it, such as the substring of `${x:0:5}`. A caller that must not show a value must not show
/// these either.
///
/// # Errors
/// See [`expand`].
pub fn expand_reporting(
    text: &str,
    missing: Missing,
    lookup: impl Fn(&str) -> Option<String>,
    derived: &dyn Fn(&str, &str),
) -> Result<String, Error> {
    let bytes = Template::parse(text)?.expand(missing, &lookup, derived)?;
    String::from_utf8(bytes).map_err(|_| Error::NotText)
}

/// Expands a text to bytes, which may not be UTF-8 because substrings count bytes.
///
/// # Errors
/// See [`expand`].
pub fn expand_bytes(
    text: &str,
    missing: Missing,
    lookup: impl Fn(&str) -> Option<String>,
) -> Result<Vec<u8>, Error> {
    // Fast path: most texts have no expression.
    if !text.contains('$') && !text.contains('\0') {
        return Ok(text.as_bytes().to_vec());
    }
    Template::parse(text)?.expand_bytes(missing, lookup)
}

impl Template {
    /// Expands the text with the variables of `lookup`.
    ///
    /// # Errors
    /// A variable is not set, or a substring has a negative length.
    pub fn expand_bytes(
        &self,
        missing: Missing,
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<Vec<u8>, Error> {
        self.expand(missing, &lookup, &|_, _| ())
    }

    fn expand(
        &self,
        missing: Missing,
        lookup: &dyn Fn(&str) -> Option<String>,
        derived: &dyn Fn(&str, &str),
    ) -> Result<Vec<u8>, Error> {
        let mut run = Expander { lookup, derived, missing, unset: Vec::new() };
        let mut out = Vec::new();
        for part in &self.parts {
            run.part(part, &mut out)?;
        }
        if run.unset.is_empty() { Ok(out) } else { Err(Error::UnsetVariable(run.unset)) }
    }
}

struct Expander<'a> {
    lookup: &'a dyn Fn(&str) -> Option<String>,
    derived: &'a dyn Fn(&str, &str),
    missing: Missing,
    unset: Vec<UnsetVariable>,
}

impl Expander<'_> {
    fn part(&mut self, part: &Part, out: &mut Vec<u8>) -> Result<(), Error> {
        match part {
            Part::Text(text) => out.extend_from_slice(text.as_bytes()),
            Part::Call(call) => {
                let value = self.call(call)?;
                out.extend_from_slice(&value);
            }
        }
        Ok(())
    }

    fn call(&mut self, call: &Call) -> Result<Vec<u8>, Error> {
        let mut args = Vec::with_capacity(call.args.len());
        for arg in &call.args {
            let mut value = Vec::new();
            self.part(arg, &mut value)?;
            args.push(value);
        }
        let value = match (self.lookup)(&call.name) {
            Some(value) => value,
            None => {
                if self.missing == Missing::Refuse && call.op != Op::Default {
                    let known = self.unset.iter().any(|u| u.name == call.name);
                    if !known {
                        self.unset.push(UnsetVariable { name: call.name.clone(), line: call.line });
                    }
                }
                String::new()
            }
        };
        if call.op == Op::Value || value.is_empty() {
            return Ok(apply(call.op, value, &args));
        }
        let result = apply(call.op, value.clone(), &args);
        // The length of a value says little about it, and as a pattern it would match any number.
        if call.op != Op::Length && result != value.as_bytes() {
            (self.derived)(&value, &text(&result));
        }
        Ok(result)
    }
}

fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

fn apply(op: Op, value: String, args: &[Vec<u8>]) -> Vec<u8> {
    let arg = |i: usize| args.get(i).map_or(Cow::Borrowed(""), |a| text(a));
    match op {
        Op::Value => value.into_bytes(),
        Op::Default if value.is_empty() => args.concat(),
        Op::Default => value.into_bytes(),
        Op::Length => value.len().to_string().into_bytes(),
        Op::Substring => substring(value, args),
        Op::Lower => value.chars().map(lower).collect::<String>().into_bytes(),
        Op::Upper => value.chars().map(upper).collect::<String>().into_bytes(),
        Op::LowerFirst => first(&value, lower),
        Op::UpperFirst => first(&value, upper),
        Op::ShortestPrefix => glob::without_prefix(value.as_bytes(), &arg(0), false).to_vec(),
        Op::LongestPrefix => glob::without_prefix(value.as_bytes(), &arg(0), true).to_vec(),
        Op::ShortestSuffix => without_suffix(&value, &arg(0), false),
        Op::LongestSuffix => without_suffix(&value, &arg(0), true),
        Op::ReplaceFirst => value.replacen(&*arg(0), &arg(1), 1).into_bytes(),
        Op::ReplaceAll => value.replace(&*arg(0), &arg(1)).into_bytes(),
        // Both arguments are required; `${x/#a/}` does not change the value.
        Op::ReplacePrefix if args.len() == 2 && value.starts_with(&*arg(0)) => {
            value.replacen(&*arg(0), &arg(1), 1).into_bytes()
        }
        Op::ReplaceSuffix if args.len() == 2 => match value.strip_suffix(&*arg(0)) {
            Some(kept) => [kept.as_bytes(), &args[1]].concat(),
            None => value.into_bytes(),
        },
        Op::ReplacePrefix | Op::ReplaceSuffix => value.into_bytes(),
    }
}

/// Go maps single characters: one whose mapping has several characters is not changed.
fn upper(c: char) -> char {
    let mut mapped = c.to_uppercase();
    mapped.next().filter(|_| mapped.next().is_none()).unwrap_or(c)
}

fn lower(c: char) -> char {
    let mut mapped = c.to_lowercase();
    mapped.next().filter(|_| mapped.next().is_none()).unwrap_or(c)
}

fn first(value: &str, map: fn(char) -> char) -> Vec<u8> {
    let mut chars = value.chars();
    let first = chars.next().map(map);
    first.into_iter().chain(chars).collect::<String>().into_bytes()
}

fn without_suffix(value: &str, pattern: &str, longest: bool) -> Vec<u8> {
    let reverse = |s: &str| s.chars().rev().collect::<String>();
    let (value, pattern) = (reverse(value), reverse(pattern));
    reverse(&text(glob::without_prefix(value.as_bytes(), &pattern, longest))).into_bytes()
}

/// Counts bytes. A negative position or length counts from the end; one that is not a number does not change
/// the value.
fn substring(value: String, args: &[Vec<u8>]) -> Vec<u8> {
    let number = |i: usize| args.get(i).and_then(|a| text(a).parse::<i64>().ok());
    let mut bytes = value.into_bytes();
    let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
    let Some(position) = number(0) else { return bytes };
    let position = if position < 0 { size.saturating_add(position).max(0) } else { position };
    let end = match (args.len(), number(1)) {
        (0 | 1, _) => size,
        (_, None) => return bytes,
        (_, Some(length)) if length < 0 => size.saturating_add(length),
        (_, Some(length)) => position.saturating_add(length).min(size),
    };
    if position >= size || end < position {
        return Vec::new();
    }
    bytes.truncate(usize::try_from(end).unwrap_or_default());
    bytes.drain(..usize::try_from(position).unwrap_or_default());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn results_of_operators_are_reported() {
        let seen = RefCell::new(Vec::new());
        let report = |value: &str, result: &str| seen.borrow_mut().push(format!("{value}>{result}"));
        let lookup = |name: &str| (name == "x").then(|| "Secret".to_owned());
        let text = "${x} ${x:0:3} ${x^^} ${#x} ${x:=y} ${y:=${x:1:2}} ${x/S/${x,,}}";
        let expanded = expand_reporting(text, Missing::Empty, lookup, &report).expect("valid");
        assert_eq!(expanded, "Secret Sec SECRET 6 Secret ec secretecret");
        let reported = ["Secret>Sec", "Secret>SECRET", "Secret>ec", "Secret>secret", "Secret>secretecret"];
        assert_eq!(*seen.borrow(), reported);
    }
}
