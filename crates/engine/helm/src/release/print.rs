//! A release as `helm template` prints it.

use super::{Hook, Release, document_len, push_document, split_manifests};
use crate::chart::Pattern;
use crate::error::Error;

/// What to print.
#[derive(Debug, Clone)]
pub struct PrintOptions {
    /// CRDs before the manifests.
    pub crds: bool,
    /// Hooks behind the manifests.
    pub hooks: bool,
    /// Test hooks among them.
    pub tests: bool,
    /// When not empty, only what these templates (patterns below the chart's folder) gave, pattern by pattern.
    pub show_only: Vec<String>,
}

impl Default for PrintOptions {
    fn default() -> Self {
        Self { crds: false, hooks: true, tests: true, show_only: Vec::new() }
    }
}

impl Release {
    /// The text for stdout.
    pub fn printed(&self, options: &PrintOptions) -> Result<String, Error> {
        let wanted = |hook: &&Hook| options.hooks && (options.tests || !hook.is_test());
        let hooks = || self.hooks.iter().filter(wanted);
        let bytes: usize = hooks().map(|h| document_len(&h.path, h.manifest.len())).sum();
        let mut text = self.manifest_text_and_room(options.crds, bytes + 1);
        // Helm trims what surrounds the manifests, then ends with one line break; no manifests give an empty line.
        text.truncate(text.trim_end().len());
        let lead = text.len() - text.trim_start().len();
        text.drain(..lead);
        text.push('\n');
        for hook in hooks() {
            push_document(&mut text, &hook.path, &hook.manifest);
        }
        if options.show_only.is_empty() { Ok(text) } else { pick(&text, &options.show_only) }
    }
}

fn pick(manifests: &str, patterns: &[String]) -> Result<String, Error> {
    let all = split_manifests(manifests);
    let mut picked = String::new();
    for text in patterns {
        let missing = || Error::NoSuchTemplate(text.clone());
        let pattern = Pattern::new(text).map_err(|_| missing())?;
        let mut found = false;
        for manifest in &all {
            if template_of(manifest).is_some_and(|template| pattern.matches(template)) {
                found = true;
                for part in ["---\n", manifest, "\n"] {
                    picked.push_str(part);
                }
            }
        }
        if !found {
            return Err(missing());
        }
    }
    Ok(picked)
}

/// The path behind the chart's name in the comment that names the source.
fn template_of(manifest: &str) -> Option<&str> {
    manifest.match_indices("# Source: ").find_map(|(at, mark)| {
        let (chart, path) = manifest[at + mark.len()..].split_once('/')?;
        let path = path.lines().next().unwrap_or_default();
        (!chart.is_empty() && !path.is_empty()).then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_select_in_their_own_order() {
        let text = "---\n# Source: c/templates/a.yaml\na: 1\n---\n# Source: c/templates/b.yaml\nb: 1\n";
        let wanted = ["templates/b.yaml".to_owned(), "templates/*".to_owned()];
        let picked = pick(text, &wanted).expect("both exist");
        assert_eq!(picked.matches("b: 1").count(), 2);
        assert!(picked.starts_with("---\n# Source: c/templates/b.yaml\n"));
        assert!(pick(text, &["templates/c.yaml".to_owned()]).is_err());
    }
}
