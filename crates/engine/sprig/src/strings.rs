//! Strings: trimming, quoting, indenting, cutting, joining.

use fl_gotemplate::{CallError, Context, Entries, Functions, List, Map, MapType, Str, Value, fmt, runes};
use memchr::memmem;

use crate::args::{A, I, Out, S, bytes, fixed, int, items, slice_bytes, string, strval, variadic};
use crate::letter_case::{self, map_runes};

pub(crate) fn add(f: &mut Functions) {
    fixed(f, "hello", &[], |_, _| Ok("Hello!".into()));
    fixed(f, "trim", &[S], |_, a| Ok(Value::str(trim_space(bytes(a, 0)))));
    fixed(f, "upper", &[S], |cx, a| string(cx, map_runes(bytes(a, 0), letter_case::to_upper)));
    fixed(f, "lower", &[S], |cx, a| string(cx, map_runes(bytes(a, 0), letter_case::to_lower)));
    fixed(f, "title", &[S], |cx, a| string(cx, letter_case::title(bytes(a, 0))));
    fixed(f, "untitle", &[S], |cx, a| string(cx, letter_case::untitle(bytes(a, 0))));
    fixed(f, "swapcase", &[S], |cx, a| string(cx, letter_case::swap_case(bytes(a, 0))));
    fixed(f, "initials", &[S], |cx, a| string(cx, letter_case::initials(bytes(a, 0))));
    fixed(f, "nospace", &[S], |cx, a| string(cx, letter_case::delete_white_space(bytes(a, 0))));
    fixed(f, "camelcase", &[S], |cx, a| string(cx, crate::word_case::pascal_case(bytes(a, 0))));
    fixed(f, "snakecase", &[S], |cx, a| string(cx, crate::word_case::lower_case(bytes(a, 0), '_')));
    fixed(f, "kebabcase", &[S], |cx, a| string(cx, crate::word_case::lower_case(bytes(a, 0), '-')));
    fixed(f, "abbrev", &[I, S], |cx, a| abbrev(cx, 0, int(a, 0), bytes(a, 1)));
    fixed(f, "abbrevboth", &[I, I, S], |cx, a| abbrev(cx, int(a, 0), int(a, 1), bytes(a, 2)));
    fixed(f, "trunc", &[I, S], |_, a| Ok(Value::str(trunc(int(a, 0), bytes(a, 1)))));
    fixed(f, "substr", &[I, I, S], substr);
    fixed(f, "repeat", &[I, S], repeat);
    fixed(f, "trimall", &[S, S], |_, a| Ok(Value::str(trim_any(bytes(a, 1), bytes(a, 0)))));
    fixed(f, "trimAll", &[S, S], |_, a| Ok(Value::str(trim_any(bytes(a, 1), bytes(a, 0)))));
    fixed(f, "trimSuffix", &[S, S], |_, a| {
        let s = bytes(a, 1);
        Ok(Value::str(s.strip_suffix(bytes(a, 0)).unwrap_or(s)))
    });
    fixed(f, "trimPrefix", &[S, S], |_, a| {
        let s = bytes(a, 1);
        Ok(Value::str(s.strip_prefix(bytes(a, 0)).unwrap_or(s)))
    });
    fixed(f, "contains", &[S, S], |_, a| Ok(memmem::find(bytes(a, 1), bytes(a, 0)).is_some().into()));
    fixed(f, "hasPrefix", &[S, S], |_, a| Ok(bytes(a, 1).starts_with(bytes(a, 0)).into()));
    fixed(f, "hasSuffix", &[S, S], |_, a| Ok(bytes(a, 1).ends_with(bytes(a, 0)).into()));
    variadic(f, "quote", &[A], quote);
    variadic(f, "squote", &[A], squote);
    variadic(f, "cat", &[A], cat);
    fixed(f, "indent", &[I, S], |cx, a| indent(cx, int(a, 0), bytes(a, 1), false));
    fixed(f, "nindent", &[I, S], |cx, a| indent(cx, int(a, 0), bytes(a, 1), true));
    fixed(f, "replace", &[S, S, S], |cx, a| {
        let text = replace(cx, bytes(a, 2), bytes(a, 0), bytes(a, 1))?;
        string(cx, text)
    });
    fixed(f, "plural", &[S, S, I], |_, a| Ok(a[usize::from(int(a, 2) != 1)].clone()));
    fixed(f, "wrap", &[I, S], |cx, a| {
        let text = wrap(cx, bytes(a, 1), int(a, 0), b"", false)?;
        string(cx, text)
    });
    fixed(f, "wrapWith", &[I, S, S], |cx, a| {
        let text = wrap(cx, bytes(a, 2), int(a, 0), bytes(a, 1), true)?;
        string(cx, text)
    });
    fixed(f, "toString", &[A], |cx, a| Ok(Value::Str(strval(cx, &a[0])?)));
    fixed(f, "toStrings", &[A], |cx, a| Ok(Value::List(List::of_strings(strings_of(cx, &a[0])?))));
    fixed(f, "join", &[S, A], join);
    fixed(f, "sortAlpha", &[A], sort_alpha);
    fixed(f, "splitList", &[S, S], |cx, a| split_list(cx, bytes(a, 1), bytes(a, 0)));
    fixed(f, "split", &[S, S], |cx, a| split_map(cx, bytes(a, 1), bytes(a, 0), -1));
    fixed(f, "splitn", &[S, I, S], |cx, a| split_map(cx, bytes(a, 2), bytes(a, 0), int(a, 1)));
}

