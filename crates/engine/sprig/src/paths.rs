//! Slash-separated paths; the `os` functions are the same on Unix.

use fl_gotemplate::Functions;

use crate::args::{S, bytes, fixed, string};

pub(crate) fn add(f: &mut Functions) {
    for name in ["base", "osBase"] {
        fixed(f, name, &[S], |cx, a| string(cx, base(bytes(a, 0))));
    }
    for name in ["dir", "osDir"] {
        fixed(f, name, &[S], |cx, a| {
            let path = bytes(a, 0);
            let directory = memchr::memrchr(b'/', path).map_or(&path[..0], |at| &path[..=at]);
            string(cx, clean(directory))
        });
    }
    for name in ["clean", "osClean"] {
        fixed(f, name, &[S], |cx, a| string(cx, clean(bytes(a, 0))));
    }
    for name in ["ext", "osExt"] {
        fixed(f, name, &[S], |cx, a| {
            let path = bytes(a, 0);
            let name = memchr::memrchr(b'/', path).map_or(path, |at| &path[at + 1..]);
            string(cx, memchr::memrchr(b'.', name).map_or(&name[..0], |at| &name[at..]))
        });
    }
    for name in ["isAbs", "osIsAbs"] {
        fixed(f, name, &[S], |_, a| Ok(bytes(a, 0).starts_with(b"/").into()));
    }
}

/// `path.Base`
fn base(path: &[u8]) -> &[u8] {
    if path.is_empty() {
        return b".";
    }
    let end = path.iter().rposition(|b| *b != b'/').map_or(0, |at| at + 1);
    let path = &path[..end];
    if path.is_empty() {
        return b"/";
    }
    memchr::memrchr(b'/', path).map_or(path, |at| &path[at + 1..])
}

/// `path.Clean`
pub(crate) fn clean(path: &[u8]) -> Vec<u8> {
    let rooted = path.starts_with(b"/");
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in path.split(|b| *b == b'/') {
        match part {
            b"" | b"." => {}
            b".." => match parts.last() {
                Some(&last) if last != b".." => {
                    parts.pop();
                }
                _ if rooted => {}
                _ => parts.push(part),
            },
            _ => parts.push(part),
        }
    }
    let joined = parts.join(&b'/');
    match (rooted, joined.is_empty()) {
        (true, _) => [b"/", &joined[..]].concat(),
        (false, true) => b".".to_vec(),
        (false, false) => joined,
    }
}
