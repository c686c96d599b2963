//! The patterns of `#`, `##`, `%` and `%%`: Go's `path.Match`, but `*` also matches slashes.

/// A malformed pattern; the value is not changed then.
struct BadPattern;

/// Removes the shortest or longest prefix of `value` that matches `pattern`.
///
/// Prefixes are counted in bytes as upstream does, so `?` can match a part of a multi-byte character.
pub(crate) fn without_prefix<'a>(value: &'a [u8], pattern: &str, longest: bool) -> &'a [u8] {
    let mut found = None;
    // Prefixes of every length in bytes, longest first, without the empty one.
    for end in (1..=value.len()).rev() {
        match matches(pattern.as_bytes(), &value[..end]) {
            Err(BadPattern) => return value,
            Ok(false) => {}
            Ok(true) => {
                found = Some(end);
                if longest {
                    break;
                }
            }
        }
    }
    found.map_or(value, |end| &value[end..])
}

fn matches(mut pattern: &[u8], mut name: &[u8]) -> Result<bool, BadPattern> {
    'pattern: while !pattern.is_empty() {
        let (star, chunk, rest) = split_chunk(pattern);
        pattern = rest;
        if star && chunk.is_empty() {
            return Ok(true);
        }
        let fits = |left: &[u8]| left.is_empty() || !rest.is_empty();
        if let Some(left) = match_chunk(chunk, name)?
            && fits(left)
        {
            name = left;
            continue;
        }
        if star {
            for skip in 1..=name.len() {
                if let Some(left) = match_chunk(chunk, &name[skip..])?
                    && fits(left)
                {
                    name = left;
                    continue 'pattern;
                }
            }
        }
        return Ok(false);
    }
    Ok(name.is_empty())
}

/// Splits the pattern into: whether it begins with `*`, the text up to the next `*`, the rest.
fn split_chunk(pattern: &[u8]) -> (bool, &[u8], &[u8]) {
    let stars = pattern.iter().take_while(|b| **b == b'*').count();
    let pattern = &pattern[stars..];
    let mut in_range = false;
    let mut i = 0;
    while i < pattern.len() {
        match pattern[i] {
            b'\\' if i + 1 < pattern.len() => i += 1,
            b'[' => in_range = true,
            b']' => in_range = false,
            b'*' if !in_range => break,
            _ => {}
        }
        i += 1;
    }
    (stars > 0, &pattern[..i], &pattern[i..])
}

/// The rest of `name` after `chunk`, or `None` if it does not begin with it.
fn match_chunk<'a>(mut chunk: &[u8], mut name: &'a [u8]) -> Result<Option<&'a [u8]>, BadPattern> {
    while let Some((&first, rest)) = chunk.split_first() {
        if name.is_empty() {
            return Ok(None);
        }
        match first {
            b'[' => {
                let (c, width) = decode(name);
                name = &name[width..];
                let (matched, rest) = match_class(rest, c)?;
                if !matched {
                    return Ok(None);
                }
                chunk = rest;
            }
            b'?' => {
                name = &name[decode(name).1..];
                chunk = rest;
            }
            _ => {
                let literal = if first == b'\\' { rest } else { chunk };
                let Some((&wanted, rest)) = literal.split_first() else { return Err(BadPattern) };
                if wanted != name[0] {
                    return Ok(None);
                }
                name = &name[1..];
                chunk = rest;
            }
        }
    }
    Ok(Some(name))
}

/// Matches a character class after its `[`: whether `c` is in it, and the rest after `]`.
fn match_class(mut chunk: &[u8], c: char) -> Result<(bool, &[u8]), BadPattern> {
    let negated = chunk.first() == Some(&b'^');
    chunk = &chunk[usize::from(negated)..];
    let (mut found, mut ranges) = (false, 0);
    loop {
        if ranges > 0 && chunk.first() == Some(&b']') {
            return Ok((found != negated, &chunk[1..]));
        }
        let (low, rest) = class_char(chunk)?;
        chunk = rest;
        let mut high = low;
        if chunk.first() == Some(&b'-') {
            (high, chunk) = class_char(&chunk[1..])?;
        }
        found |= (low..=high).contains(&c);
        ranges += 1;
    }
}

fn class_char(chunk: &[u8]) -> Result<(char, &[u8]), BadPattern> {
    let chunk = match chunk {
        [] | [b'-' | b']', ..] => return Err(BadPattern),
        [b'\\', rest @ ..] => rest,
        chunk => chunk,
    };
    if chunk.is_empty() {
        return Err(BadPattern);
    }
    let (c, width) = decode(chunk);
    let rest = &chunk[width..];
    if rest.is_empty() { Err(BadPattern) } else { Ok((c, rest)) }
}

/// The first character and its length; an invalid byte counts as a replacement character.
fn decode(bytes: &[u8]) -> (char, usize) {
    let longest = &bytes[..bytes.len().min(4)];
    let valid = match std::str::from_utf8(longest) {
        Ok(text) => text,
        Err(e) => std::str::from_utf8(&longest[..e.valid_up_to()]).unwrap_or_default(),
    };
    valid.chars().next().map_or((char::REPLACEMENT_CHARACTER, 1), |c| (c, c.len_utf8()))
}
