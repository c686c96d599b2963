//! Versions: parsing, ordering, formatting and incrementing.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use crate::error::Error;
use crate::scan;

/// A semantic version. Equality and order follow precedence: build metadata is ignored.
#[derive(Debug, Clone, Default)]
pub struct Version {
    major: u64,
    minor: u64,
    patch: u64,
    pre: String,
    metadata: String,
    original: String,
}

impl Version {
    /// Maximum length in bytes.
    pub const MAX_LEN: usize = 256;

    /// Creates a version without validating `pre` and `metadata`.
    pub fn new(major: u64, minor: u64, patch: u64, pre: &str, metadata: &str) -> Self {
        let mut version =
            Self { major, minor, patch, pre: pre.into(), metadata: metadata.into(), original: String::new() };
        version.original = version.to_string();
        version
    }

    /// Parses leniently (`NewVersion`): a leading `v`, missing minor and patch, and leading zeros are
    /// allowed.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.len() > Self::MAX_LEN {
            return Err(Error::VersionTooLong);
        }
        let parts = scan::version(text).ok_or(Error::InvalidVersion)?;
        let number = |segment: Option<&str>| match segment {
            None => Ok(0),
            Some(digits) => digits.parse().map_err(|_| Error::Segment(digits.into())),
        };
        let version = Self {
            major: number(Some(parts.major))?,
            minor: number(parts.minor)?,
            patch: number(parts.patch)?,
            pre: parts.pre.unwrap_or_default().into(),
            metadata: parts.metadata.unwrap_or_default().into(),
            original: text.into(),
        };
        if !version.pre.is_empty() {
            validate_prerelease(&version.pre)?;
        }
        Ok(version)
    }

    /// Parses a version strictly by the specification (`StrictNewVersion`).
    pub fn parse_strict(text: &str) -> Result<Self, Error> {
        if text.is_empty() {
            return Err(Error::Empty);
        }
        if text.len() > Self::MAX_LEN {
            return Err(Error::VersionTooLong);
        }
        let mut segments = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(mut patch)) = (segments.next(), segments.next(), segments.next())
        else {
            return Err(Error::InvalidVersion);
        };
        let (mut pre, mut metadata) = ("", "");
        if let Some((before, after)) = patch.split_once('+') {
            validate_metadata(after)?;
            (patch, metadata) = (before, after);
        }
        if let Some((before, after)) = patch.split_once('-') {
            validate_prerelease(after)?;
            (patch, pre) = (before, after);
        }
        for segment in [major, minor, patch] {
            if !segment.bytes().all(|b| b.is_ascii_digit()) {
                return Err(Error::InvalidCharacters);
            }
            if segment.len() > 1 && segment.starts_with('0') {
                return Err(Error::SegmentStartsZero);
            }
        }
        let number = |digits: &str| digits.parse().map_err(|_| Error::Number(digits.into()));
        Ok(Self {
            major: number(major)?,
            minor: number(minor)?,
            patch: number(patch)?,
            pre: pre.into(),
            metadata: metadata.into(),
            original: text.into(),
        })
    }

    /// Major version.
    pub fn major(&self) -> u64 {
        self.major
    }

    /// Minor version.
    pub fn minor(&self) -> u64 {
        self.minor
    }

    /// Patch version.
    pub fn patch(&self) -> u64 {
        self.patch
    }

    /// Pre-release after `-`; empty for a release.
    pub fn prerelease(&self) -> &str {
        &self.pre
    }

    /// Build metadata after `+`.
    pub fn metadata(&self) -> &str {
        &self.metadata
    }

    /// The text that this version was parsed from.
    pub fn original(&self) -> &str {
        &self.original
    }

    /// The next patch version; for a pre-release, its release.
    pub fn inc_patch(&self) -> Result<Self, Error> {
        let step = u64::from(self.pre.is_empty());
        let patch = self.patch.checked_add(step).ok_or(Error::Overflow("patch"))?;
        Ok(self.stepped(self.major, self.minor, patch))
    }

    /// The next minor version.
    pub fn inc_minor(&self) -> Result<Self, Error> {
        let minor = self.minor.checked_add(1).ok_or(Error::Overflow("minor"))?;
        Ok(self.stepped(self.major, minor, 0))
    }

    /// The next major version.
    pub fn inc_major(&self) -> Result<Self, Error> {
        let major = self.major.checked_add(1).ok_or(Error::Overflow("major"))?;
        Ok(self.stepped(major, 0, 0))
    }

    /// The same version with another pre-release.
    pub fn with_prerelease(&self, pre: &str) -> Result<Self, Error> {
        if !pre.is_empty() {
            validate_prerelease(pre)?;
        }
        Ok(self.renamed(Self { pre: pre.into(), ..self.clone() }))
    }

    /// The same version with other metadata.
    pub fn with_metadata(&self, metadata: &str) -> Result<Self, Error> {
        if !metadata.is_empty() {
            validate_metadata(metadata)?;
        }
        Ok(self.renamed(Self { metadata: metadata.into(), ..self.clone() }))
    }

    fn stepped(&self, major: u64, minor: u64, patch: u64) -> Self {
        self.renamed(Self { major, minor, patch, ..Self::default() })
    }

    /// Derived versions keep a leading `v` of the original.
    fn renamed(&self, mut next: Self) -> Self {
        let v = if self.original.starts_with('v') { "v" } else { "" };
        next.original = format!("{v}{next}");
        next
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if !self.pre.is_empty() {
            write!(f, "-{}", self.pre)?;
        }
        if !self.metadata.is_empty() {
            write!(f, "+{}", self.metadata)?;
        }
        Ok(())
    }
}

impl FromStr for Version {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text)
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.major, self.minor, self.patch).cmp(&(other.major, other.minor, other.patch)).then_with(
            || match (self.pre.is_empty(), other.pre.is_empty()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => compare_prerelease(&self.pre, &other.pre),
            },
        )
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Version {}

/// Compares identifier by identifier; a list that ends first is smaller.
pub(crate) fn compare_prerelease(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a.split('.'), b.split('.'));
    loop {
        let (left, right) = (a.next(), b.next());
        if left.is_none() && right.is_none() {
            return Ordering::Equal;
        }
        let order = compare_identifier(left.unwrap_or_default(), right.unwrap_or_default());
        if order != Ordering::Equal {
            return order;
        }
    }
}

fn compare_identifier(a: &str, b: &str) -> Ordering {
    if a == b || a.is_empty() || b.is_empty() {
        return a.is_empty().cmp(&b.is_empty()).reverse();
    }
    match (number(a), number(b)) {
        // Numbers that do not fit into 64 bits are compared as text, as in Masterminds.
        (None, None) => a.cmp(b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        // Different texts of the same number cannot pass validation; Masterminds treats the first one as
        // smaller.
        (Some(x), Some(y)) if x > y => Ordering::Greater,
        (Some(_), Some(_)) => Ordering::Less,
    }
}

/// Rust's parser would also accept a leading `+`.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn is_identifier(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

fn validate_prerelease(text: &str) -> Result<(), Error> {
    for part in text.split('.') {
        if part.is_empty() || !is_identifier(part) {
            return Err(Error::InvalidPrerelease);
        }
        if part.len() > 1 && part.starts_with('0') && part.bytes().all(|b| b.is_ascii_digit()) {
            return Err(Error::SegmentStartsZero);
        }
    }
    Ok(())
}

fn validate_metadata(text: &str) -> Result<(), Error> {
    let fine = text.split('.').all(|part| !part.is_empty() && is_identifier(part));
    fine.then_some(()).ok_or(Error::InvalidMetadata)
}
