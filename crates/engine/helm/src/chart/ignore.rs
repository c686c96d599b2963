//! `.helmignore`: which files of a chart directory are not part of the chart.
//!
//! Helm's rules are its own, not git's: the first rule that matches decides, and a negated rule ignores everything
//! that it does not match.

use super::pattern::Pattern;
use crate::error::LoadError;

#[derive(Debug)]
enum Scope {
    /// The pattern contains a slash: it matches the whole path from the chart's root.
    Path,
    /// The pattern has no slash: it matches the last path element.
    Name,
}

#[derive(Debug)]
struct Rule {
    pattern: Pattern,
    scope: Scope,
    negated: bool,
    only_directories: bool,
}

/// The rules of a chart.
#[derive(Debug, Default)]
pub(crate) struct Rules(Vec<Rule>);

impl Rules {
    /// Parses a `.helmignore` file. Dot files in `templates/` are always ignored.
    pub(crate) fn parse(text: &str) -> Result<Self, LoadError> {
        let mut rules = Self::default();
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            rules.add(line)?;
        }
        rules.add("templates/.?*")?;
        Ok(rules)
    }

    fn add(&mut self, line: &str) -> Result<(), LoadError> {
        if line.contains("**") {
            return Err(LoadError::IgnoreRule("double-star (**) syntax is not supported".into()));
        }
        let bad = |error: super::pattern::BadPattern| LoadError::IgnoreRule(error.to_string());
        // Validated as written, before escapes such as `\!` are removed.
        Pattern::new(line).map_err(bad)?;
        let (negated, rest) = line.strip_prefix('!').map_or((false, line), |rest| (true, rest));
        let (only_directories, rest) = rest.strip_suffix('/').map_or((false, rest), |rest| (true, rest));
        let scope = if rest.contains('/') { Scope::Path } else { Scope::Name };
        let pattern = Pattern::new(rest.strip_prefix('/').unwrap_or(rest)).map_err(bad)?;
        self.0.push(Rule { pattern, scope, negated, only_directories });
        Ok(())
    }

    /// Whether the path (from the chart's root, with slashes) is ignored.
    pub(crate) fn ignores(&self, path: &str, is_directory: bool) -> bool {
        for rule in &self.0 {
            let subject = match rule.scope {
                Scope::Path => path,
                Scope::Name => path.rsplit('/').next().unwrap_or(path),
            };
            let excluded_kind = rule.only_directories && !is_directory;
            if rule.negated {
                if excluded_kind || !rule.pattern.matches(subject) {
                    return true;
                }
            } else if !excluded_kind && rule.pattern.matches(subject) {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_matching_rule_decides() {
        let rules = Rules::parse("# notes\n*.md\n/ci/\ndocs/*.txt\n.git\n").expect("rules");
        for (path, directory, want) in [
            ("README.md", false, true),
            ("templates/x.md", false, true),
            ("ci", true, true),
            ("ci", false, false),
            ("sub/ci", true, false),
            ("docs/a.txt", false, true),
            ("docs/a/b.txt", false, false),
            (".git", true, true),
            ("templates/.hidden", false, true),
            ("templates/a.yaml", false, false),
        ] {
            assert_eq!(rules.ignores(path, directory), want, "{path}");
        }
    }

    #[test]
    fn a_negated_rule_ignores_all_others() {
        let rules = Rules::parse("!*.yaml").expect("rules");
        assert!(rules.ignores("NOTES.txt", false));
        assert!(!rules.ignores("values.yaml", false));
    }

    #[test]
    fn double_stars_are_rejected() {
        assert!(Rules::parse("a/**/b").is_err());
    }
}
