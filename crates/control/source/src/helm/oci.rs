//! Charts in OCI registries.

use std::time::Duration;

use fl_http::HeldBytes;
use fl_oci::{Error, NameError, Reference, Registry, Repository, media_type};
use fl_semver::{Constraints, Version};

use super::HelmLimits;
use super::auth::{Access, AccessError};
use super::charts::{ChartVersion, parse_version};

/// A registry and the path below which its charts are.
pub(super) struct OciCharts {
    pub(super) registry: Registry,
    /// `oci://host/path`
    base: String,
    /// Whether there are credentials for the registry.
    has_login: bool,
    limits: HelmLimits,
    pub(super) timeout: Duration,
}

/// Why a chart of a registry cannot be resolved or downloaded.
#[derive(Debug, thiserror::Error)]
pub(super) enum RegistryError {
    #[error("{0}")]
    Access(#[from] AccessError),
    #[error("{0}")]
    Client(#[from] Error),
    #[error("{0}")]
    Name(#[from] NameError),
    #[error("{0}")]
    Constraint(#[from] fl_semver::Error),
    #[error("could not get tags for {name:?}: could not fetch tags for {url:?}: {problem}")]
    Tags { name: String, url: String, problem: String },
    #[error("could not get tags for {name:?}: unable to locate any tags in provided repository: {url}")]
    NoTags { name: String, url: String },
    #[error("could not locate a version matching provided version string {0}")]
    NoMatch(String),
    #[error("failed to get '{url}': {problem}")]
    Pull { url: String, problem: PullError },
}

/// Why a chart of a registry cannot be downloaded.
#[derive(Debug, thiserror::Error)]
pub(super) enum PullError {
    #[error("{0}")]
    Name(#[from] NameError),
    #[error("failed to perform \"FetchReference\" on source: {0}")]
    Manifest(String),
    #[error("manifest does not contain a layer with mediatype {}", media_type::HELM_CHART)]
    NoLayer,
    #[error("size of chart '{name}' exceeds '{limit}' bytes limit")]
    TooLarge { name: String, limit: u64 },
    #[error("{0}")]
    Blob(String),
    #[error("{0}")]
    Budget(#[from] fl_http::BudgetError),
}

impl OciCharts {
    pub(super) fn new(access: &Access, limits: HelmLimits) -> Result<Self, RegistryError> {
        let options = access.registry()?;
        let has_login = !options.keychain.is_empty();
        let registry = Registry::new(options)?;
        Ok(Self { registry, base: access.url.clone(), has_login, limits, timeout: access.timeout })
    }

    fn repository(&self, name: &str) -> Result<Repository, NameError> {
        let path = self.base.strip_prefix("oci://").unwrap_or(&self.base);
        Repository::parse(&format!("{path}/{name}"))
    }

    pub(super) async fn resolve(&self, name: &str, version: &str) -> Result<ChartVersion, RegistryError> {
        let url = format!("{}/{name}", self.base);
        let chosen = |version: &str| ChartVersion {
            name: name.to_owned(),
            version: version.to_owned(),
            url: Some(format!("{url}:{version}")),
        };
        // A version needs no listing of tags, which can be expensive.
        if parse_version(version).is_some() {
            return Ok(chosen(version));
        }
        let unlisted =
            |problem: String| RegistryError::Tags { name: name.to_owned(), url: url.clone(), problem };
        let repository = self.repository(name).map_err(|e| unlisted(e.to_string()))?;
        let tags = self.registry.tags(&repository).await.map_err(|e| unlisted(self.helm_text(&e)))?;
        let mut versions: Vec<(Version, String)> = Vec::new();
        for tag in tags {
            // A tag cannot contain a plus; charts use an underscore instead. Helm accepts only complete versions.
            let text = tag.replace('_', "+");
            if let Ok(version) = Version::parse_strict(&text) {
                versions.push((version, text));
            }
        }
        if versions.is_empty() {
            return Err(RegistryError::NoTags { name: name.to_owned(), url });
        }
        versions.sort_by(|a, b| b.0.cmp(&a.0));
        if let Some((_, exact)) = versions.iter().find(|(_, text)| text == version) {
            return Ok(chosen(exact));
        }
        let range = if version.is_empty() { "*" } else { version };
        let constraints = Constraints::parse(range)?;
        let found =
            versions.iter().find(|(_, text)| parse_version(text).is_some_and(|v| constraints.check(&v)));
        match found {
            Some((_, text)) => Ok(chosen(text)),
            None => Err(RegistryError::NoMatch(version.to_owned())),
        }
    }

    /// The reference of a version in the registry.
    pub(super) fn reference(&self, chart: &ChartVersion) -> Result<Reference, NameError> {
        self.repository(&chart.name)?.tag(&chart.version.replace('+', "_"))
    }

    pub(super) async fn download(
        &self,
        chart: &ChartVersion,
        held: &mut HeldBytes,
    ) -> Result<Vec<u8>, RegistryError> {
        let url = chart.url.clone().unwrap_or_default();
        self.pull(chart, held).await.map_err(|problem| RegistryError::Pull { url, problem })
    }

    async fn pull(&self, chart: &ChartVersion, held: &mut HeldBytes) -> Result<Vec<u8>, PullError> {
        let reference = self.reference(chart)?;
        let (manifest, _) = self.registry.image(&reference).await.map_err(|e| {
            let why = if e.is_not_found() { format!("{reference}: not found") } else { self.helm_text(&e) };
            PullError::Manifest(why)
        })?;
        let is_chart = |layer: &&fl_oci::Descriptor| {
            matches!(layer.media_type.as_str(), media_type::HELM_CHART | "application/tar+gzip")
        };
        let Some(layer) = manifest.layers.iter().find(is_chart) else {
            return Err(PullError::NoLayer);
        };
        let limit = self.limits.chart;
        if layer.size > limit {
            return Err(PullError::TooLarge { name: chart.name.clone(), limit });
        }
        held.add(layer.size).await?;
        let blob = self.registry.blob_bytes(reference.repository(), layer, limit).await;
        blob.map_err(|e| PullError::Blob(self.helm_text(&e)))
    }

    /// An error with the message of Helm's registry client, which does not request a token without credentials.
    fn helm_text(&self, error: &Error) -> String {
        match error {
            Error::Refused { method, url, status: 401, .. } if !self.has_login => {
                format!("{method} {url:?}: basic credential not found")
            }
            Error::Refused { method, url, status, text } => {
                format!("{method} {url:?}: response status code {status}: {}", text.to_lowercase())
            }
            other => other.to_string(),
        }
    }
}
