//! The charts a chart needs: those that are not in its `charts/` folder are fetched.

use fl_api::source::HelmRepository;
use fl_helm::{Chart, Dependency};
use fl_runtime::{Client, Kind};
use fl_semver::{Constraints, Version};
use fl_store::Store;

use super::HelmLimits;
use super::access::{self, Access};
use super::build::{BuildError, Reason};
use super::local::{SourceTree, join};
use super::oci::OciCharts;
use super::remote::{Charts, HttpCharts, NoVersion, loader};
use crate::storage::blocking;
use crate::tree::confined;

/// Where dependencies may come from.
pub(super) struct Dependencies<'a> {
    pub(super) cluster: &'a Client,
    pub(super) store: &'a Store,
    pub(super) namespace: &'a str,
    pub(super) source: &'a SourceTree,
    pub(super) limits: HelmLimits,
}

impl Dependencies<'_> {
    /// Adds what is missing to a chart in `directory`; answers how many were added.
    pub(super) async fn complete(&self, chart: &mut Chart, directory: &str) -> Result<usize, BuildError> {
        let missing = missing(chart);
        for dependency in &missing {
            let name = local_name(dependency).to_owned();
            let added = if is_local(dependency) {
                self.local(dependency, directory)
                    .map_err(|e| format!("failed to add local dependency '{name}': {e}"))
            } else {
                let fetched = self.remote(dependency).await;
                fetched.map_err(|e| format!("failed to add remote dependency '{name}': {e}"))
            };
            let mut added = added.map_err(|problem| BuildError::new(Reason::Dependencies, problem))?;
            if !dependency.alias.is_empty() {
                added.metadata.name.clone_from(&dependency.alias);
            }
            chart.dependencies.push(added);
        }
        Ok(missing.len())
    }

    /// A chart of the same source. Paths stop at its root.
    fn local(&self, dependency: &Dependency, directory: &str) -> Result<Chart, String> {
        let reference = &dependency.repository;
        let inside = if reference.is_empty() {
            format!("charts/{}", dependency.name)
        } else {
            reference.strip_prefix("file://").unwrap_or(reference).to_owned()
        };
        let place = confined(&join(directory, &inside));
        let node = self.source.node(&place);
        let Some(node) = node else {
            return Err(format!("no chart found at '/{place}' (reference '{reference}')"));
        };
        let constraints = Constraints::parse(&dependency.version)
            .map_err(|e| format!("invalid version/constraint format '{}': {e}", dependency.version))?;
        let loaded = match node {
            crate::tree::Node::Directory => loader(self.limits).directory(&self.source.at(&place)),
            crate::tree::Node::File { .. } => {
                let data = self.source.read(&place, self.limits.chart).map_err(|e| e.to_string())?;
                loader(self.limits).archive(&data)
            }
        };
        let chart = loaded
            .map_err(|e| format!("failed to load chart from '/{place}' (reference '{reference}'): {e}"))?;
        let version = Version::parse(&chart.metadata.version).map_err(|e| e.to_string())?;
        if constraints.check(&version) {
            Ok(chart)
        } else {
            Err(format!("can't get a valid version for constraint '{}'", dependency.version))
        }
    }

    async fn remote(&self, dependency: &Dependency) -> Result<Chart, String> {
        let Dependency { name, version, repository, .. } = dependency;
        let charts = self.repository(repository).await?;
        let chosen = charts.choose(name, version).await.map_err(|why| {
            let (NoVersion::Reference(problem) | NoVersion::External(problem)) = why;
            format!("failed to get chart '{name}' version '{version}' from '{repository}': {problem}")
        })?;
        let archive = charts
            .download(&chosen)
            .await
            .map_err(|e| format!("chart download of version '{}' failed: {e}", chosen.version))?;
        let limits = self.limits;
        let loaded = blocking(move || loader(limits).archive(&archive)).await.map_err(|f| f.message)?;
        loaded.map_err(|e| format!("failed to load downloaded archive of version '{}': {e}", chosen.version))
    }

    /// The object of the same namespace with that address gives the login; without one nobody is logged in.
    async fn repository(&self, url: &str) -> Result<Charts, String> {
        let normal = access::normalized(url);
        check_address(&normal)?;
        let failed = |e: String| format!("failed to get chart repository for URL '{normal}': {e}");
        let kind = Kind::of::<HelmRepository>();
        let all = self
            .cluster
            .list(&kind, Some(self.namespace), "")
            .await
            .map_err(|e| failed(format!("unable to retrieve HelmRepositoryList: {e}")))?;
        let ours = all
            .into_iter()
            .filter_map(|value| serde_json::from_value::<HelmRepository>(value).ok())
            .find(|repository| access::normalized(&repository.spec.url) == normal);
        let access = match &ours {
            Some(repository) => access::read(self.cluster, repository).await.map_err(failed)?,
            None => Access::anonymous(fl_http::Owner::namespace(self.namespace), url),
        };
        if normal.starts_with("oci://") {
            let charts = OciCharts::new(&access, self.limits);
            return charts
                .map(Charts::Oci)
                .map_err(|e| failed(format!("failed to create registry client: {e}")));
        }
        let artifact = ours.as_ref().and_then(|r| r.status.as_ref()?.artifact.as_ref());
        let index = artifact.and_then(|a| self.store.file(&a.path).ok()).filter(|path| path.exists());
        Ok(Charts::Http(HttpCharts { access, index, limits: self.limits }))
    }
}

pub(super) fn check_address(url: &str) -> Result<(), String> {
    if url.starts_with("oci://") || url.starts_with("https://") || url.starts_with("http://") {
        Ok(())
    } else if url.starts_with('@') || url.starts_with("alias:") {
        Err(format!("aliased repository dependency is not supported: {url}"))
    } else {
        Err(format!("invalid dependency repository URL: {url}"))
    }
}

fn is_local(dependency: &Dependency) -> bool {
    dependency.repository.is_empty() || dependency.repository.starts_with("file://")
}

fn local_name(dependency: &Dependency) -> &str {
    if dependency.alias.is_empty() { &dependency.name } else { &dependency.alias }
}

/// What the chart asks for and does not have. A lock file says it more exactly and comes first.
fn missing(chart: &Chart) -> Vec<Dependency> {
    let locked = chart.locked_dependencies();
    let wanted = match &locked {
        Some(locked) => locked.as_slice(),
        None => chart.metadata.dependencies.as_deref().unwrap_or_default(),
    };
    if wanted.len() == chart.dependencies.len() {
        return Vec::new();
    }
    let there = |d: &Dependency| {
        let name = local_name(d);
        chart.dependencies.iter().any(|c| c.name() == name)
    };
    wanted.iter().filter(|d| !there(d)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_dependencies() {
        assert!(check_address("https://h/").is_ok() && check_address("oci://h/x").is_ok());
        assert_eq!(
            check_address("@stable").unwrap_err(),
            "aliased repository dependency is not supported: @stable"
        );
        assert_eq!(check_address("ftp://h").unwrap_err(), "invalid dependency repository URL: ftp://h");
    }
}
