//! Errors of versions and ranges, with Masterminds' messages.

use fl_go::quote;

/// Error of parsing a version or range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Not a version.
    #[error("invalid semantic version")]
    InvalidVersion,
    /// Empty text in strict mode.
    #[error("version string empty")]
    Empty,
    /// A number contains other characters than digits.
    #[error("invalid characters in version")]
    InvalidCharacters,
    /// A number has a leading zero.
    #[error("version segment starts with 0")]
    SegmentStartsZero,
    /// The build metadata after `+` is invalid.
    #[error("invalid metadata string")]
    InvalidMetadata,
    /// The pre-release after `-` is invalid.
    #[error("invalid prerelease string")]
    InvalidPrerelease,
    /// Longer than [`crate::Version::MAX_LEN`].
    #[error("version string is too long (max 256 bytes)")]
    VersionTooLong,
    /// A number is empty or does not fit into 64 bits, in strict mode.
    #[error("{}", number_text(.0))]
    Number(String),
    /// A number does not fit into 64 bits, in lenient mode.
    #[error("error parsing version segment: {}", number_text(.0))]
    Segment(String),
    /// Longer than [`crate::Constraints::MAX_LEN`].
    #[error("constraint string is too long (max 512 bytes)")]
    ConstraintTooLong,
    /// More alternatives than [`crate::Constraints::MAX_GROUPS`].
    #[error("too many constraint groups (max 32)")]
    TooManyGroups,
    /// A part of a range is not a list of comparisons.
    #[error("improper constraint: {}", quote(.0))]
    ImproperConstraint(String),
    /// The version of a comparison is invalid, for example `1x2`.
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
