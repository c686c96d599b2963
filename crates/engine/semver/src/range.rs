//! Ranges: alternatives (`||`) of comparisons that must all hold (separated by comma or blank).

use std::fmt;
use std::str::FromStr;

use crate::constraint::{Constraint, Mismatch, scan_comparison};
use crate::error::Error;
use crate::scan::{is_space, wildcard_version};
use crate::version::Version;

/// A range of versions.
#[derive(Debug, Clone)]
pub struct Constraints {
    groups: Vec<Group>,
    include_prereleases: bool,
}

#[derive(Debug, Clone)]
struct Group {
    all: Vec<Constraint>,
    /// Whether a comparison names a pre-release, which lets the whole group match pre-releases.
    names_prerelease: bool,
}

impl Constraints {
    /// Maximum length in bytes.
    pub const MAX_LEN: usize = 512;
    /// Maximum number of alternatives.
    pub const MAX_GROUPS: usize = 32;

    /// Parses a range.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.len() > Self::MAX_LEN {
            return Err(Error::ConstraintTooLong);
        }
        let text = rewrite_hyphens(text);
        if text.split("||").count() > Self::MAX_GROUPS {
            return Err(Error::TooManyGroups);
        }
        let groups = text.split("||").map(group).collect::<Result<_, _>>()?;
        Ok(Self { groups, include_prereleases: false })
    }

    /// Lets the range match pre-releases even if it names none.
    #[must_use]
    pub fn include_prereleases(mut self) -> Self {
        self.include_prereleases = true;
        self
    }

    /// Whether the version is in the range.
    pub fn check(&self, version: &Version) -> bool {
        self.groups.iter().any(|group| {
            group.all.iter().all(|c| c.holds(version, self.include_prereleases || group.names_prerelease))
        })
    }

    /// Like [`Self::check`], but returns the failed comparisons.
    pub fn validate(&self, version: &Version) -> Result<(), Vec<Mismatch>> {
        let mut reasons = Vec::new();
        let mut said_prerelease = false;
        for group in &self.groups {
            let with_prereleases = self.include_prereleases || group.names_prerelease;
            let mut fits = true;
            if !version.prerelease().is_empty() && !with_prereleases {
                fits = false;
                if !std::mem::replace(&mut said_prerelease, true) {
                    reasons.push(Mismatch::prerelease(version));
                }
            } else {
                for why in group.all.iter().filter_map(|c| c.check(version, with_prereleases).err()) {
                    fits = false;
                    reasons.push(why);
                }
            }
            if fits {
                return Ok(());
            }
        }
        Err(reasons)
    }
}

impl fmt::Display for Constraints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, group) in self.groups.iter().enumerate() {
            f.write_str(if i > 0 { " || " } else { "" })?;
            for (j, constraint) in group.all.iter().enumerate() {
                f.write_str(if j > 0 { " " } else { "" })?;
                write!(f, "{constraint}")?;
            }
        }
        Ok(())
    }
}

impl FromStr for Constraints {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text)
    }
}

/// Parses one alternative. Its syntax is checked completely before its versions are parsed, so that a
/// malformed list is reported as such.
fn group(text: &str) -> Result<Group, Error> {
    let improper = || Error::ImproperConstraint(text.into());
    let mut comparisons = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    loop {
        let (comparison, behind) = scan_comparison(rest).ok_or_else(improper)?;
        comparisons.push(comparison);
        rest = behind.trim_start_matches(is_space);
        if rest.is_empty() {
            break;
        }
        let spaced = rest.len() < behind.len();
        match rest.strip_prefix(',') {
            Some(next) => rest = next.trim_start_matches(is_space),
            None if spaced => {}
            None => return Err(improper()),
        }
    }
    let all = comparisons.into_iter().map(Constraint::try_from).collect::<Result<Vec<_>, _>>()?;
    let names_prerelease = all.iter().any(Constraint::names_prerelease);
    Ok(Group { all, names_prerelease })
}

/// Replaces `1.2 - 2.3` by `>= 1.2, <= 2.3`.
fn rewrite_hyphens(text: &str) -> String {
    let mut out = text.to_owned();
    let mut at = 0;
    while let Some((from, until, low, high)) = find_hyphen_range(text, at) {
        // By text and not by position, as in Masterminds: equal ranges are replaced one after the other.
        out = out.replacen(&text[from..until], &format!(">= {low}, <= {high} "), 1);
        at = until;
    }
    out
}

/// Finds the next `low - high` at or after a position, with the blanks around it.
fn find_hyphen_range(text: &str, at: usize) -> Option<(usize, usize, &str, &str)> {
    // Shortcut: most ranges contain no dash.
    text.get(at..)?.contains('-').then_some(())?;
    let blanks = |s: &str| s.len() - s.trim_start_matches(is_space).len();
    (at..text.len()).filter(|i| text.is_char_boundary(*i)).find_map(|from| {
        let rest = &text[from..];
        let rest = &rest[blanks(rest)..];
        let low = wildcard_version(rest)?.whole;
        let rest = &rest[low.len()..];
        let dash = rest[blanks(rest)..].strip_prefix('-').filter(|_| blanks(rest) > 0)?;
        let rest = &dash[blanks(dash)..];
        let high = wildcard_version(rest).filter(|_| blanks(dash) > 0)?.whole;
        let rest = &rest[high.len()..];
        Some((from, text.len() - rest.len() + blanks(rest), low, high))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hyphen_ranges_are_rewritten_in_place() {
        assert_eq!(rewrite_hyphens("1 - 2 || 3 - 4"), ">= 1, <= 2 ||>= 3, <= 4 ");
        assert_eq!(rewrite_hyphens("1.0-2 , 3"), "1.0-2 , 3");
    }

    #[test]
    fn oversized_ranges_are_rejected() {
        assert_eq!(Constraints::parse(&"1".repeat(513)).err(), Some(Error::ConstraintTooLong));
        assert_eq!(Constraints::parse(&vec!["1"; 33].join("||")).err(), Some(Error::TooManyGroups));
    }
}
