//! What can be wrong with a version or a range, in the words of the reference.

use fl_golang::quote;

/// Why a version or range was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text does not have the shape of a version.
    #[error("invalid semantic version")]
    InvalidVersion,
    /// Strict reading of an empty text.
    #[error("version string empty")]
    Empty,
    /// A number segment holds something else than digits.
    #[error("invalid characters in version")]
    InvalidCharacters,
    /// A number has a leading zero.
    #[error("version segment starts with 0")]
    SegmentStartsZero,
    /// The part after `+` is malformed.
    #[error("invalid metadata string")]
    InvalidMetadata,
    /// The part after `-` is malformed.
    #[error("invalid prerelease string")]
    InvalidPrerelease,
    /// Longer than [`crate::Version::MAX_LEN`].
    #[error("version string is too long (max 256 bytes)")]
    VersionTooLong,
    /// A number that is empty or does not fit 64 bits, met by strict reading.
    #[error("{}", number_text(.0))]
    Number(String),
    /// A number that does not fit 64 bits, met by lenient reading.
    #[error("error parsing version segment: {}", number_text(.0))]
    Segment(String),
    /// Longer than [`crate::Constraints::MAX_LEN`].
    #[error("constraint string is too long (max 512 bytes)")]
    ConstraintTooLong,
    /// More alternatives than [`crate::Constraints::MAX_GROUPS`].
    #[error("too many constraint groups (max 32)")]
    TooManyGroups,
    /// A part of a range that is not a list of comparisons.
    #[error("improper constraint: {}", quote(.0))]
    ImproperConstraint(String),
    /// A comparison whose version cannot be read, for example `1x2`.
    #[error("constraint parser error")]
    ConstraintVersion,
    /// Incrementing this part of a version would overflow.
    #[error("{0} version increment would overflow uint64")]
    Overflow(&'static str),
}

fn number_text(text: &str) -> String {
    let why = if text.is_empty() { "invalid syntax" } else { "value out of range" };
    format!("strconv.ParseUint: parsing {}: {why}", quote(text))
}
