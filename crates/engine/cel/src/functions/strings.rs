//! Functions on strings.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use regex::Regex;

use super::format;
use crate::error::EvalError;
use crate::eval::{Eval, Scope};
use crate::value::Value;

pub(super) fn call<'a>(scope: &mut Scope<'a, '_>, name: &str, args: &[Value<'a>]) -> Option<Eval<'a>> {
    if let ("join", [Value::List(list), rest @ ..]) = (name, args) {
        let glue = match rest {
            [] => "",
            [Value::Text(glue)] => glue.as_ref(),
            _ => return None,
        };
        let parts: Option<Vec<String>> =
            list.iter().map(|v| if let Value::Text(t) = v { Some(t.into_owned()) } else { None }).collect();
        return Some(parts.map(|p| Value::text(p.join(glue))).ok_or_else(EvalError::no_overload));
    }
    let (Value::Text(text), rest) = args.split_first()? else { return None };
    let text = text.as_ref();
    Some(Ok(match (name, rest) {
        ("size", []) => Value::Int(text.chars().count() as i64),
        ("startsWith", [Value::Text(part)]) => Value::Bool(text.starts_with(part.as_ref())),
        ("endsWith", [Value::Text(part)]) => Value::Bool(text.ends_with(part.as_ref())),
        ("contains", [Value::Text(part)]) => Value::Bool(text.contains(part.as_ref())),
        ("matches" | "find" | "findAll", [Value::Text(pattern), limit @ ..]) => {
            // The cost of a match grows with the length of both pattern and text.
            if let Err(error) =
                scope.charge((text.len() as u64 / 10 + 1).saturating_mul(pattern.len() as u64 / 4 + 1))
            {
                return Some(Err(error));
            }
            return Some(search(name, text, pattern, limit));
        }
        ("lowerAscii", []) => Value::text(text.to_ascii_lowercase()),
        ("upperAscii", []) => Value::text(text.to_ascii_uppercase()),
        ("trim", []) => Value::text(text.trim()),
        ("reverse", []) => Value::text(text.chars().rev().collect::<String>()),
        ("charAt", [Value::Int(at)]) => return Some(char_at(text, *at)),
        ("indexOf" | "lastIndexOf", [Value::Text(part), from @ ..]) => {
            return Some(index_of(name, text, part, from));
        }
        ("substring", [Value::Int(from)]) => return Some(substring(text, *from, None)),
        ("substring", [Value::Int(from), Value::Int(to)]) => return Some(substring(text, *from, Some(*to))),
        ("replace", [Value::Text(old), Value::Text(new)]) => Value::text(text.replace(old.as_ref(), new)),
        ("replace", [Value::Text(old), Value::Text(new), Value::Int(count)]) => match usize::try_from(*count)
        {
            Ok(count) => Value::text(text.replacen(old.as_ref(), new, count)),
            Err(_) => Value::text(text.replace(old.as_ref(), new)),
        },
        ("split", [Value::Text(glue)]) => split(text, glue, -1),
        ("split", [Value::Text(glue), Value::Int(count)]) => split(text, glue, *count),
        ("format", [Value::List(list)]) => return Some(format::format(text, list)),
        ("strings.quote", []) => Value::text(fl_go::quote(text)),
        _ => return None,
    }))
}

/// Compiled patterns are cached: a rule uses the same few for every object.
pub(crate) fn compiled(pattern: &str) -> Result<Arc<Regex>, EvalError> {
    static CACHE: OnceLock<Mutex<HashMap<String, Arc<Regex>>>> = OnceLock::new();
    let cache = CACHE.get_or_init(Mutex::default);
    let mut cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = cache.get(pattern) {
        return Ok(Arc::clone(found));
    }
    let built = fl_go::regexp::compile(pattern).map_err(|why| EvalError::new(why.to_string()))?;
    if cache.len() >= 256 {
        cache.clear();
    }
    let built = Arc::new(built);
    cache.insert(pattern.to_owned(), Arc::clone(&built));
    Ok(built)
}

