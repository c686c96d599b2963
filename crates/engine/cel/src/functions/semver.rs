//! Semantic versions.

use std::cmp::Ordering;

use crate::error::EvalError;
use crate::eval::Eval;
use crate::functions::{bool_of, opaque};
use crate::value::{Opaque, Value};

/// A version; build metadata does not affect its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Semver {
    numbers: [u64; 3],
    pre: Vec<String>,
}

impl Semver {
    fn parse(text: &str) -> Option<Self> {
        let (rest, build) = text.split_once('+').map_or((text, None), |(r, b)| (r, Some(b)));
        let (core, pre) = rest.split_once('-').map_or((rest, None), |(c, p)| (c, Some(p)));
        let mut numbers = [0; 3];
        let mut parts = core.split('.');
        for slot in &mut numbers {
            let part = parts.next()?;
            if part.is_empty()
                || (part.len() > 1 && part.starts_with('0'))
                || !part.bytes().all(|b| b.is_ascii_digit())
            {
                return None;
            }
            *slot = part.parse().ok()?;
        }
        let word = |p: &str| !p.is_empty() && p.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        let pre: Vec<String> = pre.map(|p| p.split('.').map(str::to_owned).collect()).unwrap_or_default();
        let numeric_fine =
            |p: &String| !(p.len() > 1 && p.starts_with('0') && p.bytes().all(|b| b.is_ascii_digit()));
        let fine = parts.next().is_none()
            && pre.iter().all(|p| word(p) && numeric_fine(p))
            && build.is_none_or(|b| b.split('.').all(word));
        fine.then_some(Semver { numbers, pre })
    }

    /// Accepts a leading `v`, missing parts and leading zeroes.
    fn parse_lenient(text: &str) -> Option<Self> {
        let text = text.trim().trim_start_matches('v');
        let end = text.find(['-', '+']).unwrap_or(text.len());
        let mut parts: Vec<String> = text[..end]
            .split('.')
            .map(|p| {
                let stripped = p.trim_start_matches('0');
                if stripped.is_empty() && !p.is_empty() { "0".to_owned() } else { stripped.to_owned() }
            })
            .collect();
        if parts.len() < 3 && end < text.len() {
            return None;
        }
        while parts.len() < 3 {
            parts.push("0".to_owned());
        }
        Self::parse(&format!("{}{}", parts.join("."), &text[end..]))
    }
}

impl Ord for Semver {
    fn cmp(&self, other: &Self) -> Ordering {
        let pre = || match (self.pre.is_empty(), other.pre.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => {
                let by_part = self.pre.iter().zip(&other.pre).map(|(a, b)| {
                    match (a.parse::<u64>(), b.parse::<u64>()) {
                        (Ok(x), Ok(y)) => x.cmp(&y),
                        (Ok(_), Err(_)) => Ordering::Less,
                        (Err(_), Ok(_)) => Ordering::Greater,
                        (Err(_), Err(_)) => a.cmp(b),
                    }
                });
                by_part
                    .into_iter()
                    .find(|o| *o != Ordering::Equal)
                    .unwrap_or_else(|| self.pre.len().cmp(&other.pre.len()))
            }
        };
        self.numbers.cmp(&other.numbers).then_with(pre)
    }
}

impl PartialOrd for Semver {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

pub(super) fn call<'a>(name: &str, args: &[Value<'a>]) -> Option<Eval<'a>> {
    match (name, args) {
        ("isSemver", [Value::Text(text)]) => return bool_of(Semver::parse(text).is_some()),
        ("isSemver", [Value::Text(text), Value::Bool(lenient)]) => {
            return bool_of(
                if *lenient { Semver::parse_lenient(text) } else { Semver::parse(text) }.is_some(),
            );
        }
        ("semver", [Value::Text(text), rest @ ..]) => {
            let parsed = match rest {
                [Value::Bool(true)] => Semver::parse_lenient(text),
                [] | [Value::Bool(false)] => Semver::parse(text),
                _ => return None,
            };
            return Some(parsed.map(|v| opaque(Opaque::Semver(v))).ok_or_else(|| {
                match text.splitn(3, '.').count() {
                    3 => EvalError::new(format!("invalid semantic version {text:?}")),
                    _ => EvalError::new("No Major.Minor.Patch elements found"),
                }
            }));
        }
        _ => {}
    }
    let (Value::Opaque(Opaque::Semver(version)), rest) = args.split_first()? else { return None };
    Some(Ok(match (name, rest) {
        ("major", []) => Value::Int(version.numbers[0] as i64),
        ("minor", []) => Value::Int(version.numbers[1] as i64),
        ("patch", []) => Value::Int(version.numbers[2] as i64),
        ("compareTo", [Value::Opaque(Opaque::Semver(other))]) => Value::Int(version.cmp(other) as i64),
        ("isLessThan", [Value::Opaque(Opaque::Semver(other))]) => Value::Bool(version < other),
        ("isGreaterThan", [Value::Opaque(Opaque::Semver(other))]) => Value::Bool(version > other),
        _ => return None,
    }))
}
