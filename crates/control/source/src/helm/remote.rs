//! Charts out of repositories: over HTTP by their index, or out of registries.

use std::cmp::Ordering;
use std::path::PathBuf;

use fl_helm::{Chart, ListedVersion, Loader, Tree};
use fl_semver::{Constraints, Version};
use regex::Regex;

use super::HelmLimits;
use super::access::{self, Access};
use super::build::{Build, BuildError, BuildOptions, Reason};
use super::oci::OciCharts;
use super::verify::Verification;
use crate::storage::blocking;

/// Where charts come from.
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
}

/// A chart version that was chosen.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) url: Option<String>,
}

/// Why no version could be chosen: the reference is wrong, or the repository gave no answer.
pub(super) enum NoVersion {
    Reference(String),
    External(String),
}

impl Charts {
    pub(super) async fn choose(&self, name: &str, version: &str) -> Result<Chosen, NoVersion> {
        match self {
            Charts::Http(charts) => charts.choose(name, version).await,
            Charts::Oci(charts) => charts.choose(name, version).await.map_err(NoVersion::External),
        }
    }

    pub(super) async fn download(&self, chosen: &Chosen) -> Result<Vec<u8>, String> {
        match self {
            Charts::Http(charts) => charts.download(chosen).await,
            Charts::Oci(charts) => charts.download(chosen).await,
        }
    }
}

impl HttpCharts {
    async fn choose(&self, name: &str, version: &str) -> Result<Chosen, NoVersion> {
        let versions = self.versions(name).await.map_err(NoVersion::External)?;
        let versions = versions.ok_or_else(|| NoVersion::Reference("no chart name found".to_owned()))?;
        let best = best(&versions, name, version).map_err(NoVersion::Reference)?;
        Ok(Chosen {
            name: best.name.clone(),
            version: best.version.clone(),
            url: best.urls.as_ref().and_then(|u| u.first()).cloned(),
        })
    }

    /// The versions of one chart; the rest of the index is passed over.
    async fn versions(&self, name: &str) -> Result<Option<Vec<ListedVersion>>, String> {
        let (name, index) = (name.to_owned(), self.index.clone());
        let fetched = match &index {
            Some(_) => None,
            None => {
                let index = super::repository::download(&self.access, self.limits.index);
                Some(index.await.map_err(|e| format!("failed to cache index: {e}"))?)
            }
        };
        let found = blocking(move || -> Result<_, String> {
            let failed = |e: String| format!("failed to load index: failed to load index: {e}");
            if let Some(fetched) = fetched {
                let spool = tempfile::tempfile().map_err(|e| failed(e.to_string()))?;
                let mut index =
                    fl_helm::RepositoryIndex::read(fetched.file, spool).map_err(|e| failed(e.to_string()))?;
                let mut json = tempfile::tempfile().map_err(|e| failed(e.to_string()))?;
                let mut out = std::io::BufWriter::new(&json);
                index.write_json(&mut out).map_err(|e| failed(e.to_string()))?;
                std::io::Write::flush(&mut out).map_err(|e| failed(e.to_string()))?;
                drop(out);
                std::io::Seek::rewind(&mut json).map_err(|e| failed(e.to_string()))?;
                return fl_helm::find_versions(std::io::BufReader::new(json), &name)
                    .map_err(|e| failed(e.to_string()));
            }
            let file = std::fs::File::open(index.unwrap_or_default()).map_err(|e| failed(e.to_string()))?;
            fl_helm::find_versions(std::io::BufReader::new(file), &name).map_err(|e| failed(e.to_string()))
        });
        found.await.map_err(|f| f.message)?
    }

    async fn download(&self, chosen: &Chosen) -> Result<Vec<u8>, String> {
        let Some(reference) = &chosen.url else {
            return Err(format!("chart '{}' has no downloadable URLs", chosen.name));
        };
        let url = access::resolve(&self.access.url, reference)?;
        let response = self.access.get(&url).await?;
        response.bytes(self.limits.chart + 1).await.map(Into::into).map_err(|e| e.to_string())
    }
}

/// The archive of a chart in a repository that anyone may read, for commands that have no object to describe it.
/// `version` may be a range, or empty for the newest.
///
/// # Errors
/// The repository cannot be read, or has no such version.
pub async fn fetch_chart(
    repository: &str,
    name: &str,
    version: &str,
    limits: HelmLimits,
) -> Result<Vec<u8>, String> {
    let access = Access::anonymous(fl_http::Owner::engine(), repository);
    super::dependencies::check_address(&access.url)?;
    let charts = if access.url.starts_with("oci://") {
        Charts::Oci(OciCharts::new(&access, limits)?)
    } else {
        Charts::Http(HttpCharts { access, index: None, limits })
    };
    let chosen = charts.choose(name, version).await.map_err(|why| {
        let (NoVersion::Reference(problem) | NoVersion::External(problem)) = why;
        format!("cannot find chart '{name}' version '{version}' in '{repository}': {problem}")
    })?;
    charts.download(&chosen).await
}

