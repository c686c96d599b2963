//! Directory listings, so that a person with a browser, and the readiness probe, find something.

use std::fs;
use std::path::Path;

pub(crate) fn page(directory: &Path) -> std::io::Result<String> {
    let mut names: Vec<String> = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') {
            names.push(if entry.file_type()?.is_dir() { format!("{name}/") } else { name });
        }
    }
    names.sort();
    let mut page =
        String::from("<!doctype html>\n<meta name=\"viewport\" content=\"width=device-width\">\n<pre>\n");
    for name in names {
        page.push_str(&format!("<a href=\"{}\">{}</a>\n", percent(&name), escape(&name)));
    }
    page.push_str("</pre>\n");
    Ok(page)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&#34;")
        .replace('\'', "&#39;")
}

/// A name as a relative address: a colon in the first segment would read as a scheme, hence the `./`.
fn percent(name: &str) -> String {
    let mut out = String::from("./");
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z'
            | b'A'..=b'Z'
            | b'0'..=b'9'
            | b'-'
            | b'_'
            | b'.'
            | b'~'
            | b'/'
            | b':'
            | b'@'
            | b'+' => out.push(char::from(byte)),
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}
