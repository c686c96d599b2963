//! Dependencies of a chart: those that are not in its `charts/` directory are fetched.

use fl_api::source::HelmRepository;
use fl_artifact_store::Store;
use fl_helm::{Chart, Dependency};
use fl_http::{HeldBytes, Lease};
use fl_runtime::{Client, ClientError, Kind};
use fl_semver::{Constraints, Version};

use super::HelmLimits;
use super::auth::{self, Access, AccessError};
use super::build::{BuildError, Reason};
use super::charts::{ChartError, Charts, HttpCharts, check_address};
use super::local::{SourceTree, join};
use super::oci::{OciCharts, RegistryError};
use super::remote::loader;
use crate::storage::blocking;
use crate::tree::confined;

/// Why a dependency cannot be added.
#[derive(Debug, thiserror::Error)]
enum DependencyError {
    #[error("no chart found at '/{path}' (reference '{reference}')")]
    NotFound { path: String, reference: String },
    #[error("invalid version/constraint format '{version}': {error}")]
    Constraint { version: String, error: fl_semver::Error },
    #[error("{0}")]
    Read(#[from] std::io::Error),
    #[error("failed to load chart from '/{path}' (reference '{reference}'): {problem}")]
    Load { path: String, reference: String, problem: String },
    #[error("{0}")]
    Version(#[from] fl_semver::Error),
    #[error("can't get a valid version for constraint '{0}'")]
    NoMatch(String),
    #[error("failed to get chart '{name}' version '{version}' from '{repository}': {error}")]
    Resolve { name: String, version: String, repository: String, error: ChartError },
    #[error("chart download of version '{version}' failed: {error}")]
    Download { version: String, error: ChartError },
    #[error("failed to load downloaded archive of version '{version}': {problem}")]
    LoadDownloaded { version: String, problem: String },
    #[error("{0}")]
    Interrupted(String),
    #[error("{0}")]
    Address(ChartError),
    #[error("failed to get chart repository for URL '{url}': {problem}")]
    Repository { url: String, problem: RepositoryError },
}

/// Why the repository of a dependency cannot be accessed.
#[derive(Debug, thiserror::Error)]
enum RepositoryError {
    #[error("unable to retrieve HelmRepositoryList: {0}")]
    List(ClientError),
    #[error("{0}")]
    Access(#[from] AccessError),
    #[error("failed to create registry client: {0}")]
    Registry(#[from] RegistryError),
}

/// Where dependencies may come from.
pub(super) struct Dependencies<'a> {
    pub(super) cluster: &'a Client,
    pub(super) store: &'a Store,
    pub(super) namespace: &'a str,
    pub(super) source: &'a SourceTree,
    pub(super) limits: HelmLimits,
    pub(super) lease: &'a Lease,
}

impl Dependencies<'_> {
    /// Adds the missing dependencies to a chart in `directory` and returns their number. `held` counts what is downloaded.
    pub(super) async fn complete(
        &self,
        chart: &mut Chart,
        directory: &str,
        held: &mut HeldBytes,
    ) -> Result<usize, BuildError> {
        let missing = missing(chart);
        for dependency in &missing {
            let name = local_name(dependency).to_owned();
            let added = if is_local(dependency) {
                self.local(dependency, directory)
                    .map_err(|e| format!("failed to add local dependency '{name}': {e}"))
            } else {
                let fetched = self.remote(dependency, held).await;
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

    /// A chart of the same source. Paths cannot leave its root.
    fn local(&self, dependency: &Dependency, directory: &str) -> Result<Chart, DependencyError> {
        let reference = &dependency.repository;
        let inside = if reference.is_empty() {
            format!("charts/{}", dependency.name)
        } else {
            reference.strip_prefix("file://").unwrap_or(reference).to_owned()
        };
        let place = confined(&join(directory, &inside));
        let node = self.source.node(&place);
        let Some(node) = node else {
            return Err(DependencyError::NotFound { path: place, reference: reference.clone() });
        };
        let constraints = Constraints::parse(&dependency.version)
            .map_err(|error| DependencyError::Constraint { version: dependency.version.clone(), error })?;
        let loaded = match node {
            crate::tree::Node::Directory => loader(self.limits).directory(&self.source.at(&place)),
            crate::tree::Node::File { .. } => {
                let data = self.source.read(&place, self.limits.chart)?;
                loader(self.limits).archive(&data)
            }
        };
        let chart = loaded.map_err(|e| DependencyError::Load {
            path: place.clone(),
            reference: reference.clone(),
            problem: e.to_string(),
        })?;
        let version = Version::parse(&chart.metadata.version)?;
        if constraints.check(&version) {
            Ok(chart)
        } else {
            Err(DependencyError::NoMatch(dependency.version.clone()))
        }
    }

    async fn remote(&self, dependency: &Dependency, held: &mut HeldBytes) -> Result<Chart, DependencyError> {
        let Dependency { name, version, repository, .. } = dependency;
        let charts = self.repository(repository).await?;
        let chart = charts.resolve(name, version).await.map_err(|error| DependencyError::Resolve {
            name: name.clone(),
            version: version.clone(),
            repository: repository.clone(),
            error,
        })?;
        let version = chart.version.clone();
        let archive = charts
            .download(&chart, held)
            .await
            .map_err(|error| DependencyError::Download { version: version.clone(), error })?;
        let limits = self.limits;
        let loaded = blocking(move || loader(limits).archive(&archive))
            .await
            .map_err(|error| DependencyError::Interrupted(error.message))?;
        loaded.map_err(|e| DependencyError::LoadDownloaded { version, problem: e.to_string() })
    }

    /// The repository with this address. A HelmRepository of the same namespace provides the credentials.
    async fn repository(&self, url: &str) -> Result<Charts, DependencyError> {
        let normal = auth::normalized(url);
        check_address(&normal).map_err(DependencyError::Address)?;
        let failed = |problem: RepositoryError| DependencyError::Repository { url: normal.clone(), problem };
        let kind = Kind::of::<HelmRepository>();
        let all = self
            .cluster
            .list(&kind, Some(self.namespace), "")
            .await
            .map_err(|e| failed(RepositoryError::List(e)))?;
        let ours = all
            .into_iter()
            .filter_map(|value| serde_json::from_value::<HelmRepository>(value).ok())
            .find(|repository| auth::normalized(&repository.spec.url) == normal);
        let access = match &ours {
            Some(repository) => auth::read(self.cluster, repository).await.map_err(|e| failed(e.into()))?,
            None => Access::anonymous(fl_http::Owner::namespace(self.namespace), url),
        };
        if normal.starts_with("oci://") {
            let charts = OciCharts::new(&access, self.limits);
            return charts.map(Charts::Oci).map_err(|e| failed(e.into()));
        }
        let artifact = ours.as_ref().and_then(|r| r.status.as_ref()?.artifact.as_ref());
        let index = artifact.and_then(|a| self.store.file(&a.path).ok()).filter(|path| path.exists());
        Ok(Charts::Http(HttpCharts { access, index, limits: self.limits, lease: self.lease.clone() }))
    }
}

fn is_local(dependency: &Dependency) -> bool {
    dependency.repository.is_empty() || dependency.repository.starts_with("file://")
}

fn local_name(dependency: &Dependency) -> &str {
    if dependency.alias.is_empty() { &dependency.name } else { &dependency.alias }
}

/// Dependencies that the chart names and does not contain. A lock file takes precedence.
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
