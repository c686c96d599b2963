//! Grammar of versions: plain ones, and those of ranges where numbers may be `x`, `X` or `*`.
//!
//! Both can be parsed greedily: no part can start with a character that the previous part accepts.

/// The parts of a version; `pre` and `metadata` without their `-` and `+`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parts<'a> {
    /// The whole text, with a leading `v`.
    pub(crate) whole: &'a str,
    pub(crate) major: &'a str,
    pub(crate) minor: Option<&'a str>,
    pub(crate) patch: Option<&'a str>,
    pub(crate) pre: Option<&'a str>,
    pub(crate) metadata: Option<&'a str>,
}

fn run(text: &str, accept: impl Fn(u8) -> bool) -> usize {
    text.bytes().take_while(|b| accept(*b)).count()
}

/// Parses `.` and a run of accepted characters, if present.
fn dotted<'a>(text: &mut &'a str, accept: impl Fn(u8) -> bool) -> Option<&'a str> {
    let rest = text.strip_prefix('.')?;
    let len = run(rest, accept);
    (len > 0).then(|| {
        *text = &rest[len..];
        &rest[..len]
    })
}

/// Parses a mark and the dot-separated identifiers after it, if present.
fn identifiers<'a>(text: &mut &'a str, mark: char) -> Option<&'a str> {
    let accept = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
    let rest = text.strip_prefix(mark)?;
    let first = run(rest, accept);
    if first == 0 {
        return None;
    }
    let mut after = &rest[first..];
    while dotted(&mut after, accept).is_some() {}
    *text = after;
    Some(&rest[..rest.len() - after.len()])
}

fn parts<'a>(text: &'a str, accept: impl Fn(u8) -> bool + Copy) -> Option<Parts<'a>> {
    let mut rest = text.strip_prefix('v').unwrap_or(text);
    let len = run(rest, accept);
    if len == 0 {
        return None;
    }
    let major = &rest[..len];
    rest = &rest[len..];
    let minor = dotted(&mut rest, accept);
    let patch = minor.and_then(|_| dotted(&mut rest, accept));
    let pre = identifiers(&mut rest, '-');
    let metadata = identifiers(&mut rest, '+');
    Some(Parts { whole: &text[..text.len() - rest.len()], major, minor, patch, pre, metadata })
}

/// Parses a whole text as a version with one to three numbers.
pub(crate) fn version(text: &str) -> Option<Parts<'_>> {
    parts(text, |b| b.is_ascii_digit()).filter(|p| p.whole.len() == text.len())
}

/// Parses the version of a comparison at the start of a text. Masterminds' pattern accepts `|` as a digit;
/// such versions fail later, with another message.
pub(crate) fn wildcard_version(text: &str) -> Option<Parts<'_>> {
    parts(text, |b| b.is_ascii_digit() || matches!(b, b'x' | b'X' | b'*' | b'|'))
}

/// White space in Masterminds' patterns.
pub(crate) fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\x0c' | '\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_parts_are_parsed() {
        let p = version("v1.2.3-a.b-c+d.1").expect("a version");
        assert_eq!((p.major, p.minor, p.patch), ("1", Some("2"), Some("3")));
        assert_eq!((p.pre, p.metadata), (Some("a.b-c"), Some("d.1")));
        assert!(version("1.2.3.4").is_none());
        assert!(version("1.2.3-").is_none());
        assert_eq!(wildcard_version("1.x - 2").map(|p| p.whole), Some("1.x"));
    }
}
