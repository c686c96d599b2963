//! Names of registries, repositories and what is in them.

use std::fmt;

/// A name that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NameError(String);

/// A repository in a registry.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Repository {
    registry: String,
    name: String,
}

impl Repository {
    /// Reads `host[:port]/path`; a first part without a dot or colon is a path on Docker's registry.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        if text.is_empty() {
            return Err(NameError("a repository name must be specified".to_owned()));
        }
        let (registry, name) = match text.split_once('/') {
            Some((host, path)) if host.contains(['.', ':']) || host == "localhost" => (host, path),
            _ => ("index.docker.io", text),
        };
        check_registry(registry)?;
        check("repository", name, 2, 255, "abcdefghijklmnopqrstuvwxyz0123456789_-./")?;
        if name.split('/').any(|part| part == ".." || part == "." || part.is_empty()) {
            return Err(NameError(format!("repository can only contain whole path parts: {name}")));
        }
        let official = registry == "index.docker.io" && !name.contains('/');
        let name = if official { format!("library/{name}") } else { name.to_owned() };
        let registry = if registry == "docker.io" { "index.docker.io" } else { registry };
        Ok(Self { registry: registry.to_owned(), name })
    }

    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// The path without the registry.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn tag(&self, tag: &str) -> Result<Reference, NameError> {
        let letters = "abcdefghijklmnopqrstuvwxyz0123456789_-.ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        check("tag", tag, 1, 128, letters)?;
        Ok(Reference::Tag { repository: self.clone(), tag: tag.to_owned() })
    }

    pub fn digest(&self, digest: &str) -> Result<Reference, NameError> {
        let known: fl_types::Digest = digest.parse().map_err(|e| NameError(format!("{e}")))?;
        if !matches!(known.algorithm().name(), "sha256" | "sha512") {
            return Err(NameError(format!("unsupported digest algorithm: {}", known.algorithm().name())));
        }
        Ok(Reference::Digest { repository: self.clone(), digest: digest.to_owned() })
    }

    /// A repository below this one, as Helm charts are below theirs.
    pub fn child(&self, name: &str) -> Result<Self, NameError> {
        Self::parse(&format!("{self}/{name}"))
    }

    /// Hosts that are spoken to without TLS when they do not offer it: this machine, and private networks.
    pub(crate) fn may_be_plain(&self) -> bool {
        let name = &self.registry;
        let host = name.rsplit_once(':').map_or(name.as_str(), |(host, port)| {
            if port.bytes().all(|b| b.is_ascii_digit()) { host } else { name }
        });
        let private = host.parse::<std::net::Ipv4Addr>().is_ok_and(|ip| ip.is_private());
        private
            || name.starts_with("localhost:")
            || host.ends_with(".local")
            || host.ends_with(".localhost")
            || name.contains("127.0.0.1")
            || name.contains("::1")
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.name)
    }
}

fn check_registry(name: &str) -> Result<(), NameError> {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']');
    if name.is_empty() || !name.chars().all(fine) || url::Url::parse(&format!("https://{name}/")).is_err() {
        return Err(NameError(format!("registries must be valid RFC 3986 URI authorities: {name}")));
    }
    Ok(())
}

fn check(what: &str, text: &str, least: usize, most: usize, letters: &str) -> Result<(), NameError> {
    let count = text.chars().count();
    if count < least || count > most {
        return Err(NameError(format!(
            "{what} must be between {least} and {most} characters in length: {text}"
        )));
    }
    if !text.chars().all(|c| letters.contains(c)) {
        return Err(NameError(format!("{what} can only contain the characters `{letters}`: {text}")));
    }
    Ok(())
}

/// A manifest in a repository.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reference {
    Tag { repository: Repository, tag: String },
    Digest { repository: Repository, digest: String },
}

impl Reference {
    /// Reads `host/path`, `host/path:tag` or `host/path@sha256:…`; without either the tag is `latest`.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        if let Some((repository, digest)) = text.split_once('@') {
            // A tag next to a digest is ignored.
            let repository = match repository.rsplit_once(':') {
                Some((left, tag)) if !tag.contains('/') && left.contains('/') => left,
                _ => repository,
            };
            return Repository::parse(repository)?.digest(digest);
        }
        match text.rsplit_once(':') {
            Some((repository, tag)) if !tag.contains('/') => Repository::parse(repository)?.tag(tag),
            _ => Repository::parse(text)?.tag("latest"),
        }
    }

    pub fn repository(&self) -> &Repository {
        match self {
            Reference::Tag { repository, .. } | Reference::Digest { repository, .. } => repository,
        }
    }

    /// The tag or digest.
    pub fn identifier(&self) -> &str {
        match self {
            Reference::Tag { tag, .. } => tag,
            Reference::Digest { digest, .. } => digest,
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reference::Tag { repository, tag } => write!(f, "{repository}:{tag}"),
            Reference::Digest { repository, digest } => write!(f, "{repository}@{digest}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repositories() {
        for (text, registry, name) in [
            ("ghcr.io/org/app", "ghcr.io", "org/app"),
            ("localhost:5000/app", "localhost:5000", "app"),
            ("127.0.0.1:5000/a/b", "127.0.0.1:5000", "a/b"),
            ("nginx", "index.docker.io", "library/nginx"),
            ("org/app", "index.docker.io", "org/app"),
        ] {
            let repository = Repository::parse(text).unwrap();
            assert_eq!((repository.registry(), repository.name()), (registry, name), "{text}");
        }
        for bad in [
            "",
            "ghcr.io/",
            "ghcr.io/x",
            "ghcr.io/ORG/app",
            "ghcr.io/a/../b",
            "ghcr.io/a b",
            "g@h.io/a/b",
            "h.io/a//b",
        ] {
            assert!(Repository::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn references() {
        let sum = "a".repeat(64);
        assert_eq!(Reference::parse("h.io/a/b").unwrap().to_string(), "h.io/a/b:latest");
        assert_eq!(Reference::parse("h.io:5000/a/b:v1").unwrap().identifier(), "v1");
        let pinned = Reference::parse(&format!("h.io/a/b:v1@sha256:{sum}")).unwrap();
        assert_eq!(pinned.to_string(), format!("h.io/a/b@sha256:{sum}"));
        for bad in [
            "h.io/a/b:",
            "h.io/a/b:v 1",
            "h.io/a/b@sha256:zz",
            "h.io/a/b@md5:aa",
            &format!("h.io/a/b:{}", "x".repeat(129)),
        ] {
            assert!(Reference::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn only_near_hosts_may_be_plain() {
        for (text, plain) in [
            ("127.0.0.1:5000/app", true),
            ("localhost:5000/app", true),
            ("10.1.2.3:80/app", true),
            ("registry.local/app", true),
            ("ghcr.io/org/app", false),
            ("8.8.8.8/app", false),
        ] {
            assert_eq!(Repository::parse(text).unwrap().may_be_plain(), plain, "{text}");
        }
    }
}
