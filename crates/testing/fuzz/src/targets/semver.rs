//! Versions and ranges.

use super::Target;

pub(crate) const TARGETS: &[Target] = &[("semver-ranges", semver_ranges)];

/// A range on the first line, versions on the others; `check` and `validate` must agree.
fn semver_ranges(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let mut lines = text.lines();
    let Ok(range) = fl_semver::Constraints::parse(lines.next().unwrap_or_default()) else { return };
    for version in lines.filter_map(|line| fl_semver::Version::parse(line).ok()) {
        assert_eq!(range.check(&version), range.validate(&version).is_ok(), "{range} on {version}");
        assert_eq!(fl_semver::Version::parse(&version.to_string()).as_ref(), Ok(&version));
    }
}
