//! Remote content: repository URLs and the trait that fetches them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::HostError;

/// kustomize's default timeout of a repository.
const TIMEOUT: Duration = Duration::from_secs(27);

/// Fetches remote content, implemented by the caller. The engine itself never opens a connection.
pub trait Fetcher {
    /// The content of an `http` or `https` URL.
    ///
    /// # Errors
    /// The request failed. The fetcher must reject redirects to forbidden addresses.
    fn file(&self, url: &str) -> Result<Vec<u8>, HostError>;

    /// The root of a checkout of the repository, with links resolved, inside of the build's files. Its
    /// content cannot refer to anything outside of it.
    ///
    /// # Errors
    /// The repository cannot be fetched.
    fn checkout(&self, repository: &Repository) -> Result<PathBuf, HostError>;
}

/// A Git repository that a kustomization refers to, and a directory in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// The URL to clone, without the directory.
    pub url: String,
    /// The directory with the kustomization, relative to the root, which is empty.
    pub directory: String,
    /// A branch, tag or commit; empty for the default branch.
    pub reference: String,
    /// Timeout of the fetch.
    pub timeout: Duration,
    /// Whether submodules are fetched, too.
    pub submodules: bool,
}

impl Repository {
    /// Parses a URL as kustomize does; `None` for a path, or for another URL.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text.starts_with('/') {
            return None;
        }
        let (address, query) = text.split_once('?').unwrap_or((text, ""));
        let (host, rest) = split_host(address)?;
        let (repository, directory) = split_directory(rest, host.starts_with("file://"))?;
        let directory = directory.strip_prefix('/').unwrap_or(directory);
        let inside = crate::files::clean(Path::new(directory));
        if repository.is_empty() || inside.starts_with("..") {
            return None;
        }
        let mut parsed = Repository {
            url: format!("{host}{repository}"),
            directory: directory.to_owned(),
            reference: String::new(),
            timeout: TIMEOUT,
            submodules: true,
        };
        parsed.read_query(query);
        Some(parsed)
    }

    /// Parses the query; unknown parameters are ignored.
    fn read_query(&mut self, query: &str) {
        let pairs: Option<Vec<(String, String)>> = query.split('&').map(pair).collect();
        let Some(pairs) = pairs else { return };
        let value = |name: &str| {
            pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str()).unwrap_or_default()
        };
        let reference = if value("ref").is_empty() { value("version") } else { value("ref") };
        reference.clone_into(&mut self.reference);
        let seconds = value("timeout").parse().ok().map(Duration::from_secs);
        let written =
            || value("timeout").parse::<fl_types::Duration>().ok().and_then(fl_types::Duration::to_std);
        if let Some(timeout) = seconds.or_else(written).filter(|t| !t.is_zero()) {
            self.timeout = timeout;
        }
        match value("submodules") {
            "0" | "f" | "F" | "false" | "FALSE" | "False" => self.submodules = false,
            _ => {}
        }
    }
}

/// Splits off the host of a URL with its separator, in the form that Git expects.
fn split_host(address: &str) -> Option<(String, &str)> {
    let address = without_prefix(address, "git::").unwrap_or(address);
    let schemes = ["ssh://", "https://", "http://", "file://"];
    let scheme = schemes.into_iter().find(|s| without_prefix(address, s).is_some()).unwrap_or_default();
    let rest = &address[scheme.len()..];
    if scheme == "file://" {
        return Some((scheme.to_owned(), rest));
    }
    let user = user(rest);
    let rest = &rest[user.len()..];
    let github = ["github.com/", "github.com:"].iter().any(|h| without_prefix(rest, h).is_some());
    let short = scheme.is_empty();
    if short && user.is_empty() && !github {
        return None;
    }
    let slash = rest.find('/');
    let colon = rest.find(':').filter(|at| short && *at > 0 && slash.is_none_or(|slash| *at < slash));
    let at = colon.or(slash).filter(|at| *at > 0)?;
    let host = match github {
        true if scheme == "ssh://" || !user.is_empty() => format!("{user}github.com:"),
        true => "https://github.com/".to_owned(),
        false => format!("{scheme}{user}{}", &rest[..=at]),
    };
    Some((host, &rest[at + 1..]))
}

/// Splits repository and directory: after `_git/NAME`, at `//`, after `.git`, or after two names.
fn split_directory(rest: &str, whole: bool) -> Option<(&str, &str)> {
    if let Some(at) = rest.find("_git/") {
        let end = rest[at + 5..].find('/').map_or(rest.len(), |slash| at + 5 + slash);
        return Some(rest.split_at(end));
    }
    if let Some(parts) = rest.split_once("//") {
        return Some(parts);
    }
    if let Some(at) = rest.find(".git") {
        return Some(rest.split_at(at + 4));
    }
    if whole {
        return Some((rest, ""));
    }
    rest.find('/')?;
    match rest.match_indices('/').nth(1) {
        Some((at, _)) => Some(rest.split_at(at)),
        None => Some((rest, "")),
    }
}