/// `strings.TrimSpace`
pub(crate) fn trim_space(s: &[u8]) -> &[u8] {
    let mut s = s;
    while let Some((c, width)) = runes::decode(s)
        && runes::is_space(c)
    {
        s = &s[width..];
    }
    while let Some((c, width)) = runes::decode_last(s)
        && runes::is_space(c)
    {
        s = &s[..s.len() - width];
    }
    s
}

/// `strings.Trim`: every leading and trailing rune of the set.
fn trim_any<'s>(s: &'s [u8], set: &[u8]) -> &'s [u8] {
    let set: Vec<char> = runes::runes(set).map(|(_, c, _)| c).collect();
    let mut s = s;
    while let Some((c, width)) = runes::decode(s)
        && set.contains(&c)
    {
        s = &s[width..];
    }
    while let Some((c, width)) = runes::decode_last(s)
        && set.contains(&c)
    {
        s = &s[..s.len() - width];
    }
    s
}

fn trunc(count: i64, s: &[u8]) -> &[u8] {
    let length = s.len() as i64;
    if count < 0 && length.saturating_add(count) > 0 {
        return &s[(length + count) as usize..];
    }
    if count >= 0 && length > count {
        return &s[..count as usize];
    }
    s
}

fn substr(_: &mut Context<'_>, a: &[Value]) -> Out {
    let (start, end, s) = (int(a, 0), int(a, 1), bytes(a, 2));
    let cut = if start < 0 {
        slice_bytes(s, None, Some(end))?
    } else if end < 0 || end > s.len() as i64 {
        slice_bytes(s, Some(start), None)?
    } else {
        slice_bytes(s, Some(start), Some(end))?
    };
    Ok(Value::str(cut))
}

/// `goutils.AbbreviateFull`; with too small a width the string is unchanged or empty, as in Sprig.
fn abbrev(cx: &mut Context<'_>, left: i64, width: i64, s: &[u8]) -> Out {
    if width < 4 || left > 0 && width < 7 {
        return string(cx, s);
    }
    string(cx, abbreviate(s, left, width)?)
}

fn abbreviate(s: &[u8], offset: i64, width: i64) -> Result<Vec<u8>, CallError> {
    let length = s.len() as i64;
    if s.is_empty() || width < 4 {
        return Ok(Vec::new());
    }
    if length <= width {
        return Ok(s.to_vec());
    }
    let mut offset = offset.min(length);
    if length - offset < width - 3 {
        offset = length - (width - 3);
    }
    if offset <= 4 {
        return Ok([slice_bytes(s, Some(0), Some(width - 3))?, b"..."].concat());
    }
    if width < 7 {
        return Ok(Vec::new());
    }
    if offset + width - 3 < length {
        return Ok([b"..." as &[u8], &abbreviate(&s[offset as usize..], 0, width - 3)?].concat());
    }
    Ok([b"..." as &[u8], &s[(length - (width - 3)) as usize..]].concat())
}

