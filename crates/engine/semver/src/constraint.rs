//! One comparison of a range, such as `>=1.2` or `^0.3.x`.

use std::cmp::Ordering;
use std::fmt;

use crate::error::Error;
use crate::scan::{self, is_space};
use crate::version::{Version, compare_prerelease};

/// Error: a version is outside a range, with Masterminds' message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch(String);

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Mismatch {}

impl Mismatch {
    pub(crate) fn prerelease(version: &Version) -> Self {
        let version = fl_go::quote(&version.to_string());
        Self(format!(
            "{version} is a prerelease version and the constraint is only looking for release versions"
        ))
    }
}

/// Which numbers of a comparison were omitted or written as `x`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OmittedPart {
    No,
    Patch,
    Minor,
    Major,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterEqual,
    LessEqual,
    Tilde,
    Caret,
}

/// Longest operators first, so that the first match is the right one.
const OPERATORS: &[(&str, Operator)] = &[
    ("!=", Operator::NotEqual),
    (">=", Operator::GreaterEqual),
    ("=>", Operator::GreaterEqual),
    ("<=", Operator::LessEqual),
    ("=<", Operator::LessEqual),
    ("~>", Operator::Tilde),
    ("=", Operator::Equal),
    (">", Operator::Greater),
    ("<", Operator::Less),
    ("~", Operator::Tilde),
    ("^", Operator::Caret),
    ("", Operator::Equal),
];

/// Message between version and range of a failed comparison, and the text after the range.
struct Reason(&'static str, &'static str);

type CheckResult = Result<(), Reason>;

fn unless(holds: bool, text: &'static str) -> CheckResult {
    if holds { Ok(()) } else { Err(Reason(text, "")) }
}

#[derive(Debug, Clone)]
pub(crate) struct Constraint {
    operator: Operator,
    /// Operator and version as written.
    spelling: (&'static str, String),
    version: Version,
    open: OmittedPart,
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.spelling.0, self.spelling.1)
    }
}

/// Parses a comparison at the start of a text: operator, version, and the rest.
pub(crate) fn scan_comparison(text: &str) -> Option<(Comparison<'_>, &str)> {
    let (spelling, operator) = OPERATORS
        .iter()
        .copied()
        .find(|(spelling, _)| text.starts_with(spelling))
        .expect("the empty one fits all");
    let rest = text[spelling.len()..].trim_start_matches(is_space);
    let parts = scan::wildcard_version(rest)?;
    Some((Comparison { spelling, operator, parts }, &rest[parts.whole.len()..]))
}

/// A syntactically valid comparison; its version may still be invalid.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Comparison<'a> {
    spelling: &'static str,
    operator: Operator,
    parts: scan::Parts<'a>,
}

impl TryFrom<Comparison<'_>> for Constraint {
    type Error = Error;

    fn try_from(comparison: Comparison<'_>) -> Result<Self, Error> {
        let Comparison { spelling, operator, parts } = comparison;
        let is_open = |part: Option<&str>| part.is_none_or(|p| matches!(p, "x" | "X" | "*"));
        let pre = parts.pre.map(|p| format!("-{p}")).unwrap_or_default();
        let (open, text) = if is_open(Some(parts.major)) {
            (OmittedPart::Major, format!("0.0.0{pre}"))
        } else if is_open(parts.minor) {
            (OmittedPart::Minor, format!("{}.0.0{pre}", parts.major))
        } else if is_open(parts.patch) {
            (OmittedPart::Patch, format!("{}.{}.0{pre}", parts.major, parts.minor.unwrap_or_default()))
        } else {
            (OmittedPart::No, parts.whole.to_owned())
        };
        let version = Version::parse(&text).map_err(|_| Error::ConstraintVersion)?;
        Ok(Self { operator, spelling: (spelling, parts.whole.to_owned()), version, open })
    }
}

impl Constraint {
    pub(crate) fn names_prerelease(&self) -> bool {
        !self.version.prerelease().is_empty()
    }

    pub(crate) fn holds(&self, v: &Version, with_prereleases: bool) -> bool {
        (v.prerelease().is_empty() || with_prereleases) && self.compare(v).is_ok()
    }

