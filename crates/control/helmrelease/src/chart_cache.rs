//! Cache of loaded and compiled charts, shared by all releases.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

use fl_api::meta::artifact::Artifact;
use fl_helm::{Chart, CompiledChart, JsonValue, Loader};
use fl_helm_storage::StoredChart;
use fl_http::Owner;
use fl_runtime::{ArtifactError, ArtifactFetcher};
use fl_semver::Version;

use crate::action::LoadedChart;

/// Charts in the cache.
const CACHE_SIZE: usize = 64;

/// Why a chart could not be loaded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChartError {
    /// The artifact does not exist yet.
    #[error("file not found")]
    Missing,
    /// The artifact has another digest than the status of its source says.
    #[error("{0}")]
    Replaced(ArtifactError),
    #[error("{0}")]
    Fetch(ArtifactError),
    #[error("{0}")]
    Read(#[from] std::io::Error),
    /// The archive is not a chart; with Helm 4's message.
    #[error("{0}")]
    Invalid(String),
    #[error("only the Chart API v2 is supported")]
    UnsupportedApi,
    /// The task that loads it was cancelled or panicked.
    #[error("{0}")]
    Task(#[from] tokio::task::JoinError),
}

/// Why a chart cannot have the version that the revision of its source asks for.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ChartVersionError {
    #[error("invalid chart version {0}")]
    InvalidVersion(String),
    #[error("artifact revision {tag} does not match chart version {version}")]
    Mismatch { tag: String, version: String },
    #[error("invalid artifact revision {0}")]
    InvalidRevision(String),
}

/// Charts by the digest of their artifact.
#[derive(Debug, Default)]
pub(crate) struct ChartCache {
    cached: Mutex<VecDeque<(String, LoadedChart)>>,
}

impl ChartCache {
    /// The chart of an artifact.
    pub(crate) async fn load(
        &self,
        fetcher: &ArtifactFetcher,
        artifact: &Artifact,
        owner: &Owner,
    ) -> Result<LoadedChart, ChartError> {
        let digest = artifact.digest.as_ref().map(ToString::to_string);
        if let Some(chart) = digest.as_deref().and_then(|digest| self.find(digest)) {
            return Ok(chart);
        }
        let file = fetcher.open(artifact, owner).await.map_err(|error| match error {
            ArtifactError::NotFound => ChartError::Missing,
            error @ ArtifactError::Digest { .. } => ChartError::Replaced(error),
            other => ChartError::Fetch(other),
        })?;
        let loaded = tokio::task::spawn_blocking(move || {
            let mut bytes = Vec::new();
            file.into_file().read_to_end(&mut bytes)?;
            let invalid = |error: String| ChartError::Invalid(error);
            let mut chart =
                Loader::new().archive(&bytes).map_err(|error| invalid(helm4_message(&error.to_string())))?;
            if !matches!(chart.metadata.api_version.as_str(), "v1" | "v2") {
                return Err(ChartError::UnsupportedApi);
            }
            let record = StoredChart::of(&chart).map_err(|error| invalid(error.to_string()))?;
            drop_null_defaults(&mut chart);
            let version = chart.metadata.version.clone();
            Ok(LoadedChart { compiled: Arc::new(CompiledChart::new(chart)), record, version })
        });
        let chart = loaded.await??;
        if let Some(digest) = digest {
            let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
            if cached.len() >= CACHE_SIZE {
                cached.pop_front();
            }
            cached.push_back((digest, chart.clone()));
        }
        Ok(chart)
    }

    fn find(&self, digest: &str) -> Option<LoadedChart> {
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let at = cached.iter().position(|(known, _)| known == digest)?;
        let found = cached.remove(at)?;
        let chart = found.1.clone();
        cached.push_back(found);
        Some(chart)
    }