/// An exact match first, then the highest version in range; of equal ones the one made last.
fn best<'a>(versions: &'a [ListedVersion], name: &str, wanted: &str) -> Result<&'a ListedVersion, String> {
    if versions.is_empty() {
        return Err("no chart version found".to_owned());
    }
    if let Some(exact) = versions.iter().find(|v| !wanted.is_empty() && v.version == wanted) {
        return Ok(exact);
    }
    let range = if wanted.is_empty() { "*" } else { wanted };
    let constraints = Constraints::parse(range).map_err(|e| e.to_string())?;
    let parsed = |v: &'a ListedVersion| {
        let version = strict_enough(&v.version)?;
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
        .ok_or_else(|| format!("no '{name}' chart with version matching '{wanted}' found"))
}

/// One or two numbers are no version here, though the parser would take them.
pub(super) fn strict_enough(text: &str) -> Option<Version> {
    Version::parse(text).ok().filter(|_| text.split('.').count() >= 3)
}

/// Gets a chart of a repository, packaging it anew only where something is changed.
pub(super) async fn build(
    charts: &Charts,
    name: &str,
    version: &str,
    options: &BuildOptions,
    limits: HelmLimits,
    verification: &Verification,
) -> Result<Build, BuildError> {
    check_name(name)?;
    let chosen = charts.choose(name, version).await.map_err(|why| {
        let (reason, problem) = match why {
            NoVersion::Reference(problem) => (Reason::Reference, problem),
            NoVersion::External(problem) => (Reason::Pull, problem),
        };
        BuildError::new(reason, format!("failed to get chart version for remote reference: {problem}"))
    })?;
    let verified = verification.check(charts, &chosen).await?;
    let version = options.version(&chosen.version)?;
    let packaged = options.needs_packaging();
    if let Some(build) = options.kept(&chosen.name, &version, packaged) {
        return Ok(Build { verified, ..build });
    }
    let archive = charts.download(&chosen).await.map_err(|problem| {
        BuildError::new(Reason::Pull, format!("failed to download chart for remote reference: {problem}"))
    })?;
    let options = options.clone();
    let made = blocking(move || {
        if packaged {
            repackage(&archive, &version, &options, limits)
        } else {
            keep(archive, &chosen, &version, limits)
        }
    });
    let build = made.await.map_err(|f| BuildError::new(Reason::Package, f.message))??;
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

/// The bytes as they came, when they are a chart.
fn keep(archive: Vec<u8>, chosen: &Chosen, version: &str, limits: HelmLimits) -> Result<Build, BuildError> {
    let unusable = |problem: String| {
        BuildError::new(Reason::Pull, format!("failed to load chart metadata from written chart: {problem}"))
    };
    if archive.len() as u64 > limits.chart {
        return Err(unusable(format!(
            "size of chart '{}' exceeds '{}' bytes limit",
            chosen.name, limits.chart
        )));
    }
    // Only the metadata: what else is wrong with a chart is found by who renders it.
    let mut metadata =
        fl_helm::archive_metadata(&archive, archive_limits(limits)).map_err(|e| unusable(e.to_string()))?;
    metadata.validate().map_err(|e| {
        BuildError::new(Reason::Pull, format!("failed to validate metadata of written chart: {e}"))
    })?;
    Ok(Build {
        name: chosen.name.clone(),
        version: version.to_owned(),
        archive: Some(archive),
        values_files: Vec::new(),
        resolved_dependencies: 0,
        packaged: false,
        verified: false,
    })
}

/// The chart with another version and other values.
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

/// The named values files of the chart, one over the other.
fn merge(chart: &Chart, options: &BuildOptions) -> Result<(Tree, Vec<String>), String> {
    let mut merged = Tree::Map(Vec::new());
    let mut used = Vec::new();
    for path in &options.values_files {
        let name = crate::tree::clean(path);
        if name == "values.yaml" && !path.starts_with('/') {
            merged = fl_helm::merge_values(merged, &chart.values);
            used.push(path.clone());
            continue;
        }
        // Names in a chart never begin with a slash, so a path that does names none.
        let Some(file) = chart.files.iter().find(|f| !path.starts_with('/') && f.name == name) else {
            if options.ignore_missing {
                continue;
            }
            return Err(format!("no values file found at path '{path}'"));
        };
        let values = fl_helm::values_from_yaml(file.data.read().map_err(|e| e.to_string())?.as_bytes())
            .map_err(|e| format!("unmarshaling values from '{path}' failed: {e}"))?;
        merged = fl_helm::merge_values(merged, &values);
        used.push(path.clone());
    }
    Ok((merged, used))
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
    fn the_version_that_is_meant() {
        let versions = [
            listed("1.0.0", ""),
            listed("1.5.0+a", "2024-01-02T00:00:00Z"),
            listed("1.5.0+b", "2024-01-01T00:00:00Z"),
            listed("2.0.0-rc.1", ""),
            listed("3", ""),
        ];
        let pick = |wanted: &str| best(&versions, "app", wanted).map(|v| v.version.as_str());
        assert_eq!(pick("*"), Ok("1.5.0+a"));
        assert_eq!(pick(""), Ok("1.5.0+a"));
        assert_eq!(pick("3"), Ok("3"), "an exact text wins");
        assert_eq!(pick(">=1.0.0-0"), Ok("2.0.0-rc.1"));
        assert_eq!(pick("9.x"), Err("no 'app' chart with version matching '9.x' found".to_owned()));
        assert_eq!(best(&[], "app", "*").unwrap_err(), "no chart version found");
    }

    #[test]
    fn names() {
        for good in ["app", "a-b/c.d", "x1"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in ["", "App", "../x", "a//b", "a b", "a_b"] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }
}