fn search<'a>(name: &str, text: &str, pattern: &str, limit: &[Value<'a>]) -> Eval<'a> {
    let regex = compiled(pattern).map_err(|why| match name {
        "matches" => why,
        _ => EvalError::new(format!("Illegal regex: {why}")),
    })?;
    Ok(match (name, limit) {
        ("matches", []) => Value::Bool(regex.is_match(text)),
        ("find", []) => Value::text(regex.find(text).map_or("", |m| m.as_str())),
        ("findAll", []) => Value::list(regex.find_iter(text).map(|m| Value::text(m.as_str())).collect()),
        ("findAll", [Value::Int(count)]) => {
            let count = usize::try_from(*count).unwrap_or(usize::MAX);
            Value::list(regex.find_iter(text).take(count).map(|m| Value::text(m.as_str())).collect())
        }
        _ => return Err(EvalError::no_overload()),
    })
}

fn char_at<'a>(text: &str, at: i64) -> Eval<'a> {
    let length = text.chars().count();
    match usize::try_from(at) {
        Ok(place) if place == length => Ok(Value::text("")),
        Ok(place) if place < length => {
            Ok(Value::text(text.chars().nth(place).map(String::from).unwrap_or_default()))
        }
        _ => Err(EvalError::new(format!("index out of range: {at}"))),
    }
}

fn index_of<'a>(name: &str, text: &str, part: &str, from: &[Value<'a>]) -> Eval<'a> {
    let chars: Vec<char> = text.chars().collect();
    let wanted: Vec<char> = part.chars().collect();
    let offset = match from {
        [] => None,
        [Value::Int(n)] => Some(*n),
        _ => return Err(EvalError::no_overload()),
    };
    if let Some(n) = offset.filter(|n| *n < 0) {
        return Err(EvalError::new(format!("index out of range: {n}")));
    }
    if offset.and_then(|n| usize::try_from(n).ok()).is_some_and(|n| n > chars.len()) {
        return Ok(Value::Int(-1));
    }
    let fits = |at: usize| chars[at..].starts_with(&wanted);
    let last = chars.len().checked_sub(wanted.len());
    let found = match (last, name) {
        (None, _) => None,
        (Some(last), "indexOf") => {
            let start = offset.and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
            (start..=last).find(|at| fits(*at))
        }
        (Some(last), _) => {
            let end = offset.and_then(|n| usize::try_from(n).ok()).unwrap_or(last).min(last);
            (0..=end).rev().find(|at| fits(*at))
        }
    };
    Ok(Value::Int(found.map_or(-1, |at| at as i64)))
}

fn substring<'a>(text: &str, from: i64, to: Option<i64>) -> Eval<'a> {
    let length = text.chars().count();
    let place = |n: i64| {
        usize::try_from(n)
            .ok()
            .filter(|n| *n <= length)
            .ok_or_else(|| EvalError::new(format!("index out of range: {n}")))
    };
    let start = place(from)?;
    let end = to.map_or(Ok(length), place)?;
    if start > end {
        return Err(EvalError::new(format!("invalid substring range. start: {start}, end: {end}")));
    }
    Ok(Value::text(text.chars().skip(start).take(end - start).collect::<String>()))
}

fn split<'a>(text: &str, glue: &str, count: i64) -> Value<'a> {
    let all = |parts: Vec<String>| Value::list(parts.into_iter().map(Value::text).collect());
    if count == 0 {
        return Value::list(Vec::new());
    }
    let limit = usize::try_from(count).unwrap_or(usize::MAX);
    if glue.is_empty() {
        // Splits between all characters, with the rest in the last part.
        let chars: Vec<char> = text.chars().collect();
        if chars.len() <= limit {
            return all(chars.into_iter().map(String::from).collect());
        }
        let mut parts: Vec<String> = chars[..limit - 1].iter().map(|c| String::from(*c)).collect();
        parts.push(chars[limit - 1..].iter().collect());
        return all(parts);
    }
    all(text.splitn(limit, glue).map(str::to_owned).collect())
}
