//! The served resources.

use std::sync::OnceLock;

use crate::table::index;

/// One group version with its resources, in discovery order.
#[derive(Debug)]
pub struct GroupVersion {
    /// Empty for the core group.
    pub group: &'static str,
    pub version: &'static str,
    pub resources: Vec<Resource>,
}

impl GroupVersion {
    /// `v1` or `apps/v1`.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

#[derive(Debug)]
pub struct Resource {
    pub plural: &'static str,
    pub singular: &'static str,
    pub kind: &'static str,
    pub namespaced: bool,
    pub verbs: Vec<&'static str>,
    pub short_names: Vec<&'static str>,
    pub categories: Vec<&'static str>,
    pub subresources: Vec<Subresource>,
}

#[derive(Debug)]
pub struct Subresource {
    pub name: &'static str,
    /// Group and version of the kind it answers with; both empty where they are the resource's own.
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
    pub verbs: Vec<&'static str>,
}

/// All group versions; those of one group are adjacent, the preferred version first.
#[must_use]
pub fn group_versions() -> &'static [GroupVersion] {
    static ALL: OnceLock<Vec<GroupVersion>> = OnceLock::new();
    ALL.get_or_init(|| parse(index().resources))
}

fn list(word: &'static str) -> Vec<&'static str> {
    if word == "-" { Vec::new() } else { word.split(',').collect() }
}

fn verbs(letters: &str) -> Vec<&'static str> {
    let verb = |letter| match letter {
        'c' => "create",
        'd' => "delete",
        'D' => "deletecollection",
        'g' => "get",
        'l' => "list",
        'p' => "patch",
        'u' => "update",
        _ => "watch",
    };
    letters.chars().map(verb).collect()
}

fn parse(text: &'static str) -> Vec<GroupVersion> {
    let mut all: Vec<GroupVersion> = Vec::new();
    for line in text.lines() {
        let words: Vec<&'static str> = line.split(' ').collect();
        match words.as_slice() {
            ["G", group, version] => {
                let group = if *group == "-" { "" } else { *group };
                all.push(GroupVersion { group, version, resources: Vec::new() });
            }
            ["R", plural, singular, kind, scope, letters, short_names, categories] => {
                let Some(here) = all.last_mut() else { continue };
                here.resources.push(Resource {
                    plural,
                    singular,
                    kind,
                    namespaced: *scope == "N",
                    verbs: verbs(letters),
                    short_names: list(short_names),
                    categories: list(categories),
                    subresources: Vec::new(),
                });
            }
            ["S", name, kind, letters] => {
                let Some(resource) = all.last_mut().and_then(|g| g.resources.last_mut()) else { continue };
                let mut parts = kind.splitn(3, '/');
                let mut part = || parts.next().unwrap_or_default();
                resource.subresources.push(Subresource {
                    name,
                    group: part(),
                    version: part(),
                    kind: part(),
                    verbs: verbs(letters),
                });
            }
            _ => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_and_subresources_are_parsed() {
        let apps = group_versions().iter().find(|g| g.group == "apps").expect("apps");
        let deployments = apps.resources.iter().find(|r| r.plural == "deployments").expect("deployments");
        assert_eq!(
            (deployments.kind, deployments.singular, deployments.namespaced),
            ("Deployment", "deployment", true)
        );
        assert_eq!(deployments.short_names, ["deploy"]);
        let scale = &deployments.subresources[0];
        assert_eq!(
            (scale.name, scale.group, scale.version, scale.kind),
            ("scale", "autoscaling", "v1", "Scale")
        );
        let autoscaling: Vec<_> = group_versions().iter().filter(|g| g.group == "autoscaling").collect();
        assert_eq!(autoscaling.iter().map(|g| g.version).collect::<Vec<_>>(), ["v2", "v1"]);
    }
}
