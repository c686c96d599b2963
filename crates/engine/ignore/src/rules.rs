//! The rules of one source: the defaults, its ignore files and `spec.ignore`, in order of priority.

use crate::pattern::{MatchResult, Pattern};

/// Name of the ignore files, which may be in any directory of a source.
pub const IGNORE_FILE: &str = ".sourceignore";

const VCS_PATTERNS: &[&str] = &[".git/", ".gitignore", ".gitmodules", ".gitattributes"];

/// Excluded unless the user has ignore lines.
const DEFAULT_PATTERNS: &[&str] = &[
    "*.jpg",
    "*.jpeg",
    "*.gif",
    "*.png",
    "*.wmv",
    "*.flv",
    "*.tar.gz",
    "*.zip",
    ".github/",
    ".circleci/",
    ".travis.yml",
    ".gitlab-ci.yml",
    "appveyor.yml",
    ".drone.yml",
    "cloudbuild.yaml",
    "codeship-services.yml",
    "codeship-steps.yml",
    "**/.goreleaser.yml",
    "**/.sops.yaml",
    "**/.flux.yaml",
];

/// Ignore lines in order of priority: the last one that matches a path decides.
#[derive(Clone, Debug, Default)]
pub struct Rules(Vec<Pattern>);

impl Rules {
    /// The rules of a Git or OCI source.
    ///
    /// `ignore_files` are the directory (`""` for the root) and text of each ignore file, parents before
    /// children. The default patterns apply only if the user has no line at all, the version-control patterns
    /// always.
    pub fn for_source<'a>(
        ignore_files: impl IntoIterator<Item = (&'a str, &'a str)>,
        spec: Option<&str>,
    ) -> Self {
        let mut user = Vec::new();
        for (directory, text) in ignore_files {
            let domain: Vec<&str> = directory.split('/').filter(|s| !s.is_empty()).collect();
            user.extend(lines(text, &domain));
        }
        user.extend(lines(spec.unwrap_or_default(), &[]));
        let defaults = VCS_PATTERNS.iter().chain(if user.is_empty() { DEFAULT_PATTERNS } else { &[] });
        let mut all: Vec<Pattern> = defaults.map(|line| Pattern::parse(line, &[])).collect();
        all.append(&mut user);
        Self(all)
    }

    /// The rules of a bucket: its root ignore file and `spec.ignore`, no defaults.
    pub fn for_bucket(ignore_file: Option<&str>, spec: Option<&str>) -> Self {
        let texts = ignore_file.into_iter().chain(spec);
        Self(texts.flat_map(|text| lines(text, &[]).collect::<Vec<_>>()).collect())
    }

    /// Whether the entry at `path` (relative, separated by `/`) is excluded.
    pub fn ignores(&self, path: &str, is_dir: bool) -> bool {
        let segments: Vec<&str> = path.split('/').collect();
        self.0.iter().rev().find_map(|p| p.match_path(&segments, is_dir)) == Some(MatchResult::Exclude)
    }
}

fn lines<'a>(text: &'a str, domain: &'a [&'a str]) -> impl Iterator<Item = Pattern> + 'a {
    text.split('\n')
        .map(|line| line.strip_suffix('\r').unwrap_or(line))
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty())
        .map(move |line| Pattern::parse(line, domain))
}

#[cfg(test)]
mod tests {
    use super::Rules;

    #[test]
    fn default_patterns_apply_only_without_user_lines() {
        let defaults = Rules::for_source([], None);
        assert!(defaults.ignores("docs/logo.png", false) && defaults.ignores(".git/config", false));
        assert!(
            Rules::for_source([], Some("")).ignores("logo.png", false),
            "an empty spec.ignore is no line"
        );
        let own = Rules::for_source([("", "# only a comment\n\n*.md\n")], None);
        assert!(
            !own.ignores("logo.png", false)
                && own.ignores(".gitignore", false)
                && own.ignores("a/b.md", false)
        );
    }

    #[test]
    fn file_below_an_ignored_directory_can_be_reincluded() {
        let rules = Rules::for_source([("", "/a/\n!/a/b.yaml")], None);
        assert!(rules.ignores("a/c.yaml", false) && !rules.ignores("a/b.yaml", false));
    }

    #[test]
    fn nested_ignore_files_are_scoped_and_spec_ignore_wins() {
        let rules = Rules::for_source([("", "*.txt"), ("apps", "/x.yaml\n")], Some("!keep.txt"));
        assert!(rules.ignores("apps/x.yaml", false) && !rules.ignores("x.yaml", false));
        assert!(rules.ignores("a.txt", false) && !rules.ignores("apps/keep.txt", false));
    }

    #[test]
    fn buckets_have_no_defaults() {
        assert!(!Rules::for_bucket(None, None).ignores(".git/config", false));
        assert!(Rules::for_bucket(Some("*.tmp"), Some("/x")).ignores("x", false));
    }
}