    /// The chart with a version that ends with the digest of its source; templates see that version too.
    pub(crate) fn with_version(&self, chart: LoadedChart, digest: &str, version: &str) -> LoadedChart {
        if chart.version == version {
            return chart;
        }
        let key = format!("{digest} {version}");
        if let Some(known) = self.find(&key) {
            return known;
        }
        let mut changed = chart.compiled.chart().clone();
        changed.metadata.version = version.to_owned();
        let mut record = chart.record;
        record.metadata.version = version.to_owned();
        let changed = LoadedChart {
            compiled: Arc::new(CompiledChart::new(changed)),
            record,
            version: version.to_owned(),
        };
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        if cached.len() >= CACHE_SIZE {
            cached.pop_front();
        }
        cached.push_back((key, changed.clone()));
        changed
    }
}

/// A load error with the message of Helm 4.
fn helm4_message(error: &str) -> String {
    let values = "cannot load values.yaml: ";
    error.replacen(values, &format!("{values}cannot unmarshal yaml document: "), 1)
}

/// Helm 4 removes null defaults from the values, at every depth. Those for a subchart stay: they remove the defaults of the
/// subchart.
fn drop_null_defaults(chart: &mut Chart) {
    let names: Vec<String> = chart.dependencies.iter().map(|below| below.name().to_owned()).collect();
    if let JsonValue::Map(entries) = &mut chart.values {
        entries.retain(|(_, value)| !matches!(value, JsonValue::Null));
        for (key, value) in entries.iter_mut() {
            if !names.iter().any(|name| name.as_bytes() == key.as_bytes()) {
                drop_nulls(value);
            }
        }
    }
    chart.dependencies.iter_mut().for_each(drop_null_defaults);
}

fn drop_nulls(tree: &mut JsonValue) {
    if let JsonValue::Map(entries) = tree {
        entries.retain(|(_, value)| !matches!(value, JsonValue::Null));
        entries.iter_mut().for_each(|(_, value)| drop_nulls(value));
    }
}

/// The version of a chart from a source whose revision has a digest, and that digest.
pub(crate) fn version_of_revision(
    chart_version: &str,
    revision: &str,
) -> Result<(String, String), ChartVersionError> {
    let invalid = || ChartVersionError::InvalidVersion(chart_version.to_owned());
    let version = Version::parse(chart_version).map_err(|_| invalid())?;
    let (tag, digest) = match revision.split_once('@') {
        Some((tag, digest)) => (tag.replace('_', "+"), Some(digest)),
        None => (revision.to_owned(), None),
    };
    let digest = match Version::parse(&tag) {
        Ok(tagged) => match digest {
            Some(digest) if tagged == version => digest,
            _ => {
                let tag = revision.split('@').next().unwrap_or_default();
                let (tag, version) = (tag.to_owned(), chart_version.to_owned());
                return Err(ChartVersionError::Mismatch { tag, version });
            }
        },
        Err(_) => revision,
    };
    let hex = match digest.split(':').collect::<Vec<_>>().as_slice() {
        [_, hex] if hex.len() >= 12 => hex[..12].to_owned(),
        _ => return Err(ChartVersionError::InvalidRevision(digest.to_owned())),
    };
    let version = version.with_metadata(&hex).map_err(|_| invalid())?;
    Ok((version.to_string(), digest.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_carry_the_digest() {
        let digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
        let of = |version: &str, revision: &str| version_of_revision(version, revision);
        assert_eq!(
            of("1.0.0", &format!("1.0.0@{digest}")),
            Ok(("1.0.0+0123456789ab".to_owned(), digest.to_owned()))
        );
        assert_eq!(of("1.0.0", digest), Ok(("1.0.0+0123456789ab".to_owned(), digest.to_owned())));
        assert_eq!(
            of("1.0.0", &format!("1.0.1@{digest}")).expect_err("another version").to_string(),
            "artifact revision 1.0.1 does not match chart version 1.0.0"
        );
        assert!(of("1.0.0", "latest").is_err());
        assert!(of("x", digest).is_err());
    }
}
