//! Regular expressions with Go's syntax and matching rules.

use std::cell::RefCell;
use std::rc::Rc;

use fl_go::regexp::{MAX_NESTING, MAX_PROGRAM, PatternError};
use fl_gotemplate::{CallError, Context, Functions, List, ListType, Str, Value, runes};
use regex::bytes::{Captures, Regex, RegexBuilder};
use rustc_hash::FxHashMap;

use crate::args::{I, Out, S, bytes, fixed, int, string};

/// Compiled patterns cached per thread.
const MAX_CACHED_PATTERNS: usize = 64;

thread_local! {
    static COMPILED: RefCell<FxHashMap<Str, Rc<Regex>>> = RefCell::default();
}

pub(crate) fn add(f: &mut Functions) {
    fixed(f, "regexMatch", &[S, S], |cx, a| match compile(cx, a) {
        Ok(re) => Ok(re.is_match(bytes(a, 1)).into()),
        Err(error) if error.is_budget() => Err(error),
        Err(_) => Ok(false.into()),
    });
    fixed(f, "mustRegexMatch", &[S, S], |cx, a| Ok(compile(cx, a)?.is_match(bytes(a, 1)).into()));
    fixed(f, "regexFind", &[S, S], |cx, a| find(&*must(cx, a)?, bytes(a, 1)));
    fixed(f, "mustRegexFind", &[S, S], |cx, a| find(&*compile(cx, a)?, bytes(a, 1)));
    fixed(f, "regexFindAll", &[S, S, I], |cx, a| {
        let re = must(cx, a)?;
        find_all(cx, &re, bytes(a, 1), int(a, 2))
    });
    fixed(f, "mustRegexFindAll", &[S, S, I], |cx, a| {
        let re = compile(cx, a)?;
        find_all(cx, &re, bytes(a, 1), int(a, 2))
    });
    fixed(f, "regexReplaceAll", &[S, S, S], |cx, a| {
        let re = must(cx, a)?;
        replace(cx, &re, bytes(a, 1), bytes(a, 2), true)
    });
    fixed(f, "mustRegexReplaceAll", &[S, S, S], |cx, a| {
        let re = compile(cx, a)?;
        replace(cx, &re, bytes(a, 1), bytes(a, 2), true)
    });
    fixed(f, "regexReplaceAllLiteral", &[S, S, S], |cx, a| {
        let re = must(cx, a)?;
        replace(cx, &re, bytes(a, 1), bytes(a, 2), false)
    });
    fixed(f, "mustRegexReplaceAllLiteral", &[S, S, S], |cx, a| {
        let re = compile(cx, a)?;
        replace(cx, &re, bytes(a, 1), bytes(a, 2), false)
    });
    fixed(f, "regexSplit", &[S, S, I], |cx, a| {
        let re = must(cx, a)?;
        split(cx, &re, bytes(a, 1), int(a, 2))
    });
    fixed(f, "mustRegexSplit", &[S, S, I], |cx, a| {
        let re = compile(cx, a)?;
        split(cx, &re, bytes(a, 1), int(a, 2))
    });
    fixed(f, "regexQuoteMeta", &[S], |cx, a| {
        let mut out = Vec::new();
        for b in bytes(a, 0) {
            if br"\.+*?()|[]{}^$".contains(b) {
                out.push(b'\\');
            }
            out.push(*b);
        }
        string(cx, out)
    });
}

/// `regexp.Compile` of the first argument.
fn compile(cx: &mut Context<'_>, a: &[Value]) -> Result<Rc<Regex>, CallError> {
    let Some(pattern) = a[0].as_str() else { return Err(CallError::new("no pattern")) };
    cx.step(pattern.len() as u64 + bytes(a, 1).len() as u64 / 64)?;
    if let Some(found) = COMPILED.with_borrow(|kept| kept.get(pattern).cloned()) {
        return Ok(found);
    }
    let translated = fl_go::regexp::translate(pattern)
        .map_err(|e| CallError::new(format!("error parsing regexp: {}", e.text(pattern))))?;
    let compiled = RegexBuilder::new(&translated)
        .size_limit(MAX_PROGRAM)
        .dfa_size_limit(MAX_PROGRAM)
        .nest_limit(MAX_NESTING)
        .build()
        .map_err(|e| match PatternError::from_engine(&e) {
            large @ PatternError::TooLarge => CallError::budget(large.to_string()),
            other => CallError::new(other.to_string()),
        })?;
    let compiled = Rc::new(compiled);
    COMPILED.with_borrow_mut(|kept| {
        if kept.len() >= MAX_CACHED_PATTERNS {
            kept.clear();
        }
        kept.insert(pattern.clone(), Rc::clone(&compiled));
    });
    Ok(compiled)
}

/// `regexp.MustCompile`: the panic names the pattern.
fn must(cx: &mut Context<'_>, a: &[Value]) -> Result<Rc<Regex>, CallError> {
    compile(cx, a).map_err(|e| {
        if e.is_budget() {
            return e;
        }
        let pattern = bytes(a, 0);
        let fits = |c: char| !matches!(c, '`' | '\u{7f}' | '\u{feff}') && (c >= ' ' || c == '\t');
        let shown = match std::str::from_utf8(pattern) {
            Ok(text) if text.chars().all(fits) => format!("`{text}`"),
            _ => fl_gotemplate::fmt::quoted(pattern),
        };
        CallError::new(format!("regexp: Compile({shown}): {}", e.message()))
    })
}

