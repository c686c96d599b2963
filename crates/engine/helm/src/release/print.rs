//! Output of `helm template`.

use std::borrow::Cow;

use super::{Release, document, split_manifests};
use crate::chart::Pattern;
use crate::error::{Error, LoadError};

/// Options of `helm template` output.
#[derive(Debug, Clone)]
pub struct PrintOptions {
    /// Print CRDs before the manifests.
    pub crds: bool,
    /// Print hooks after the manifests.
    pub hooks: bool,
    /// Include test hooks.
    pub tests: bool,
    /// If not empty, print only the output of these templates (patterns below the chart's folder), in the
    /// order of the patterns.
    pub show_only: Vec<String>,
}

impl Default for PrintOptions {
    fn default() -> Self {
        Self { crds: false, hooks: true, tests: true, show_only: Vec::new() }
    }
}

impl Release {
    /// Returns the output.
    pub fn printed(&self, options: &PrintOptions) -> Result<String, Error> {
        let mut text = String::new();
        self.print_all(options, |piece| {
            text.push_str(piece);
            Ok::<(), std::io::Error>(())
        })
        .map_err(|error| LoadError::Archive(error.to_string()))?;
        if options.show_only.is_empty() { Ok(text) } else { select(&text, &options.show_only) }
    }

    /// Writes the output in pieces, ignoring `show_only`.
    ///
    /// # Errors
    /// Errors of `print`, or a CRD that cannot be read any more; then nothing is printed.
    pub fn print_all<E: From<std::io::Error>>(
        &self,
        options: &PrintOptions,
        mut print: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut crds = Vec::new();
        for crd in self.crds.iter().filter(|_| options.crds) {
            crds.push((&crd.source, crd.data.read()?.to_text()));
        }
        let manifests = self.manifests.iter().map(|m| (&m.source, Cow::from(&m.content)));
        let mut documents = crds.into_iter().chain(manifests).peekable();
        while let Some((source, content)) = documents.next() {
            if documents.peek().is_some() {
                document(source, &content).into_iter().try_for_each(&mut print)?;
            } else {
                // Helm trims the manifests and ends with one line break; no manifests give an empty line.
                print(document(source, &content).concat().trim_end())?;
            }
        }
        print("\n")?;
        for hook in self.hooks.iter().filter(|hook| options.hooks && (options.tests || !hook.is_test())) {
            document(&hook.path, &hook.manifest).into_iter().try_for_each(&mut print)?;
        }
        Ok(())
    }
}

fn select(manifests: &str, patterns: &[String]) -> Result<String, Error> {
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

/// The path after the chart's name in the `# Source:` comment.
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
    use crate::release::Manifest;

    fn manifest(content: &str) -> Manifest {
        let [source, content] = ["c/t.yaml", content].map(str::to_owned);
        let (api_version, kind, name) = Default::default();
        Manifest { source, api_version, kind, name, content }
    }

    #[test]
    fn manifests_are_trimmed() {
        let printed = |release: &Release| release.printed(&PrintOptions::default()).expect("it prints");
        let mut release = Release::default();
        assert_eq!(printed(&release), "\n");
        release.manifests = ["a: 1\n\n", "b: 2 \n\n"].map(manifest).into();
        let first = "---\n# Source: c/t.yaml\na: 1\n\n\n";
        assert_eq!(printed(&release), format!("{first}---\n# Source: c/t.yaml\nb: 2\n"));
        release.manifests[1].content.clear();
        assert_eq!(printed(&release), format!("{first}---\n# Source: c/t.yaml\n"));
    }

    #[test]
    fn patterns_select_in_their_own_order() {
        let text = "---\n# Source: c/templates/a.yaml\na: 1\n---\n# Source: c/templates/b.yaml\nb: 1\n";
        let wanted = ["templates/b.yaml".to_owned(), "templates/*".to_owned()];
        let picked = select(text, &wanted).expect("both exist");
        assert_eq!(picked.matches("b: 1").count(), 2);
        assert!(picked.starts_with("---\n# Source: c/templates/b.yaml\n"));
        assert!(select(text, &["templates/c.yaml".to_owned()]).is_err());
    }
}
