//! Repositories of charts: over HTTP by their index, or OCI registries.

use std::cmp::Ordering;
use std::io;
use std::path::PathBuf;

use fl_helm::{IndexError, ListedVersion};
use fl_http::{ByteBudget, HeldBytes, Lease, Owner};
use fl_semver::{Constraints, Version};

use super::HelmLimits;
use super::auth::{self, Access, AccessError};
use super::build::Reason;
use super::oci::{OciCharts, RegistryError};
use super::repository::DownloadError;
use crate::storage::{DEADLINE_EXCEEDED, blocking};

/// A repository of charts.
pub(super) enum Charts {
    Http(HttpCharts),
    Oci(OciCharts),
}

/// A repository over HTTP and its index.
pub(super) struct HttpCharts {
    pub(super) access: Access,
    /// The stored index; without one it is fetched.
    pub(super) index: Option<PathBuf>,
    pub(super) limits: HelmLimits,
    pub(super) lease: Lease,
}

/// A version of a chart in a repository.
#[derive(Clone, Debug)]
pub(super) struct ChartVersion {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) url: Option<String>,
}

/// Why a version of a chart cannot be resolved or downloaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChartError {
    #[error("no chart name found")]
    NoSuchChart,
    #[error("no chart version found")]
    NoVersions,
    #[error("no '{name}' chart with version matching '{version}' found")]
    NoMatch { name: String, version: String },
    #[error("{0}")]
    Constraint(#[from] fl_semver::Error),
    #[error("failed to cache index: {0}")]
    DownloadIndex(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("failed to load index: failed to load index: {0}")]
    LoadIndex(#[from] IndexError),
    #[error("failed to load index: failed to load index: {0}")]
    ParseIndex(#[from] serde_json::Error),
    #[error("failed to load index: failed to load index: {0}")]
    ReadIndex(#[from] io::Error),
    #[error("chart '{0}' has no downloadable URLs")]
    NoUrl(String),
    #[error("{0}")]
    Http(#[from] fl_http::Error),
    /// Access to the repository.
    #[error("{0}")]
    Access(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// An OCI registry.
    #[error("{0}")]
    Registry(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("{0}")]
    Interrupted(String),
    #[error("{DEADLINE_EXCEEDED}")]
    Deadline,
    /// See [`fetch_chart`].
    #[error("cannot find chart '{name}' version '{version}' in '{repository}': {error}")]
    NotFound { name: String, version: String, repository: String, error: Box<ChartError> },
    #[error("aliased repository dependency is not supported: {0}")]
    Alias(String),
    #[error("invalid dependency repository URL: {0}")]
    InvalidUrl(String),
}

impl From<AccessError> for ChartError {
    fn from(error: AccessError) -> Self {
        ChartError::Access(Box::new(error))
    }
}

impl From<RegistryError> for ChartError {
    fn from(error: RegistryError) -> Self {
        ChartError::Registry(Box::new(error))
    }
}

impl From<DownloadError> for ChartError {
    fn from(error: DownloadError) -> Self {
        ChartError::DownloadIndex(Box::new(error))
    }
}

impl ChartError {
    /// Whether the reference is wrong, or the repository could not be read.
    pub(super) fn reason(&self) -> Reason {
        match self {
            ChartError::NoSuchChart
            | ChartError::NoVersions
            | ChartError::NoMatch { .. }
            | ChartError::Constraint(_) => Reason::Reference,
            _ => Reason::Pull,
        }
    }
}

impl Charts {
    /// The version of a chart that a version or a range selects.
    pub(super) async fn resolve(&self, name: &str, version: &str) -> Result<ChartVersion, ChartError> {
        match self {
            Charts::Http(charts) => charts.resolve(name, version).await,
            Charts::Oci(charts) => {
                let resolved = tokio::time::timeout(charts.timeout, charts.resolve(name, version)).await;
                Ok(resolved.map_err(|_| ChartError::Deadline)??)
            }
        }
    }

    /// The archive of a chart; its bytes are counted by `held`.
    pub(super) async fn download(
        &self,
        chart: &ChartVersion,
        held: &mut HeldBytes,
    ) -> Result<Vec<u8>, ChartError> {
        match self {
            Charts::Http(charts) => charts.download(chart, held).await,
            Charts::Oci(charts) => {
                let downloaded = tokio::time::timeout(charts.timeout, charts.download(chart, held)).await;
                Ok(downloaded.map_err(|_| ChartError::Deadline)??)
            }
        }
    }
}

impl HttpCharts {
    async fn resolve(&self, name: &str, version: &str) -> Result<ChartVersion, ChartError> {
        let versions = self.versions(name).await?.ok_or(ChartError::NoSuchChart)?;
        let best = best_version(&versions, name, version)?;
        Ok(ChartVersion {
            name: best.name.clone(),
            version: best.version.clone(),
            url: best.urls.as_ref().and_then(|u| u.first()).cloned(),
        })
    }

    /// The versions of one chart; the rest of the index is skipped.
    async fn versions(&self, name: &str) -> Result<Option<Vec<ListedVersion>>, ChartError> {
        let (name, index) = (name.to_owned(), self.index.clone());
        let downloaded = match &index {
            Some(_) => None,
            None => Some(super::repository::download(&self.access, self.limits.index, &self.lease).await?),
        };
        let found = blocking(move || -> Result<_, ChartError> {
            if let Some(downloaded) = downloaded {
                let mut index = fl_helm::RepositoryIndex::read(downloaded.file, tempfile::tempfile()?)?;
                let mut json = tempfile::tempfile()?;
                let mut out = io::BufWriter::new(&json);
                index.write_json(&mut out)?;
                io::Write::flush(&mut out)?;
                drop(out);
                io::Seek::rewind(&mut json)?;
                return Ok(fl_helm::find_versions(io::BufReader::new(json), &name)?);
            }
            let file = std::fs::File::open(index.unwrap_or_default())?;
            Ok(fl_helm::find_versions(io::BufReader::new(file), &name)?)
        });
        found.await.map_err(|error| ChartError::Interrupted(error.message))?
    }

    async fn download(&self, chart: &ChartVersion, held: &mut HeldBytes) -> Result<Vec<u8>, ChartError> {
        let Some(reference) = &chart.url else { return Err(ChartError::NoUrl(chart.name.clone())) };
        let url = auth::resolve(&self.access.url, reference)?;
        let response = self.access.get(&url).await?;
        Ok(response.bytes_held(self.limits.chart + 1, held).await?.into())
    }
}

/// The archive of a chart in a public repository, for commands. `version` may be a range, or empty for the newest.
///
/// # Errors
/// The repository cannot be read, or has no such version.
pub async fn fetch_chart(
    repository: &str,
    name: &str,
    version: &str,
    limits: HelmLimits,
) -> Result<Vec<u8>, ChartError> {
    let access = Access::anonymous(Owner::engine(), repository);
    check_address(&access.url)?;
    let lease = ByteBudget::shared().lease(Owner::engine(), access.timeout);
    let mut held = lease.hold();
    let charts = if access.url.starts_with("oci://") {
        Charts::Oci(OciCharts::new(&access, limits)?)
    } else {
        Charts::Http(HttpCharts { access, index: None, limits, lease })
    };
    let chart = charts.resolve(name, version).await.map_err(|error| ChartError::NotFound {
        name: name.to_owned(),
        version: version.to_owned(),
        repository: repository.to_owned(),
        error: Box::new(error),
    })?;
    charts.download(&chart, &mut held).await
}

/// Addresses of repositories are those of HTTP and OCI.
pub(super) fn check_address(url: &str) -> Result<(), ChartError> {
    if url.starts_with("oci://") || url.starts_with("https://") || url.starts_with("http://") {
        Ok(())
    } else if url.starts_with('@') || url.starts_with("alias:") {
        Err(ChartError::Alias(url.to_owned()))
    } else {
        Err(ChartError::InvalidUrl(url.to_owned()))
    }
}

/// An exact match, or the highest version in range; of equal ones the one created last.
fn best_version<'a>(
    versions: &'a [ListedVersion],
    name: &str,
    wanted: &str,
) -> Result<&'a ListedVersion, ChartError> {
    if versions.is_empty() {
        return Err(ChartError::NoVersions);
    }
    if let Some(exact) = versions.iter().find(|v| !wanted.is_empty() && v.version == wanted) {
        return Ok(exact);
    }
    let range = if wanted.is_empty() { "*" } else { wanted };
    let constraints = Constraints::parse(range)?;
    let parsed = |v: &'a ListedVersion| {
        let version = parse_version(&v.version)?;
        constraints.check(&version).then_some((version, v))
    };
    let newer = |a: &(Version, &ListedVersion), b: &(Version, &ListedVersion)| {
        let time = |v: &ListedVersion| v.created.parse::<jiff::Timestamp>().ok();
        a.0.cmp(&b.0).then_with(|| time(a.1).cmp(&time(b.1))).then(Ordering::Less)
    };
    versions
        .iter()
        .filter_map(parsed)
        .reduce(|best, next| if newer(&next, &best) == Ordering::Greater { next } else { best })
        .map(|(_, v)| v)
        .ok_or_else(|| ChartError::NoMatch { name: name.to_owned(), version: wanted.to_owned() })
}

/// A version with at least three numbers, as Helm requires; the parser accepts fewer.
pub(super) fn parse_version(text: &str) -> Option<Version> {
    Version::parse(text).ok().filter(|_| text.split('.').count() >= 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(version: &str, created: &str) -> ListedVersion {
        ListedVersion {
            name: "app".into(),
            version: version.into(),
            created: created.into(),
            ..ListedVersion::default()
        }
    }

    #[test]
    fn best_version_is_exact_or_highest_in_range() {
        let versions = [
            listed("1.0.0", ""),
            listed("1.5.0+a", "2024-01-02T00:00:00Z"),
            listed("1.5.0+b", "2024-01-01T00:00:00Z"),
            listed("2.0.0-rc.1", ""),
            listed("3", ""),
        ];
        let pick = |wanted: &str| {
            best_version(&versions, "app", wanted).map(|v| v.version.as_str()).map_err(|e| e.to_string())
        };
        assert_eq!(pick("*"), Ok("1.5.0+a"));
        assert_eq!(pick(""), Ok("1.5.0+a"));
        assert_eq!(pick("3"), Ok("3"), "an exact text wins");
        assert_eq!(pick(">=1.0.0-0"), Ok("2.0.0-rc.1"));
        assert_eq!(pick("9.x"), Err("no 'app' chart with version matching '9.x' found".to_owned()));
        assert_eq!(best_version(&[], "app", "*").unwrap_err().to_string(), "no chart version found");
    }

    #[test]
    fn addresses_of_dependencies_are_checked() {
        assert!(check_address("https://h/").is_ok() && check_address("oci://h/x").is_ok());
        let error = |url: &str| check_address(url).unwrap_err().to_string();
        assert_eq!(error("@stable"), "aliased repository dependency is not supported: @stable");
        assert_eq!(error("ftp://h"), "invalid dependency repository URL: ftp://h");
    }
}
