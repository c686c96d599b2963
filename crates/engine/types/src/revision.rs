//! Digests (`sha256:…`) and revisions (`main@sha1:…`) as Flux spells them.

use std::fmt;
use std::str::FromStr;

use crate::text_serde::text_serde;

/// A content digest: algorithm and encoded sum.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest {
    algorithm: Algorithm,
    encoded: String,
}

/// The algorithm of a digest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// SHA-1: Git commits.
    Sha1,
    /// SHA-256: the default everywhere else.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
    /// BLAKE3.
    Blake3,
    /// Any other registered name; the hash is not checked.
    Other(String),
}

impl Algorithm {
    /// The name as written before the colon.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Algorithm::Sha1 => "sha1",
            Algorithm::Sha256 => "sha256",
            Algorithm::Sha384 => "sha384",
            Algorithm::Sha512 => "sha512",
            Algorithm::Blake3 => "blake3",
            Algorithm::Other(name) => name,
        }
    }

    fn hex_digits(&self) -> Option<usize> {
        match self {
            Algorithm::Sha1 => Some(40),
            Algorithm::Sha256 | Algorithm::Blake3 => Some(64),
            Algorithm::Sha384 => Some(96),
            Algorithm::Sha512 => Some(128),
            Algorithm::Other(_) => None,
        }
    }

    fn from_name(name: &str) -> Algorithm {
        match name {
            "sha1" => Algorithm::Sha1,
            "sha256" => Algorithm::Sha256,
            "sha384" => Algorithm::Sha384,
            "sha512" => Algorithm::Sha512,
            "blake3" => Algorithm::Blake3,
            other => Algorithm::Other(other.to_owned()),
        }
    }
}

/// Why a text is not a digest.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum DigestError {
    /// Not `algorithm:hash` by the grammar of OCI.
    #[error("digest {0:?}: expected <algorithm>:<hex>")]
    Shape(String),
    /// A known algorithm with a hash of the wrong length or alphabet.
    #[error("digest {text:?}: a {algorithm} digest has {digits} hex digits")]
    Sum {
        /// The whole text.
        text: String,
        /// The algorithm's name.
        algorithm: String,
        /// Number of hex digits of its hashes.
        digits: usize,
    },
}

impl Digest {
    /// A digest from an algorithm and its lower-case hexadecimal hash.
    ///
    /// # Errors
    /// The hash does not fit the algorithm.
    pub fn new(algorithm: Algorithm, encoded: impl Into<String>) -> Result<Self, DigestError> {
        let encoded = encoded.into();
        let is_hex = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
        if let Some(digits) = algorithm.hex_digits()
            && (encoded.len() != digits || !encoded.bytes().all(is_hex))
        {
            let text = format!("{}:{encoded}", algorithm.name());
            return Err(DigestError::Sum { text, algorithm: algorithm.name().to_owned(), digits });
        }
        Ok(Digest { algorithm, encoded })
    }

    /// The algorithm.
    #[must_use]
    pub fn algorithm(&self) -> &Algorithm {
        &self.algorithm
    }

    /// The hash without the algorithm.
    #[must_use]
    pub fn encoded(&self) -> &str {
        &self.encoded
    }
}

/// Whether a text is an algorithm: words joined by single separators, such as `sha256`, `multihash+base58`.
fn is_algorithm(text: &str) -> bool {
    text.split(['+', '.', '_', '-'])
        .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()))
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let shape = || DigestError::Shape(text.to_owned());
        let (algorithm, encoded) = text.split_once(':').ok_or_else(shape)?;
        let sum = !encoded.is_empty()
            && encoded.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'=' | b'_' | b'-'));
        if !is_algorithm(algorithm) || !sum {
            return Err(shape());
        }
        Digest::new(Algorithm::from_name(algorithm), encoded)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.algorithm.name(), self.encoded)
    }
}

text_serde!(Digest, "a digest such as \"sha256:<hex>\"");

/// A revision of a source: a name, a digest, or both.
///
/// `main@sha1:…`, `latest@sha256:…`, `sha256:…`, or a plain name such as a chart version. The legacy forms
/// `main/<hex>` and bare hex are parsed, too, and printed in the current form.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision {
    name: Option<String>,
    digest: Option<Digest>,
}

impl Revision {
    /// A name with a digest: `name@digest`.
    pub fn new(name: impl Into<String>, digest: Digest) -> Self {
        Revision { name: Some(name.into()).filter(|n| !n.is_empty()), digest: Some(digest) }
    }

