//! Path and query of a request.

use std::collections::BTreeMap;

/// Query parameters: every value of every key, in order, decoded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query(BTreeMap<String, Vec<String>>);

impl Query {
    #[must_use]
    pub fn parse(query: &str) -> Self {
        let mut map: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for pair in query.split('&').filter(|p| !p.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            map.entry(decode(key, true)).or_default().push(decode(value, true));
        }
        Self(map)
    }

    /// The first value; empty if absent.
    #[must_use]
    pub fn get(&self, key: &str) -> &str {
        self.0.get(key).and_then(|v| v.first()).map_or("", String::as_str)
    }

    #[must_use]
    pub fn all(&self, key: &str) -> &[String] {
        self.0.get(key).map_or(&[], Vec::as_slice)
    }

    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// A boolean as Kubernetes reads it from a query: present and not `false` or `0`.
    #[must_use]
    pub fn flag(&self, key: &str) -> bool {
        self.0
            .get(key)
            .is_some_and(|v| v.first().is_none_or(|v| !matches!(v.to_lowercase().as_str(), "false" | "0")))
    }
}

/// Percent-decoding; bytes that do not form UTF-8 become replacement characters.
#[must_use]
pub(crate) fn decode(text: &str, plus_is_space: bool) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        let hex = |b: u8| (b as char).to_digit(16);
        match bytes[i] {
            b'%' if i + 2 < bytes.len() => match (hex(bytes[i + 1]), hex(bytes[i + 2])) {
                (Some(high), Some(low)) => {
                    out.push((high * 16 + low) as u8);
                    i += 3;
                    continue;
                }
                _ => out.push(b'%'),
            },
            b'+' if plus_is_space => out.push(b' '),
            other => out.push(other),
        }
        i += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Whether every `%` of a path begins an escape.
pub(crate) fn is_well_escaped(path: &str) -> bool {
    let mut escapes = path.as_bytes().split(|b| *b == b'%').skip(1);
    escapes.all(|rest| rest.len() >= 2 && rest[..2].iter().all(u8::is_ascii_hexdigit))
}

/// Why no object of any kind can have this name.
pub(crate) fn name_problem(name: &str) -> Option<&'static str> {
    match name {
        "." => Some("may not be '.'"),
        ".." => Some("may not be '..'"),
        name if name.contains('/') => Some("may not contain '/'"),
        name if name.contains('%') => Some("may not contain '%'"),
        _ => None,
    }
}

/// The path of a request on a resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourcePath {
    pub group: String,
    pub version: String,
    pub namespace: String,
    pub resource: String,
    pub name: String,
    pub subresource: String,
    /// The deprecated `/watch/` prefix.
    pub legacy_watch: bool,
    /// Segments beyond the subresource.
    pub rest: Vec<String>,
}

/// The kinds of request paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestPath {
    /// `/api` or `/apis`.
    Groups {
        legacy: bool,
    },
    /// `/apis/GROUP`.
    Group(String),
    /// `/api/v1` or `/apis/GROUP/VERSION`.
    GroupVersion {
        group: String,
        version: String,
    },
    Resource(ResourcePath),
    /// Anything else, decoded.
    Other(String),
}

/// Parses a path. It is decoded once, so nothing is decoded twice.
#[must_use]
pub fn parse_path(path: &str) -> RequestPath {
    // Decoded before it is split, as upstream: an encoded slash is a slash.
    let decoded = decode(path, false);
    let trimmed = decoded.trim_matches('/');
    let parts: Vec<&str> = if trimmed.is_empty() { Vec::new() } else { trimmed.split('/').collect() };
    let (group, version, rest) = match parts.as_slice() {
        ["api"] => return RequestPath::Groups { legacy: true },
        ["apis"] => return RequestPath::Groups { legacy: false },
        ["apis", group] => return RequestPath::Group((*group).to_owned()),
        ["api", version] => {
            return RequestPath::GroupVersion { group: String::new(), version: (*version).to_owned() };
        }
        ["apis", group, version] => {
            return RequestPath::GroupVersion { group: (*group).to_owned(), version: (*version).to_owned() };
        }
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        _ => return RequestPath::Other(format!("/{}", decoded.trim_start_matches('/'))),
    };
    RequestPath::Resource(resource(group, version, rest))
}

fn resource(group: &str, version: &str, mut rest: &[&str]) -> ResourcePath {
    let mut path =
        ResourcePath { group: group.to_owned(), version: version.to_owned(), ..ResourcePath::default() };
    if let ["watch", more @ ..] = rest
        && !more.is_empty()
    {
        path.legacy_watch = true;
        rest = more;
    }
    let take = |i: usize| rest.get(i).map(|s| (*s).to_owned()).unwrap_or_default();
    // `namespaces/NS/RESOURCE…` is inside a namespace; `namespaces/NS/status` and `/finalize` belong to the
    // namespace.
    if rest.first() == Some(&"namespaces") && rest.len() > 2 && !matches!(rest[2], "status" | "finalize") {
        path.namespace = take(1);
        (path.resource, path.name, path.subresource) = (take(2), take(3), take(4));
        path.rest = rest.iter().skip(5).map(|s| (*s).to_owned()).collect();
    } else {
        (path.resource, path.name, path.subresource) = (take(0), take(1), take(2));
        path.rest = rest.iter().skip(3).map(|s| (*s).to_owned()).collect();
        if path.resource == "namespaces" && group.is_empty() {
            path.namespace.clone_from(&path.name);
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str) -> ResourcePath {
        match parse_path(path) {
            RequestPath::Resource(found) => found,
            other => panic!("{path} is {other:?}"),
        }
    }

    #[test]
    fn namespaced_object_with_a_subresource_is_parsed() {
        let path = of("/apis/apps/v1/namespaces/a/deployments/b/scale");
        assert_eq!((path.namespace.as_str(), path.resource.as_str()), ("a", "deployments"));
        assert_eq!((path.name.as_str(), path.subresource.as_str()), ("b", "scale"));
    }

    #[test]
    fn namespace_path_has_its_own_name_as_namespace() {
        let path = of("/api/v1/namespaces/a/finalize");
        assert_eq!(
            (path.namespace.as_str(), path.resource.as_str(), path.name.as_str()),
            ("a", "namespaces", "a")
        );
        assert_eq!(path.subresource, "finalize");
    }

    #[test]
    fn encoded_slash_is_decoded_once() {
        let path = of("/api/v1/namespaces/a%2Fb/configmaps/%2e%2e%2Fc");
        assert_eq!((path.namespace.as_str(), path.resource.as_str()), ("a", "b"));
        assert_eq!(of("/api/v1/namespaces/a/configmaps/%252e").name, "%2e");
        assert_eq!(of("/api/v1/namespaces/a/configmaps/b%2F").name, "b");
    }

    #[test]
    fn invalid_escapes_are_rejected() {
        assert!(is_well_escaped("/a%2Fb%20"));
        for broken in ["/%", "/%2", "/%zz", "/%E0%A4%A"] {
            assert!(!is_well_escaped(broken), "{broken}");
        }
    }

    #[test]
    fn invalid_names_are_rejected() {
        assert_eq!(name_problem(".."), Some("may not be '..'"));
        assert_eq!(name_problem("%2e"), Some("may not contain '%'"));
        assert_eq!(name_problem("a.b"), None);
    }

    #[test]
    fn legacy_watch_prefix_is_parsed() {
        let path = of("/api/v1/watch/namespaces/a/pods");
        assert!(path.legacy_watch);
        assert_eq!(path.resource, "pods");
    }
}
