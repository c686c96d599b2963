//! Request paths and queries, escaped: names of objects cannot change their structure.

/// Appends text as one segment of a path, or as one value of a query.
pub fn push_segment(out: &mut String, text: &str) {
    use std::fmt::Write as _;
    // Servers and proxies would resolve a segment of dots.
    let dots = text == "." || text == "..";
    for byte in text.bytes() {
        let plain = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~' | b':');
        if plain && !dots {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

/// The path of the objects of a kind, or of those in one namespace.
pub(crate) fn collection(group: &str, version: &str, namespace: Option<&str>, plural: &str) -> String {
    let mut path = root(group, version);
    if let Some(namespace) = namespace {
        path.push_str("/namespaces/");
        push_segment(&mut path, namespace);
    }
    path.push('/');
    push_segment(&mut path, plural);
    path
}

/// The path of a group and version.
pub(crate) fn root(group: &str, version: &str) -> String {
    let mut path = if group.is_empty() { "/api".to_owned() } else { "/apis".to_owned() };
    for part in [group, version].into_iter().filter(|part| !part.is_empty()) {
        path.push('/');
        push_segment(&mut path, part);
    }
    path
}

/// Pairs of a query; those without a value are left out.
pub fn query<'a>(pairs: &[(&'a str, &str)]) -> Vec<(&'a str, String)> {
    let given = pairs.iter().filter(|(_, value)| !value.is_empty());
    given.map(|(name, value)| (*name, (*value).to_owned())).collect()
}

/// A path with its query.
pub(crate) fn with_query(path: &str, query: &[(&str, String)]) -> String {
    let mut uri = path.to_owned();
    for (i, (key, value)) in query.iter().enumerate() {
        uri.push(if i == 0 { '?' } else { '&' });
        uri.push_str(key);
        uri.push('=');
        push_segment(&mut uri, value);
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_their_segment() {
        let encoded = |text: &str| {
            let mut out = String::new();
            push_segment(&mut out, text);
            out
        };
        assert_eq!(encoded("system:x"), "system:x");
        assert_eq!(encoded("../a?b#c%"), "..%2Fa%3Fb%23c%25");
        assert_eq!(encoded(".."), "%2E%2E");
        assert_eq!(encoded("a=b,c"), "a%3Db%2Cc");
    }

    #[test]
    fn collections_and_queries() {
        assert_eq!(collection("", "v1", Some("ns"), "configmaps"), "/api/v1/namespaces/ns/configmaps");
        assert_eq!(collection("apps", "v1", None, "deployments"), "/apis/apps/v1/deployments");
        let pairs = query(&[("limit", "5"), ("continue", ""), ("labelSelector", "a=b c")]);
        assert_eq!(with_query("/x", &pairs), "/x?limit=5&labelSelector=a%3Db%20c");
    }
}