    /// A bare digest.
    #[must_use]
    pub fn from_digest(digest: Digest) -> Self {
        Revision { name: None, digest: Some(digest) }
    }

    /// A plain name, for example a chart version.
    pub fn from_name(name: impl Into<String>) -> Self {
        Revision { name: Some(name.into()), digest: None }
    }

    /// Branch, tag, full reference name or version.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The digest, if any.
    #[must_use]
    pub fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }
}

/// A bare hash as older versions of Flux wrote it; its length determines the algorithm.
fn bare_hash(text: &str) -> Option<Digest> {
    let algorithm = match text.len() {
        40 => Algorithm::Sha1,
        64 => Algorithm::Sha256,
        _ => return None,
    };
    Digest::new(algorithm, text).ok()
}

impl FromStr for Revision {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // A digest of a known algorithm must be valid; any other text after `@` or before `:` is part of the
        // name.
        let known = |t: &str| {
            t.split_once(':')
                .is_some_and(|(algorithm, _)| Algorithm::from_name(algorithm).hex_digits().is_some())
        };
        if let Some((name, digest)) = text.rsplit_once('@').filter(|(_, d)| known(d)) {
            return Ok(Revision::new(name, digest.parse()?));
        }
        if known(text) {
            return Ok(Revision::from_digest(text.parse()?));
        }
        if let Some(digest) = bare_hash(text) {
            return Ok(Revision::from_digest(digest));
        }
        if let Some((name, digest)) = text.rsplit_once('/').and_then(|(n, d)| Some((n, bare_hash(d)?))) {
            // The legacy form of a detached commit.
            return Ok(if name == "HEAD" {
                Revision::from_digest(digest)
            } else {
                Revision::new(name, digest)
            });
        }
        Ok(Revision::from_name(text))
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.name, &self.digest) {
            (Some(name), Some(digest)) => write!(f, "{name}@{digest}"),
            (Some(name), None) => f.write_str(name),
            (None, Some(digest)) => digest.fmt(f),
            (None, None) => Ok(()),
        }
    }
}

text_serde!(Revision, "a revision such as \"main@sha1:<hex>\"");

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "5394cb7f48332b2de7c17dd8b8384bbc84b7e738";

    #[test]
    fn legacy_and_current_revisions_are_parsed() {
        let sum = "a".repeat(64);
        let table = [
            (format!("main@sha1:{COMMIT}"), Some("main"), format!("main@sha1:{COMMIT}")),
            (
                format!("refs/heads/main@sha1:{COMMIT}"),
                Some("refs/heads/main"),
                format!("refs/heads/main@sha1:{COMMIT}"),
            ),
            (format!("feat/a@b@sha1:{COMMIT}"), Some("feat/a@b"), format!("feat/a@b@sha1:{COMMIT}")),
            (format!("sha1:{COMMIT}"), None, format!("sha1:{COMMIT}")),
            (format!("latest@sha256:{sum}"), Some("latest"), format!("latest@sha256:{sum}")),
            (format!("feature/x/{COMMIT}"), Some("feature/x"), format!("feature/x@sha1:{COMMIT}")),
            (format!("HEAD/{COMMIT}"), None, format!("sha1:{COMMIT}")),
            (sum.clone(), None, format!("sha256:{sum}")),
            ("6.5.4+1".to_owned(), Some("6.5.4+1"), "6.5.4+1".to_owned()),
            ("user@host:port".to_owned(), Some("user@host:port"), "user@host:port".to_owned()),
        ];
        for (text, name, printed) in table {
            let revision = text.parse::<Revision>().expect(&text);
            assert_eq!(revision.name(), name, "{text}");
            assert_eq!(revision.to_string(), printed, "{text}");
        }
        assert!("main@sha1:abc".parse::<Revision>().is_err());
    }

    #[test]
    fn invalid_digests_are_rejected() {
        assert!(format!("sha256:{}", "a".repeat(64)).parse::<Digest>().is_ok());
        assert!(format!("sha256:{}", "A".repeat(64)).parse::<Digest>().is_err());
        assert!("multihash+base58:QmRZx".parse::<Digest>().is_ok());
        for bad in ["", "sha256", "sha256:", ":abc", "sha256:zz", "SHA256:aa", "a b:cc", "x:a/b"] {
            assert!(bad.parse::<Digest>().is_err(), "{bad}");
        }
    }
}