    pub(crate) fn check(&self, v: &Version, with_prereleases: bool) -> Result<(), Mismatch> {
        if !v.prerelease().is_empty() && !with_prereleases {
            return Err(Mismatch::prerelease(v));
        }
        self.compare(v).map_err(|Reason(text, rest)| {
            Mismatch(format!(
                "{} {text} {}{rest}",
                fl_go::quote(&v.to_string()),
                fl_go::quote(&self.spelling.1)
            ))
        })
    }

    fn compare(&self, v: &Version) -> CheckResult {
        let c = &self.version;
        match self.operator {
            Operator::Equal if self.open == OmittedPart::No => unless(v == c, "is not equal to"),
            Operator::Equal | Operator::Tilde => self.tilde(v),
            Operator::NotEqual => unless(self.differs(v), "is equal to"),
            Operator::Greater => unless(self.exceeded_by(v), "is less than or equal to"),
            Operator::Less => unless(v < c, "is greater than or equal to"),
            Operator::GreaterEqual => unless(v >= c, "is less than"),
            Operator::LessEqual => unless(self.reached_by(v), "is greater than"),
            Operator::Caret => self.caret(v),
        }
    }

    fn differs(&self, v: &Version) -> bool {
        let c = &self.version;
        match self.open {
            OmittedPart::No => v != c,
            _ if c.major() != v.major() => true,
            OmittedPart::Minor => false,
            _ if c.minor() != v.minor() => true,
            OmittedPart::Patch => compare_prerelease(v.prerelease(), c.prerelease()) != Ordering::Equal,
            OmittedPart::Major => v != c,
        }
    }

    /// `>11` means 12 and up, `>11.1` means 11.2 and up.
    fn exceeded_by(&self, v: &Version) -> bool {
        let c = &self.version;
        match (self.open, v.major().cmp(&c.major())) {
            (OmittedPart::No, _) => v > c,
            (_, Ordering::Greater) => true,
            (_, Ordering::Less) | (OmittedPart::Minor, _) => false,
            (OmittedPart::Patch, _) => v.minor() > c.minor(),
            (OmittedPart::Major, _) => v > c,
        }
    }

    fn reached_by(&self, v: &Version) -> bool {
        let c = &self.version;
        match self.open {
            OmittedPart::No => v <= c,
            OmittedPart::Minor => v.major() <= c.major(),
            OmittedPart::Patch | OmittedPart::Major => (v.major(), v.minor()) <= (c.major(), c.minor()),
        }
    }

    /// Same major and minor version; same major if the minor is omitted; anything for `~*` and `~0.0.0`.
    fn tilde(&self, v: &Version) -> CheckResult {
        let c = &self.version;
        unless(v >= c, "is less than")?;
        let zero = (c.major(), c.minor(), c.patch()) == (0, 0, 0);
        if zero && matches!(self.open, OmittedPart::No | OmittedPart::Major) {
            return Ok(());
        }
        unless(v.major() == c.major(), "does not have same major version as")?;
        unless(
            v.minor() == c.minor() || self.open == OmittedPart::Minor,
            "does not have same major and minor version as",
        )
    }

    /// The leftmost non-zero number must be equal.
    fn caret(&self, v: &Version) -> CheckResult {
        let c = &self.version;
        unless(v >= c, "is less than")?;
        let same_major = v.major() == c.major();
        if c.major() > 0 || self.open == OmittedPart::Minor {
            return unless(same_major, "does not have same major version as");
        }
        unless(same_major, "does not have same major version as")?;
        if c.minor() > 0 || self.open == OmittedPart::Patch {
            let why = ". Expected minor versions to match when constraint major version is 0";
            let same = v.minor() == c.minor();
            return if same { Ok(()) } else { Err(Reason("does not have same minor version as", why)) };
        }
        unless(v.minor() == 0, "does not have same minor version as")?;
        let why = ". Expect version and constraint to equal when major and minor versions are 0";
        if c.patch() == v.patch() { Ok(()) } else { Err(Reason("does not equal", why)) }
    }
}
