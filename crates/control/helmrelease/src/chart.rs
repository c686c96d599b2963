//! Charts: loaded and compiled once for all releases that use them.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

use fl_api::meta::artifact::Artifact;
use fl_helm::{Chart, CompiledChart, Loader, Tree};
use fl_http::Owner;
use fl_release::ChartRecord;
use fl_runtime::{ArtifactError, ArtifactFetcher};
use fl_semver::Version;

use crate::action::LoadedChart;

/// Charts kept ready.
const KEPT: usize = 64;

/// Why there is no chart.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChartError {
    /// The artifact is not there yet.
    #[error("file not found")]
    Missing,
    /// Another file is in its place.
    #[error("{0}")]
    Replaced(String),
    /// It could not be fetched or is no chart.
    #[error("{0}")]
    Unusable(String),
}

/// Charts by what they were made of.
#[derive(Debug, Default)]
pub(crate) struct Charts {
    kept: Mutex<VecDeque<(String, LoadedChart)>>,
}

impl Charts {
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
            error @ ArtifactError::Digest { .. } => ChartError::Replaced(error.to_string()),
            other => ChartError::Unusable(other.to_string()),
        })?;
        let loaded = tokio::task::spawn_blocking(move || {
            let mut bytes = Vec::new();
            file.into_file().read_to_end(&mut bytes).map_err(|error| error.to_string())?;
            let mut chart = Loader::new().archive(&bytes).map_err(|error| words(&error.to_string()))?;
            if !matches!(chart.metadata.api_version.as_str(), "v1" | "v2") {
                return Err("only the Chart API v2 is supported".to_owned());
            }
            let record = ChartRecord::of(&chart).map_err(|error| error.to_string())?;
            drop_null_defaults(&mut chart);
            let version = chart.metadata.version.clone();
            Ok(LoadedChart { compiled: Arc::new(CompiledChart::new(chart)), record, version })
        })
        .await;
        let chart = match loaded {
            Ok(Ok(chart)) => chart,
            Ok(Err(why)) => return Err(ChartError::Unusable(why)),
            Err(error) => return Err(ChartError::Unusable(error.to_string())),
        };
        if let Some(digest) = digest {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.len() >= KEPT {
                kept.pop_front();
            }
            kept.push_back((digest, chart.clone()));
        }
        Ok(chart)
    }

    fn find(&self, digest: &str) -> Option<LoadedChart> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(known, _)| known == digest)?;
        let found = kept.remove(at)?;
        let chart = found.1.clone();
        kept.push_back(found);
        Some(chart)
    }

    /// The chart with the digest of its source behind its version; templates see it too.
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
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT {
            kept.pop_front();
        }
        kept.push_back((key, changed.clone()));
        changed
    }
}

/// A failure to load as Helm 4 words it.
fn words(error: &str) -> String {
    let values = "cannot load values.yaml: ";
    error.replacen(values, &format!("{values}cannot unmarshal yaml document: "), 1)
}

/// Helm 4 leaves defaults that are null out of the values, at every depth of a table. Those for a subchart stay: they take the
/// subchart's own defaults away.
fn drop_null_defaults(chart: &mut Chart) {
    let names: Vec<String> = chart.dependencies.iter().map(|below| below.name().to_owned()).collect();
    if let Tree::Map(entries) = &mut chart.values {
        entries.retain(|(_, value)| !matches!(value, Tree::Null));
        for (key, value) in entries.iter_mut() {
            if !names.iter().any(|name| name.as_bytes() == key.as_bytes()) {
                drop_nulls(value);
            }
        }
    }
    chart.dependencies.iter_mut().for_each(drop_null_defaults);
}

fn drop_nulls(tree: &mut Tree) {
    if let Tree::Map(entries) = tree {
        entries.retain(|(_, value)| !matches!(value, Tree::Null));
        entries.iter_mut().for_each(|(_, value)| drop_nulls(value));
    }
}

/// The version of a chart from a source whose revision has a digest, and that digest.
pub(crate) fn version_of_revision(chart_version: &str, revision: &str) -> Result<(String, String), String> {
    let bad = || format!("invalid chart version {chart_version}");
    let version = Version::parse(chart_version).map_err(|_| bad())?;
    let (tag, digest) = match revision.split_once('@') {
        Some((tag, digest)) => (tag.replace('_', "+"), Some(digest)),
        None => (revision.to_owned(), None),
    };
    let digest = match Version::parse(&tag) {
        Ok(tagged) => match digest {
            Some(digest) if tagged == version => digest,
            _ => {
                let tag = revision.split('@').next().unwrap_or_default();
                return Err(format!("artifact revision {tag} does not match chart version {chart_version}"));
            }
        },
        Err(_) => revision,
    };
    let hex = match digest.split(':').collect::<Vec<_>>().as_slice() {
        [_, hex] if hex.len() >= 12 => hex[..12].to_owned(),
        _ => return Err(format!("invalid artifact revision {digest}")),
    };
    let version = version.with_metadata(&hex).map_err(|_| bad())?;
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
            of("1.0.0", &format!("1.0.1@{digest}")).expect_err("another version"),
            "artifact revision 1.0.1 does not match chart version 1.0.0"
        );
        assert!(of("1.0.0", "latest").is_err());
        assert!(of("x", digest).is_err());
    }
}
