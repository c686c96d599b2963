//! Escaping for HTML, JavaScript and URL queries.

use crate::runes;

/// `template.HTMLEscapeString`
pub fn html_escape(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    for b in bytes {
        match b {
            0 => out.extend_from_slice("\u{FFFD}".as_bytes()),
            b'"' => out.extend_from_slice(b"&#34;"),
            b'\'' => out.extend_from_slice(b"&#39;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b => out.push(*b),
        }
    }
    out
}

/// `template.JSEscapeString`
pub fn js_escape(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    for (_, c, _) in runes::runes(bytes) {
        match c {
            '\\' => out.extend_from_slice(b"\\\\"),
            '\'' => out.extend_from_slice(b"\\'"),
            '"' => out.extend_from_slice(b"\\\""),
            '<' => out.extend_from_slice(b"\\u003C"),
            '>' => out.extend_from_slice(b"\\u003E"),
            '&' => out.extend_from_slice(b"\\u0026"),
            '=' => out.extend_from_slice(b"\\u003D"),
            c if c < ' ' || (!c.is_ascii() && !runes::is_print(c)) => {
                out.extend_from_slice(format!("\\u{:04X}", c as u32).as_bytes());
            }
            c => runes::push(&mut out, c),
        }
    }
    out
}

/// `url.QueryEscape`
pub fn query_escape(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    for b in bytes {
        match b {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(*b),
            b' ' => out.push(b'+'),
            b => out.extend_from_slice(format!("%{b:02X}").as_bytes()),
        }
    }
    out
}
