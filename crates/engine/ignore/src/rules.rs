//! The rules of one source: the defaults, its ignore files and `spec.ignore`, in order of priority.

use crate::pattern::{Pattern, Verdict};

/// The file that holds ignore lines, in the root or any directory of a source.
pub const IGNORE_FILE: &str = ".sourceignore";

const VERSION_CONTROL: &[&str] = &[".git/", ".gitignore", ".gitmodules", ".gitattributes"];

/// Left out as long as the user has no line of their own.
const USUAL: &[&str] = &[
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

/// Lines in order of priority: the last one that matches a path decides.
#[derive(Clone, Debug, Default)]
pub struct Rules(Vec<Pattern>);

impl Rules {
    /// The rules of a Git or OCI source.
    ///
    /// `ignore_files` gives the directory (`""` for the root) and text of each ignore file, parents before children. The
    /// usual set applies only while the user has no line at all; the version-control set always does.
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
        let defaults = VERSION_CONTROL.iter().chain(if user.is_empty() { USUAL } else { &[] });
        let mut all: Vec<Pattern> = defaults.map(|line| Pattern::parse(line, &[])).collect();
        all.append(&mut user);
        Self(all)
    }

    /// The rules of a bucket: its root ignore file and `spec.ignore`, no defaults.
    pub fn for_bucket(ignore_file: Option<&str>, spec: Option<&str>) -> Self {
        let texts = ignore_file.into_iter().chain(spec);
        Self(texts.flat_map(|text| lines(text, &[]).collect::<Vec<_>>()).collect())
    }

    /// Whether the entry at `path` (relative, `/` between segments) is left out.
    pub fn ignores(&self, path: &str, is_dir: bool) -> bool {
        let segments: Vec<&str> = path.split('/').collect();
        self.0.iter().rev().find_map(|p| p.judge(&segments, is_dir)) == Some(Verdict::Exclude)
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
    fn defaults_fall_away_with_the_first_line_of_the_user() {
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
    fn a_file_below_an_ignored_directory_can_come_back() {
        let rules = Rules::for_source([("", "/a/\n!/a/b.yaml")], None);
        assert!(rules.ignores("a/c.yaml", false) && !rules.ignores("a/b.yaml", false));
    }

    #[test]
    fn nested_files_speak_for_their_directory_and_spec_has_the_last_word() {
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