fn repeat(cx: &mut Context<'_>, a: &[Value]) -> Out {
    let (count, s) = (int(a, 0), bytes(a, 1));
    let count = usize::try_from(count).map_err(|_| CallError::new("strings: negative Repeat count"))?;
    cx.reserve((s.len() as u64).saturating_mul(count as u64))?;
    Ok(Value::str(s.repeat(if s.is_empty() { 0 } else { count })))
}

fn quote(cx: &mut Context<'_>, a: &[Value]) -> Out {
    let mut out = Vec::new();
    for value in a.iter().filter(|v| !matches!(v, Value::Nil)) {
        if !out.is_empty() {
            out.push(b' ');
        }
        fmt::quote_into(&mut out, &strval(cx, value)?, b'"', false);
    }
    string(cx, out)
}

fn squote(cx: &mut Context<'_>, a: &[Value]) -> Out {
    let mut out = Vec::new();
    for value in a.iter().filter(|v| !matches!(v, Value::Nil)) {
        if !out.is_empty() {
            out.push(b' ');
        }
        out.push(b'\'');
        out.extend(fmt::sprintf(b"%v", std::slice::from_ref(value), cx.max_value_bytes())?);
        out.push(b'\'');
    }
    string(cx, out)
}

fn cat(cx: &mut Context<'_>, a: &[Value]) -> Out {
    let mut out = Vec::new();
    for (i, value) in a.iter().filter(|v| !matches!(v, Value::Nil)).enumerate() {
        // Empty strings keep their separator.
        if i > 0 {
            out.push(b' ');
        }
        out.extend(fmt::sprintf(b"%v", std::slice::from_ref(value), cx.max_value_bytes())?);
    }
    string(cx, out)
}

fn indent(cx: &mut Context<'_>, spaces: i64, s: &[u8], newline: bool) -> Out {
    let spaces = usize::try_from(spaces).map_err(|_| CallError::new("strings: negative Repeat count"))?;
    let breaks = memchr::memchr_iter(b'\n', s).count();
    let total = (spaces as u64).saturating_mul(breaks as u64 + 1).saturating_add(s.len() as u64 + 1);
    cx.reserve(total)?;
    let mut out = Vec::with_capacity(total as usize);
    if newline {
        out.push(b'\n');
    }
    let mut from = 0;
    for at in memchr::memchr_iter(b'\n', s) {
        out.resize(out.len() + spaces, b' ');
        out.extend_from_slice(&s[from..=at]);
        from = at + 1;
    }
    out.resize(out.len() + spaces, b' ');
    out.extend_from_slice(&s[from..]);
    Ok(Value::str(out))
}

/// `strings.ReplaceAll`; an empty `old` matches between all runes.
pub(crate) fn replace(cx: &mut Context<'_>, s: &[u8], old: &[u8], new: &[u8]) -> Result<Vec<u8>, CallError> {
    let mut out = Vec::with_capacity(s.len());
    if old.is_empty() {
        cx.reserve((s.len() as u64 + 1).saturating_mul(new.len() as u64 + 1))?;
        out.extend_from_slice(new);
        for (at, _, width) in runes::runes(s) {
            out.extend_from_slice(&s[at..at + width]);
            out.extend_from_slice(new);
        }
        return Ok(out);
    }
    let mut from = 0;
    let matches: Vec<usize> = memmem::find_iter(s, old).collect();
    cx.reserve((matches.len() as u64).saturating_mul(new.len() as u64))?;
    for at in matches {
        out.extend_from_slice(&s[from..at]);
        out.extend_from_slice(new);
        from = at + old.len();
    }
    out.extend_from_slice(&s[from..]);
    Ok(out)
}

