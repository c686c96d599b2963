//! What the API server serves: from the words people use for kinds to resources.

use futures::future::join_all;
use http::Method;
use serde_json::Value;

use crate::cluster::{ApiError, Cluster, Resource, text_at};

/// A served resource with the words it answers to.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    pub(crate) resource: Resource,
    singular: String,
    short: Vec<String>,
}

/// Everything the server serves, each group in its preferred version first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Discovery {
    served: Vec<Served>,
}

impl Discovery {
    /// Asks the server for all groups.
    ///
    /// # Errors
    /// The group list cannot be read; a group that does not answer is left out, as kubectl does.
    pub(crate) async fn read(cluster: &Cluster) -> Result<Discovery, ApiError> {
        let groups = cluster.json(Method::GET, "/apis", &[], None).await?;
        let mut versions = vec!["v1".to_owned()];
        for group in groups["groups"].as_array().into_iter().flatten() {
            let preferred = text_at(group, "/preferredVersion/groupVersion").to_owned();
            let others =
                group["versions"].as_array().into_iter().flatten().map(|v| text_at(v, "/groupVersion"));
            versions.push(preferred.clone());
            versions.extend(others.filter(|v| *v != preferred).map(str::to_owned));
        }
        let lists = join_all(versions.iter().map(|version| group_version(cluster, version))).await;
        Ok(Discovery { served: lists.into_iter().flatten().flatten().collect() })
    }

    /// Asks only for the kinds of one API version.
    ///
    /// # Errors
    /// The version is not served.
    pub(crate) async fn resource(
        cluster: &Cluster,
        api_version: &str,
        kind: &str,
    ) -> Result<Resource, ApiError> {
        let no_match = || ApiError::NoMatch { kind: kind.to_owned(), version: api_version.to_owned() };
        match group_version(cluster, api_version).await {
            Ok(served) => {
                // A kind goes by its name in lower case, too; what is found then is shown as it was asked for.
                let fits = |r: &Resource| r.kind == kind || r.kind.to_lowercase() == kind;
                served.into_iter().map(|s| s.resource).find(fits).ok_or_else(no_match)
            }
            Err(error) if error.is_not_found() => Err(no_match()),
            Err(error) => Err(error),
        }
    }

    /// The resource a word means: `deployments`, `deployment`, `deploy`, `deployments.apps`, `deployments.v1.apps`.
    pub(crate) fn find(&self, word: &str) -> Option<&Resource> {
        let word = word.to_lowercase();
        let (name, rest) = word.split_once('.').unwrap_or((&word, ""));
        let fits = |s: &&Served, name: &str| {
            s.resource.plural == name
                || s.singular == name
                || s.resource.kind.to_lowercase() == name
                || s.short.iter().any(|short| short == name)
        };
        let in_group = |s: &&Served| {
            let r = &s.resource;
            rest.is_empty()
                || r.group == rest
                || rest == format!("{}.{}", r.version, r.group)
                || (r.group.is_empty() && rest == r.version)
        };
        self.served.iter().filter(in_group).find(|s| fits(s, name)).map(|s| &s.resource)
    }

    /// Whether the server has this group and version at all.
    pub(crate) async fn serves(cluster: &Cluster, api_version: &str) -> bool {
        !group_version(cluster, api_version).await.is_err_and(|error| error.is_not_found())
    }

    /// The resource of a kind in a group, in the preferred version.
    pub(crate) fn kind(&self, group: &str, kind: &str) -> Option<&Resource> {
        self.served.iter().map(|s| &s.resource).find(|r| r.group == group && r.kind == kind)
    }
}

async fn group_version(cluster: &Cluster, api_version: &str) -> Result<Vec<Served>, ApiError> {
    let base = if api_version.contains('/') { "/apis/" } else { "/api/" };
    let list = cluster.json(Method::GET, &format!("{base}{api_version}"), &[], None).await?;
    let one = |r: &Value| {
        let words = |key: &str| {
            r[key]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        Served {
            resource: Resource::new(
                api_version,
                text_at(r, "/kind"),
                text_at(r, "/name"),
                r["namespaced"].as_bool().unwrap_or(false),
            ),
            singular: text_at(r, "/singularName").to_owned(),
            short: words("shortNames"),
        }
    };
    let resources = list["resources"].as_array().into_iter().flatten();
    Ok(resources.filter(|r| !text_at(r, "/name").contains('/')).map(one).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_many_names() {
        let served = |api: &str, kind: &str, plural: &str, short: &[&str]| Served {
            resource: Resource::new(api, kind, plural, true),
            singular: kind.to_lowercase(),
            short: short.iter().map(|s| (*s).to_owned()).collect(),
        };
        let all = Discovery {
            served: vec![
                served("v1", "ConfigMap", "configmaps", &["cm"]),
                served("apps/v1", "Deployment", "deployments", &["deploy"]),
                served("helm.toolkit.fluxcd.io/v2", "HelmRelease", "helmreleases", &["hr"]),
            ],
        };
        for word in ["deployment", "Deployment", "deploy", "deployments.apps", "deployments.v1.apps"] {
            assert_eq!(all.find(word).unwrap().kind, "Deployment", "{word}");
        }
        assert_eq!(all.find("cm").unwrap().kind, "ConfigMap");
        assert!(all.find("deployments.batch").is_none() && all.find("x").is_none());
    }
}
