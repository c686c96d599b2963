//! Content from other machines: what counts as such, and who may fetch it.

use std::path::PathBuf;

/// Fetches content from other machines. The engine itself never opens a connection.
pub trait Fetcher {
    /// The content of an `http` or `https` address.
    ///
    /// # Errors
    /// Why it cannot be had; redirects to forbidden addresses are the fetcher's to refuse.
    fn file(&self, url: &str) -> Result<Vec<u8>, String>;

    /// A directory of the build's files that holds a checkout of the repository address, at the path it names.
    ///
    /// # Errors
    /// Why it cannot be had.
    fn directory(&self, url: &str) -> Result<PathBuf, String>;
}

/// Whether a path is the address of a file.
pub(super) fn is_file_address(path: &str) -> bool {
    let lower = path.get(..8).map(str::to_ascii_lowercase).unwrap_or_else(|| path.to_ascii_lowercase());
    lower.starts_with("http://") || lower.starts_with("https://")
}

/// Whether a path is the address of a repository, as kustomize reads them.
pub(super) fn is_repository(path: &str) -> bool {
    if path.starts_with('/') {
        return false;
    }
    let address = path.split('?').next().unwrap_or(path);
    let lower = address.to_ascii_lowercase();
    let rest = lower.strip_prefix("git::").unwrap_or(&lower);
    let scheme = ["ssh://", "https://", "http://", "file://"].into_iter().find(|s| rest.starts_with(s));
    let rest = scheme.map_or(rest, |s| &rest[s.len()..]);
    let user = rest.find('@').is_some_and(|at| {
        let name = &rest[..at];
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    });
    let rest = if user { rest.split_once('@').map_or(rest, |(_, r)| r) } else { rest };
    let github = rest.starts_with("github.com/") || rest.starts_with("github.com:");
    if scheme.is_none() && !user && !github {
        return false;
    }
    if scheme == Some("file://") {
        return !rest.is_empty();
    }
    let scp = scheme.is_none();
    let separator = |c: char| c == '/' || (scp && c == ':');
    let Some((host, path)) = rest.split_once(separator) else { return false };
    if host.is_empty() || path.is_empty() {
        return false;
    }
    path.contains("_git/") || path.contains("//") || path.contains(".git") || path.split('/').count() >= 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for yes in [
            "https://github.com/org/repo//dir?ref=v1",
            "github.com/org/repo/dir",
            "git@github.com:org/repo",
            "ssh://git@example.com/org/repo.git",
            "https://example.com/org/repo.git",
            "git::https://github.com/org/repo",
            "package@v1.28.0.example/configs/base",
        ] {
            assert!(is_repository(yes), "{yes}");
        }
        for no in ["../base", "base", "a/b/c.yaml", "/abs/dir", "https://example.com/x.yaml"] {
            assert!(!is_repository(no), "{no}");
        }
        assert!(is_file_address("https://example.com/x.yaml") && !is_file_address("x.yaml"));
    }
}