/// `name@`, or empty.
fn user(text: &str) -> &str {
    let Some(at) = text.find('@') else { return "" };
    let name = &text[..at];
    let good = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if good { &text[..=at] } else { "" }
}

fn without_prefix<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let head = text.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then(|| &text[prefix.len()..])
}

/// Parses a parameter of a query.
fn pair(text: &str) -> Option<(String, String)> {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    (!text.contains(';')).then_some(())?;
    Some((unescape(name)?, unescape(value)?))
}

fn unescape(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(out).ok()
}

/// Whether a path is the URL of a file.
pub(super) fn is_file_address(path: &str) -> bool {
    without_prefix(path, "http://").or_else(|| without_prefix(path, "https://")).is_some()
}

/// A URL for messages, without its password.
pub(super) fn redacted(address: &str) -> String {
    let start = address.find("://").map_or(0, |at| at + 3);
    let end = address[start..].find('/').map_or(address.len(), |at| start + at);
    match address[start..end].rfind('@').map(|at| (start + at, address[start..start + at].find(':'))) {
        Some((at, Some(colon))) => format!("{}:***{}", &address[..start + colon], &address[at..]),
        _ => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Option<(String, String, String)> {
        Repository::parse(text).map(|r| (r.url, r.directory, r.reference))
    }

    #[test]
    fn repository_urls_are_parsed() {
        for (text, url, directory, reference) in [
            ("https://github.com/org/repo//dir/a?ref=v1", "https://github.com/org/repo", "dir/a", "v1"),
            ("github.com/org/repo/dir", "https://github.com/org/repo", "dir", ""),
            ("GitHub.com/org/repo", "https://github.com/org/repo", "", ""),
            ("git@github.com:org/repo", "git@github.com:org/repo", "", ""),
            ("ssh://git@github.com/org/repo/x", "git@github.com:org/repo", "x", ""),
            ("git@example.com:org/repo/dir", "git@example.com:org/repo", "dir", ""),
            ("ssh://git@example.com/o/r.git/dir?ref=main", "ssh://git@example.com/o/r.git", "dir", "main"),
            ("git::https://example.com/org/repo.git", "https://example.com/org/repo.git", "", ""),
            ("http://127.0.0.1:8080/a/b.git//c", "http://127.0.0.1:8080/a/b.git", "c", ""),
            ("http://127.0.0.1:8080/b.git?version=1&ref=2", "http://127.0.0.1:8080/b.git", "", "2"),
            ("https://dev.example/o/p/_git/repo/a/b", "https://dev.example/o/p/_git/repo", "a/b", ""),
            ("package@v1.28.0.example/configs/base", "package@v1.28.0.example/configs/base", "", ""),
            ("https://example.com/org/repo?ref=a%2Fb", "https://example.com/org/repo", "", "a/b"),
            ("file:///srv/repo", "file:///srv/repo", "", ""),
        ] {
            let wanted = (url.to_owned(), directory.to_owned(), reference.to_owned());
            assert_eq!(parts(text), Some(wanted), "{text}");
        }
        for no in [
            "../base",
            "base",
            "a/b/c.yaml",
            "/abs/dir",
            "https://example.com/x.yaml",
            "https://example.com/o/r//../x",
            "https://example.com/o/r.git/a/../../x",
            "https:///o/r",
            "é@example.com:o/r",
            "",
        ] {
            assert_eq!(parts(no), None, "{no}");
        }
        assert!(is_file_address("https://example.com/x.yaml") && !is_file_address("x.yaml"));
    }

    #[test]
    fn query_parameters_are_parsed() {
        let wishes = |query: &str| {
            let parsed = Repository::parse(&format!("https://example.com/o/r?{query}")).expect("an address");
            (parsed.timeout.as_secs(), parsed.submodules)
        };
        assert_eq!(wishes("timeout=61"), (61, true));
        assert_eq!(wishes("timeout=2m1s&submodules=false"), (121, false));
        for nothing in ["", "timeout=-1", "timeout=0", "timeout=soon", "submodules=never", "timeout=61&a=%zz"]
        {
            assert_eq!(wishes(nothing), (27, true), "{nothing}");
        }
    }

    #[test]
    fn passwords_are_redacted() {
        assert_eq!(redacted("https://u:p@w@example.com/o/r?ref=1"), "https://u:***@example.com/o/r?ref=1");
        for same in ["https://u@example.com/o/r", "git@example.com:o/r", "https://example.com:1/o@x:y/r", "x"]
        {
            assert_eq!(redacted(same), same);
        }
    }
}
