//! Which of a repository's tags a range of versions means.

use fl_semver::{Constraints, Version};

use crate::{Error, media_type};

/// The highest tag in a range, among those a filter lets through.
///
/// A tag cannot have a `+`; charts write `_` for it, so for them it is read and written back that way.
pub fn select_tag(
    tags: &[String],
    range: &str,
    filter: Option<&str>,
    layer_media_type: Option<&str>,
) -> Result<String, Error> {
    let filter = match filter.filter(|f| !f.is_empty()) {
        Some(text) => Some(fl_go::regexp::compile(text)?),
        None => None,
    };
    let constraints = Constraints::parse(range)
        .map_err(|e| Error::Range { range: range.to_owned(), problem: e.to_string() })?;
    let chart = layer_media_type == Some(media_type::HELM_CHART);
    let mut best: Option<(Version, &str)> = None;
    for tag in tags {
        if filter.as_ref().is_some_and(|f| !f.is_match(tag)) {
            continue;
        }
        let text = if chart { tag.replace('_', "+") } else { tag.clone() };
        // One or two numbers are no version here, though the parser would take them.
        let Ok(version) = Version::parse(&text) else { continue };
        if text.split('.').count() < 3 || !constraints.check(&version) {
            continue;
        }
        if best.as_ref().is_none_or(|(other, _)| version > *other) {
            best = Some((version, tag));
        }
    }
    best.map(|(_, tag)| tag.to_owned()).ok_or_else(|| Error::NoVersion(range.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pick(tags: &[&str], range: &str, filter: Option<&str>, media: Option<&str>) -> Result<String, String> {
        let tags: Vec<String> = tags.iter().map(|t| (*t).to_owned()).collect();
        select_tag(&tags, range, filter, media).map_err(|e| e.to_string())
    }

    #[test]
    fn highest_in_range() {
        let tags = ["1.0.0", "v1.5.0", "2.0.0", "2", "2.9", "latest", "1.6.0-rc.1"];
        assert_eq!(pick(&tags, "1.x", None, None).unwrap(), "v1.5.0");
        assert_eq!(pick(&tags, ">=1.0.0-0", Some("-rc"), None).unwrap(), "1.6.0-rc.1");
        assert_eq!(pick(&tags, ">=4", None, None).unwrap_err(), "no match found for semver: >=4");
        assert!(pick(&tags, "x.y.z", None, None).unwrap_err().starts_with("semver 'x.y.z' parse error: "));
        assert!(pick(&tags, "*", Some("("), None).is_err());
    }

    #[test]
    fn charts_write_plus_as_underscore() {
        let tags = ["1.0.0_build.1", "0.9.0"];
        assert_eq!(pick(&tags, "*", None, Some(media_type::HELM_CHART)).unwrap(), "1.0.0_build.1");
        assert_eq!(pick(&tags, "*", None, None).unwrap(), "0.9.0");
    }
}
