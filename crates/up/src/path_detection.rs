//! Detects which directory of a repository is delivered.

use anyhow::bail;

/// Names of clusters, preferred ones first.
const CLUSTERS: &[&str] = &["local", "dev", "development", "test", "staging", "production", "prod", "main"];
/// Directories that contain one directory per cluster.
const CLUSTER_PARENTS: &[&str] = &["clusters", "cluster", "kubernetes/flux", "flux"];
const KUSTOMIZATIONS: &[&str] = &["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// A directory and the reason to deliver it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DetectedPath {
    pub(super) path: String,
    pub(super) why: String,
}

/// Detects the path among the files of a source, or checks the requested one. `below` is the path of the named directory
/// below the root of its repository.
pub(super) fn path(files: &[String], asked: Option<&str>, below: &str) -> anyhow::Result<DetectedPath> {
    let named =
        asked.map(fl_source::tree::confined).or_else(|| (!below.is_empty()).then(|| below.to_owned()));
    if let Some(path) = named {
        check(files, &path)?;
        return Ok(DetectedPath { path, why: "as requested".to_owned() });
    }
    if has_kustomization(files, "") {
        return Ok(DetectedPath { path: String::new(), why: "it has a kustomization".to_owned() });
    }
    for parent_dir in CLUSTER_PARENTS {
        let clusters = children(files, parent_dir);
        if clusters.is_empty() {
            continue;
        }
        let chosen = CLUSTERS.iter().find(|c| clusters.iter().any(|n| n == *c)).map(|c| (*c).to_owned());
        let chosen = chosen.or_else(|| clusters.first().cloned()).unwrap_or_default();
        let others: Vec<&str> = clusters.iter().map(String::as_str).filter(|c| *c != chosen).collect();
        let path = format!("{parent_dir}/{chosen}");
        if check(files, &path).is_err() {
            continue;
        }
        let why = match others.as_slice() {
            [] => format!("the only one in {parent_dir}"),
            others => format!("others in {parent_dir}: {}; choose with --path", others.join(", ")),
        };
        return Ok(DetectedPath { path, why });
    }
    check(files, "")?;
    Ok(DetectedPath {
        path: String::new(),
        why: "all manifests in it; narrow it down with --path".to_owned(),
    })
}

fn below<'a>(files: &'a [String], directory: &str) -> impl Iterator<Item = &'a str> {
    let prefix = if directory.is_empty() { String::new() } else { format!("{directory}/") };
    files.iter().filter_map(move |f| f.strip_prefix(prefix.as_str()))
}

fn has_kustomization(files: &[String], directory: &str) -> bool {
    below(files, directory).any(|f| KUSTOMIZATIONS.contains(&f))
}

/// Directories in a directory.
fn children(files: &[String], directory: &str) -> Vec<String> {
    let mut names: Vec<String> =
        below(files, directory).filter_map(|f| f.split_once('/')).map(|(name, _)| name.to_owned()).collect();
    names.sort();
    names.dedup();
    names
}

fn check(files: &[String], path: &str) -> anyhow::Result<()> {
    let shown = if path.is_empty() { "the source".to_owned() } else { format!("`{path}`") };
    if below(files, path).next().is_none() {
        let near = children(files, path.rsplit_once('/').map_or("", |(parent, _)| parent));
        let near =
            if near.is_empty() { String::new() } else { format!(" Directories there: {}.", near.join(", ")) };
        bail!("{shown} is not a directory with files in it.{near} Name another one with --path");
    }
    if has_kustomization(files, path) {
        return Ok(());
    }
    let manifest = |f: &str| f.ends_with(".yaml") || f.ends_with(".yml");
    if !below(files, path).any(manifest) {
        bail!(
            "{shown} has neither a kustomization.yaml nor any manifest; name another directory with --path"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(names: &[&str]) -> Vec<String> {
        names.iter().map(|n| (*n).to_owned()).collect()
    }

    #[test]
    fn detected_path_has_a_reason() {
        let root = path(&files(&["kustomization.yaml", "clusters/a/x.yaml"]), None, "").unwrap();
        assert_eq!(root.path, "");
        let fleet = files(&["clusters/production/a.yaml", "clusters/staging/a.yaml", "apps/a.yaml"]);
        let chosen = path(&fleet, None, "").unwrap();
        assert_eq!(chosen.path, "clusters/staging");
        assert!(chosen.why.contains("production") && chosen.why.contains("--path"), "{}", chosen.why);
        assert_eq!(path(&fleet, Some("./clusters/production/"), "").unwrap().path, "clusters/production");
        assert_eq!(path(&fleet, None, "apps").unwrap().path, "apps");
        assert_eq!(path(&files(&["a.yaml"]), None, "").unwrap().path, "");
    }

    #[test]
    fn source_without_manifests_is_rejected() {
        let message = |names: &[&str], asked| path(&files(names), asked, "").unwrap_err().to_string();
        assert!(message(&["README.md"], None).contains("neither a kustomization.yaml nor any manifest"));
        assert!(message(&[], None).contains("not a directory with files"));
        let wrong = message(&["apps/a.yaml", "infra/b.yaml"], Some("app"));
        assert!(wrong.contains("`app` is not a directory") && wrong.contains("apps, infra"), "{wrong}");
    }
}
