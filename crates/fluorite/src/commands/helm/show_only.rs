//! `--show-only`: the manifests of some templates only.

use anyhow::{Context, bail};
use fl_helm::{Pattern, split_manifests};

/// Picks the manifests whose template (below the chart) matches one of the patterns, pattern by pattern.
pub(super) fn pick(manifests: &str, patterns: &[String]) -> anyhow::Result<String> {
    let all = split_manifests(manifests);
    let mut picked = String::new();
    for text in patterns {
        let pattern = Pattern::new(text).with_context(|| format!("--show-only {text}"))?;
        let mut found = false;
        for manifest in &all {
            if template_of(manifest).is_some_and(|template| pattern.matches(template)) {
                found = true;
                picked.push_str("---\n");
                picked.push_str(manifest);
                picked.push('\n');
            }
        }
        if !found {
            bail!("could not find template {text} in chart");
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
