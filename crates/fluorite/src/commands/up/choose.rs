//! Which directory of a repository is delivered when nobody says.

use anyhow::bail;

/// Names of clusters, the likeliest to be tried on a laptop first.
const CLUSTERS: &[&str] = &["local", "dev", "development", "test", "staging", "production", "prod", "main"];
/// Where repositories keep what a cluster begins with.
const ENTRANCES: &[&str] = &["clusters", "cluster", "kubernetes/flux", "flux"];
const KUSTOMIZATIONS: &[&str] = &["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// A directory and why it was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) path: String,
    pub(super) why: String,
}

/// Chooses among the files of a source, or checks what was asked for. `below` is the directory that was named, if it is
/// a part of the repository.
pub(super) fn path(files: &[String], asked: Option<&str>, below: &str) -> anyhow::Result<Chosen> {
    let named =
        asked.map(fl_source::tree::confined).or_else(|| (!below.is_empty()).then(|| below.to_owned()));
    if let Some(path) = named {
        check(files, &path)?;
        return Ok(Chosen { path, why: "as asked".to_owned() });
    }
    if has_kustomization(files, "") {
        return Ok(Chosen { path: String::new(), why: "it has a kustomization".to_owned() });
    }
    for entrance in ENTRANCES {
        let clusters = children(files, entrance);
        if clusters.is_empty() {
            continue;
        }
        let chosen = CLUSTERS.iter().find(|c| clusters.iter().any(|n| n == *c)).map(|c| (*c).to_owned());
        let chosen = chosen.or_else(|| clusters.first().cloned()).unwrap_or_default();
        let others: Vec<&str> = clusters.iter().map(String::as_str).filter(|c| *c != chosen).collect();
        let path = format!("{entrance}/{chosen}");
        if check(files, &path).is_err() {
            continue;
        }
        let why = match others.as_slice() {
            [] => format!("the only one in {entrance}"),
            others => format!("others in {entrance}: {}; choose with --path", others.join(", ")),
        };
        return Ok(Chosen { path, why });
    }
    check(files, "")?;
    Ok(Chosen { path: String::new(), why: "all manifests in it; narrow it down with --path".to_owned() })
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
        let near = if near.is_empty() { String::new() } else { format!(" There is: {}.", near.join(", ")) };
        bail!("{shown} is not a directory with files in it.{near} Give another one with --path");
    }
    if has_kustomization(files, path) {
        return Ok(());
    }
    let manifest = |f: &str| f.ends_with(".yaml") || f.ends_with(".yml");
    if !below(files, path).any(manifest) {
        bail!(
            "{shown} holds neither a kustomization.yaml nor any manifest; name the directory that does with --path"
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
    fn chooses_and_says_why() {
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
    fn nothing_to_deliver_is_told() {
        let says = |names: &[&str], asked| path(&files(names), asked, "").unwrap_err().to_string();
        assert!(says(&["README.md"], None).contains("neither a kustomization.yaml nor any manifest"));
        assert!(says(&[], None).contains("not a directory with files"));
        let wrong = says(&["apps/a.yaml", "infra/b.yaml"], Some("app"));
        assert!(wrong.contains("`app` is not a directory") && wrong.contains("apps, infra"), "{wrong}");
    }
}
