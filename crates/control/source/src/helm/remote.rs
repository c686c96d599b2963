//! Charts of repositories: as they are, or packaged again with other values.

use fl_helm::{Chart, JsonValue, Loader};
use fl_http::HeldBytes;
use regex::Regex;

use super::HelmLimits;
use super::build::{Build, BuildError, BuildOptions, Reason};
use super::charts::{ChartVersion, Charts};
use super::verify::Verification;
use crate::storage::blocking;

/// Fetches a chart of a repository; it is packaged again only where something is changed. `held` counts its bytes.
pub(super) async fn build(
    charts: &Charts,
    name: &str,
    version: &str,
    options: &BuildOptions,
    limits: HelmLimits,
    verification: &Verification,
    held: &mut HeldBytes,
) -> Result<Build, BuildError> {
    check_name(name)?;
    let chart = charts.resolve(name, version).await.map_err(|error| {
        let problem = format!("failed to get chart version for remote reference: {error}");
        BuildError::new(error.reason(), problem)
    })?;
    let verified = verification.check(charts, &chart).await?;
    let version = options.version(&chart.version)?;
    let packaged = options.needs_packaging();
    if let Some(build) = options.cached_build(&chart.name, &version, packaged) {
        return Ok(Build { verified, ..build });
    }
    let archive = charts.download(&chart, held).await.map_err(|problem| {
        BuildError::new(Reason::Pull, format!("failed to download chart for remote reference: {problem}"))
    })?;
    let options = options.clone();
    let built = blocking(move || {
        if packaged {
            repackage(&archive, &version, &options, limits)
        } else {
            check_archive(archive, &chart, &version, limits)
        }
    });
    let build = built.await.map_err(|f| BuildError::new(Reason::Package, f.message))??;
    Ok(Build { verified, ..build })
}

fn check_name(name: &str) -> Result<(), BuildError> {
    if name.is_empty() {
        return Err(BuildError::new(Reason::Reference, "no name set for remote chart reference"));
    }
    let fine = Regex::new(r"^([-a-z0-9]+/?\.?)+$").is_ok_and(|r| r.is_match(name));
    if fine {
        return Ok(());
    }
    let problem = format!(
        "invalid chart name '{name}': a valid name must be lower case letters and numbers and MAY be separated with \
         dashes (-), slashes (/) or periods (.)"
    );
    Err(BuildError::new(Reason::Reference, problem))
}

pub(super) fn loader(limits: HelmLimits) -> Loader {
    Loader::with_limits(archive_limits(limits))
}

pub(super) fn archive_limits(limits: HelmLimits) -> fl_helm::ArchiveLimits {
    fl_helm::ArchiveLimits { file: limits.chart_file, ..fl_helm::ArchiveLimits::default() }
}

/// The archive as it was downloaded, if it is a chart.
fn check_archive(
    archive: Vec<u8>,
    chart: &ChartVersion,
    version: &str,
    limits: HelmLimits,
) -> Result<Build, BuildError> {
    let unusable = |problem: String| {
        BuildError::new(Reason::Pull, format!("failed to load chart metadata from written chart: {problem}"))
    };
    if archive.len() as u64 > limits.chart {
        return Err(unusable(format!(
            "size of chart '{}' exceeds '{}' bytes limit",
            chart.name, limits.chart
        )));
    }
    // Only the metadata; other errors are reported when the chart is rendered.
    let mut metadata =
        fl_helm::archive_metadata(&archive, archive_limits(limits)).map_err(|e| unusable(e.to_string()))?;
    metadata.validate().map_err(|e| {
        BuildError::new(Reason::Pull, format!("failed to validate metadata of written chart: {e}"))
    })?;
    Ok(Build {
        name: chart.name.clone(),
        version: version.to_owned(),
        archive: Some(archive),
        values_files: Vec::new(),
        resolved_dependencies: 0,
        packaged: false,
        verified: false,
    })
}

/// Packages the chart with another version and other values.
fn repackage(
    archive: &[u8],
    version: &str,
    options: &BuildOptions,
    limits: HelmLimits,
) -> Result<Build, BuildError> {
    let mut chart = loader(limits)
        .archive(archive)
        .map_err(|e| BuildError::new(Reason::Package, format!("failed to load downloaded chart: {e}")))?;
    version.clone_into(&mut chart.metadata.version);
    let (merged, files) = merge(&chart, options)
        .map_err(|e| BuildError::new(Reason::Values, format!("failed to merge chart values: {e}")))?;
    let changed =
        chart.set_default_values(merged).map_err(|e| BuildError::new(Reason::Values, e.to_string()))?;
    let archive = fl_helm::package(&chart).map_err(|e| BuildError::new(Reason::Package, e.to_string()))?;
    Ok(Build {
        name: chart.name().to_owned(),
        version: version.to_owned(),
        archive: Some(archive),
        values_files: if changed { files } else { Vec::new() },
        resolved_dependencies: 0,
        packaged: true,
        verified: false,
    })
}

/// Why values files cannot be merged.
#[derive(Debug, thiserror::Error)]
enum MergeError {
    #[error("no values file found at path '{0}'")]
    NotFound(String),
    #[error("{0}")]
    Read(String),
    #[error("unmarshaling values from '{path}' failed: {problem}")]
    Parse { path: String, problem: String },
}

/// Merges the named values files of the chart, later ones over earlier ones.
fn merge(chart: &Chart, options: &BuildOptions) -> Result<(JsonValue, Vec<String>), MergeError> {
    let mut merged = JsonValue::Map(Vec::new());
    let mut used = Vec::new();
    for path in &options.values_files {
        let name = crate::tree::clean(path);
        if name == "values.yaml" && !path.starts_with('/') {
            merged = fl_helm::merge_values(merged, &chart.values);
            used.push(path.clone());
            continue;
        }
        // Paths in a chart never begin with a slash.
        let Some(file) = chart.files.iter().find(|f| !path.starts_with('/') && f.name == name) else {
            if options.ignore_missing {
                continue;
            }
            return Err(MergeError::NotFound(path.clone()));
        };
        let values = fl_helm::values_from_yaml(
            file.data.read().map_err(|e| MergeError::Read(e.to_string()))?.as_bytes(),
        )
        .map_err(|e| MergeError::Parse { path: path.clone(), problem: e.to_string() })?;
        merged = fl_helm::merge_values(merged, &values);
        used.push(path.clone());
    }
    Ok((merged, used))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chart_names_are_checked() {
        for good in ["app", "a-b/c.d", "x1"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in ["", "App", "../x", "a//b", "a b", "a_b"] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }
}