fn find(re: &Regex, s: &[u8]) -> Out {
    Ok(Value::str(re.find(s).map(|m| m.as_bytes()).unwrap_or_default()))
}

/// Ranges of successive matches, at most `n` unless negative. An empty match right after another is skipped.
fn matches(cx: &mut Context<'_>, re: &Regex, s: &[u8], n: i64) -> Result<Vec<(usize, usize)>, CallError> {
    let most = if n < 0 { s.len() + 1 } else { n as usize };
    let mut found = Vec::new();
    let mut at = 0;
    let mut previous_end = None;
    while found.len() < most && at <= s.len() {
        cx.step(1)?;
        let Some(m) = re.find_at(s, at) else { break };
        let mut accept = true;
        if m.end() == at {
            accept = previous_end != Some(m.start());
            at += runes::decode(&s[at..]).map_or(1, |(_, width)| width);
        } else {
            at = m.end();
        }
        previous_end = Some(m.end());
        if accept {
            found.push((m.start(), m.end()));
        }
    }
    Ok(found)
}

fn find_all(cx: &mut Context<'_>, re: &Regex, s: &[u8], n: i64) -> Out {
    let found = matches(cx, re, s, n)?;
    if found.is_empty() {
        return Ok(Value::List(List::nil(ListType::Str)));
    }
    Ok(Value::List(List::of_strings(found.into_iter().map(|(from, to)| &s[from..to]))))
}

fn replace(cx: &mut Context<'_>, re: &Regex, s: &[u8], template: &[u8], expand: bool) -> Out {
    let mut out = Vec::with_capacity(s.len());
    let mut last_end = 0;
    let mut at = 0;
    while at <= s.len() {
        cx.step(1)?;
        let Some(captures) = re.captures_at(s, at) else { break };
        let Some(m) = captures.get(0) else { break };
        out.extend_from_slice(&s[last_end..m.start()]);
        if m.end() > last_end || m.start() == 0 {
            if expand {
                expand_into(&mut out, template, &captures);
            } else {
                out.extend_from_slice(template);
            }
            if out.len() as u64 > cx.max_value_bytes() {
                cx.reserve(out.len() as u64)?;
            }
        }
        last_end = m.end();
        let width = runes::decode(&s[at..]).map_or(1, |(_, width)| width);
        at = if at + width > m.end() {
            at + width
        } else if at + 1 > m.end() {
            at + 1
        } else {
            m.end()
        };
    }
    out.extend_from_slice(&s[last_end.min(s.len())..]);
    string(cx, out)
}

/// `Regexp.Expand`: `$1`, `$name`, `${name}`; a name is the longest run of letters, digits and underscores.
fn expand_into(out: &mut Vec<u8>, template: &[u8], captures: &Captures<'_>) {
    let mut rest = template;
    while let Some(dollar) = memchr::memchr(b'$', rest) {
        out.extend_from_slice(&rest[..dollar]);
        rest = &rest[dollar..];
        if rest.starts_with(b"$$") {
            out.push(b'$');
            rest = &rest[2..];
            continue;
        }
        let Some((name, after)) = reference(rest) else {
            out.push(b'$');
            rest = &rest[1..];
            continue;
        };
        rest = after;
        let number = std::str::from_utf8(name).ok().filter(|n| n.bytes().all(|b| b.is_ascii_digit()));
        let group = match number {
            Some(n) => n.parse::<usize>().ok().filter(|n| *n < 100_000_000).and_then(|n| captures.get(n)),
            None => std::str::from_utf8(name).ok().and_then(|n| {
                // Of groups with the same name, the first that matched is used.
                captures.name(n).or_else(|| {
                    (1..captures.len()).find_map(|k| captures.name(&fl_go::regexp::unique_group_name(n, k)))
                })
            }),
        };
        if let Some(group) = group {
            out.extend_from_slice(group.as_bytes());
        }
    }
    out.extend_from_slice(rest);
}

/// The name after a `$`, and the rest.
fn reference(s: &[u8]) -> Option<(&[u8], &[u8])> {
    let braced = s.get(1) == Some(&b'{');
    let from = if braced { 2 } else { 1 };
    let mut to = from;
    for (at, c, width) in runes::runes(s.get(from..)?) {
        if !runes::is_word(c) {
            break;
        }
        to = from + at + width;
    }
    if to == from {
        return None;
    }
    if braced {
        return (s.get(to) == Some(&b'}')).then(|| (&s[from..to], &s[to + 1..]));
    }
    Some((&s[from..to], &s[to..]))
}

/// `Regexp.Split`
fn split(cx: &mut Context<'_>, re: &Regex, s: &[u8], n: i64) -> Out {
    if n == 0 {
        return Ok(Value::List(List::nil(ListType::Str)));
    }
    if !re.as_str().is_empty() && s.is_empty() {
        return Ok(Value::List(List::of_strings([""])));
    }
    let found = matches(cx, re, s, n)?;
    let mut parts: Vec<&[u8]> = Vec::new();
    let (mut from, mut end) = (0, 0);
    for (start, stop) in found {
        if n > 0 && parts.len() as i64 == n - 1 {
            break;
        }
        end = start;
        if stop != 0 {
            parts.push(&s[from..end]);
        }
        from = stop;
    }
    if end != s.len() {
        parts.push(&s[from..]);
    }
    Ok(Value::List(List::of_strings(parts)))
}
