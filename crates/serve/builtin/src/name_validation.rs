//! Validation of object names, with Kubernetes' messages.

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

fn is_label(s: &str) -> bool {
    let bytes = s.as_bytes();
    let edge = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    match (bytes.first(), bytes.last()) {
        (Some(&first), Some(&last)) => {
            edge(first) && edge(last) && bytes.iter().all(|&b| edge(b) || b == b'-')
        }
        _ => false,
    }
}

/// The name to validate for a `generateName`, which may end in a dash: the dash and the character before it
/// become `a`, as in upstream.
pub(crate) fn mask_trailing_dash(name: &str, prefix: bool) -> String {
    let stem = name.strip_suffix('-').filter(|stem| prefix && !stem.is_empty());
    stem.map_or_else(
        || name.to_owned(),
        |stem| {
            let mut chars = stem.chars();
            chars.next_back();
            format!("{}a", chars.as_str())
        },
    )
}

/// Why `name` is not a DNS-1123 subdomain; empty if it is one. `prefix` is set for a `generateName`.
#[must_use]
pub fn dns1123_subdomain(name: &str, prefix: bool) -> Vec<String> {
    let name = mask_trailing_dash(name, prefix);
    let mut out = Vec::new();
    if name.len() > 253 {
        out.push("must be no more than 253 characters".to_owned());
    }
    if !name.split('.').all(is_label) {
        out.push(SUBDOMAIN.to_owned());
    }
    out
}

/// Why `name` is not a DNS-1123 label; empty if it is one. `prefix` is set for a `generateName`.
#[must_use]
pub fn dns1123_label(name: &str, prefix: bool) -> Vec<String> {
    let name = mask_trailing_dash(name, prefix);
    let mut out = Vec::new();
    if name.len() > 63 {
        out.push("must be no more than 63 characters".to_owned());
    }
    if !is_label(&name) {
        let dotted = name.len() <= 63 && name.split('.').all(is_label);
        out.push(if dotted { "must not contain dots" } else { LABEL }.to_owned());
    }
    out
}

/// Why `name` is not a path segment (the rule for RBAC objects); empty if it is one.
#[must_use]
pub fn path_segment(name: &str, prefix: bool) -> Vec<String> {
    let mut out = Vec::new();
    if !prefix && (name == "." || name == "..") {
        out.push(format!("may not be '{name}'"));
    }
    for illegal in ['/', '%'] {
        if name.contains(illegal) {
            out.push(format!("may not contain '{illegal}'"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trailing_dash_of_a_prefix_is_valid() {
        assert!(dns1123_subdomain("web-", true).is_empty() && dns1123_subdomain("A-", true).is_empty());
        assert!(!dns1123_subdomain("A-", false).is_empty() && !dns1123_subdomain("Ab-", true).is_empty());
    }
}