/// `goutils.WrapCustom`, which counts bytes.
fn wrap(
    cx: &mut Context<'_>,
    s: &[u8],
    width: i64,
    newline: &[u8],
    long_words: bool,
) -> Result<Vec<u8>, CallError> {
    let newline = if newline.is_empty() { b"\n" } else { newline };
    let width = usize::try_from(width).unwrap_or(0).max(1);
    cx.reserve((s.len() as u64).saturating_mul(newline.len() as u64 + 1))?;
    let mut out = Vec::with_capacity(s.len());
    let mut offset = 0;
    while s.len() - offset > width {
        if s[offset] == b' ' {
            offset += 1;
            continue;
        }
        let end = offset + width;
        if let Some(space) = memchr::memrchr(b' ', &s[offset..=end]) {
            out.extend_from_slice(&s[offset..offset + space]);
            out.extend_from_slice(newline);
            offset += space + 1;
        } else if long_words {
            out.extend_from_slice(&s[offset..end]);
            out.extend_from_slice(newline);
            offset = end;
        } else if let Some(space) = memchr::memchr(b' ', &s[end..]) {
            out.extend_from_slice(&s[offset..end + space]);
            out.extend_from_slice(newline);
            offset = end + space + 1;
        } else {
            out.extend_from_slice(&s[offset..]);
            offset = s.len();
        }
    }
    out.extend_from_slice(&s[offset..]);
    Ok(out)
}

/// Sprig's `strslice`: every item as string, without nils; a single value becomes a list of one.
pub(crate) fn strings_of(cx: &Context<'_>, value: &Value) -> Result<Vec<Str>, CallError> {
    match (value, items(value)) {
        (Value::Nil, _) => Ok(Vec::new()),
        (_, Ok(items)) => items.iter().filter(|v| !matches!(v, Value::Nil)).map(|v| strval(cx, v)).collect(),
        (_, Err(_)) => Ok(vec![strval(cx, value)?]),
    }
}

fn join(cx: &mut Context<'_>, a: &[Value]) -> Out {
    let parts = strings_of(cx, &a[1])?;
    let separator = bytes(a, 0);
    let total = parts.iter().map(|p| p.len() as u64).sum::<u64>() + (parts.len() * separator.len()) as u64;
    cx.reserve(total)?;
    let mut out = Vec::with_capacity(total as usize);
    for (i, part) in parts.iter().enumerate() {
        if i > 0 {
            out.extend_from_slice(separator);
        }
        out.extend_from_slice(part);
    }
    Ok(Value::str(out))
}

fn sort_alpha(cx: &mut Context<'_>, a: &[Value]) -> Out {
    if items(&a[0]).is_err() {
        return Ok(Value::List(List::of_strings([strval(cx, &a[0])?])));
    }
    let mut parts = strings_of(cx, &a[0])?;
    parts.sort();
    Ok(Value::List(List::of_strings(parts)))
}

/// `strings.SplitN`; an empty separator splits between runes.
pub(crate) fn split(s: &[u8], separator: &[u8], n: i64) -> Vec<Str> {
    if n == 0 {
        return Vec::new();
    }
    let most = if n < 0 { usize::MAX } else { n as usize };
    let mut parts = Vec::new();
    if separator.is_empty() {
        let mut at = 0;
        for (start, _, width) in runes::runes(s) {
            if parts.len() + 1 == most {
                break;
            }
            parts.push(Str::from(&s[start..start + width]));
            at = start + width;
        }
        if at < s.len() {
            parts.push(Str::from(&s[at..]));
        }
        return parts;
    }
    let mut from = 0;
    for at in memmem::find_iter(s, separator) {
        if parts.len() + 1 >= most {
            break;
        }
        parts.push(Str::from(&s[from..at]));
        from = at + separator.len();
    }
    parts.push(Str::from(&s[from..]));
    parts
}

fn split_list(cx: &mut Context<'_>, s: &[u8], separator: &[u8]) -> Out {
    cx.reserve(s.len() as u64 * 8)?;
    let parts = split(s, separator, -1);
    cx.step(parts.len() as u64)?;
    Ok(Value::List(List::of_strings(parts)))
}

fn split_map(cx: &mut Context<'_>, s: &[u8], separator: &[u8], n: i64) -> Out {
    cx.reserve(s.len() as u64 * 8)?;
    let parts = split(s, separator, n);
    cx.step(parts.len() as u64)?;
    let entries: Entries = parts
        .into_iter()
        .enumerate()
        .map(|(i, part)| (Str::from(format!("_{i}")), Value::Str(part)))
        .collect();
    Ok(Value::Map(Map::with_type(MapType::Str, entries)))
}
