//! `helmCharts` of a kustomization. The engine decides what to render; the caller of the build provides Helm.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use fl_yaml::{Dialect, Node};

use super::session::Session;
use super::target::Target;
use crate::decode::Located;
use crate::error::{Error, ErrorKind, HostError, Result};
use crate::files::clean;
use crate::input::{Purpose, read_objects};
use crate::kustomization::HelmChart;
use crate::resource::Resource;
use crate::tree;

/// Marks objects of a chart: their namespace is set by the chart, not by the transformer.
const GENERATED: &str = "internal.config.kubernetes.io/helm-generated";
const DEFAULT_HOME: &str = "charts";

/// A chart in a repository.
#[derive(Debug, Clone, Copy)]
pub struct ChartSource<'a> {
    /// The name of the chart.
    pub name: &'a str,
    /// The URL of the repository: `https://…` or `oci://…`.
    pub repository: &'a str,
    /// A version or range; empty for the latest.
    pub version: &'a str,
    /// Whether pre-release versions are considered.
    pub devel: bool,
}

/// Arguments of `helm template`.
#[derive(Debug)]
pub struct ChartRelease<'a> {
    /// The chart's directory.
    pub directory: &'a Path,
    /// Name of the release; empty to generate one.
    pub name: &'a str,
    /// A template for the name; empty for none.
    pub name_template: &'a str,
    /// Namespace of the release; empty for the default.
    pub namespace: &'a str,
    /// Values files in order: the name for messages, and the content.
    pub values: &'a [(String, Rc<[u8]>)],
    /// Additional API versions for `.Capabilities`.
    pub api_versions: &'a [String],
    /// The Kubernetes version; empty for the default.
    pub kube_version: &'a str,
    /// Whether to include CRDs.
    pub include_crds: bool,
    /// Whether to omit test hooks.
    pub skip_tests: bool,
    /// Whether to omit hooks.
    pub skip_hooks: bool,
}

/// A Helm engine for `helmCharts`, implemented by the caller.
pub trait Charts {
    /// Downloads a chart to a directory of its name below `home`.
    ///
    /// # Errors
    /// The chart cannot be downloaded or unpacked.
    fn pull(&self, chart: ChartSource<'_>, home: &Path) -> std::result::Result<(), HostError>;

    /// The manifests as `helm template` prints them.
    ///
    /// # Errors
    /// The chart or its values are invalid.
    fn render(&self, release: &ChartRelease<'_>) -> std::result::Result<String, HostError>;
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ValuesMerge {
    /// Inline values override the file.
    Override,
    /// The file overrides inline values.
    Merge,
    /// Only the inline values.
    Replace,
}

/// The objects of a chart.
pub(super) fn inflate(
    session: &mut Session<'_>,
    target: &Target,
    chart: &HelmChart,
) -> Result<Vec<Resource>> {
    let refused = |what: &str| Error::new(target.place.at(chart.at), ErrorKind::Denied(what.to_owned()));
    let invalid = |reason: String| {
        let what = format!("chart `{}`", chart.name);
        Error::new(target.place.at(chart.at), ErrorKind::Invalid { what, reason })
    };
    let Some(charts) = session.options.charts else {
        return Err(refused("must specify --enable-helm: charts are inflated only when that is asked for"));
    };
    if chart.name.is_empty() {
        return Err(invalid("chart name cannot be empty".to_owned()));
    }
    if Path::new(&chart.name).components().any(|c| !matches!(c, std::path::Component::Normal(_))) {
        return Err(invalid("the name leads out of the folder of charts".to_owned()));
    }
    let how = match chart.values_merge.as_str() {
        "" | "override" => ValuesMerge::Override,
        "merge" => ValuesMerge::Merge,
        "replace" => ValuesMerge::Replace,
        _ => return Err(invalid("valuesMerge must be one of [merge override replace]".to_owned())),
    };
    let home = home(target, chart);
    let directory = home.join(&chart.name);
    let there = |session: &Session<'_>| session.files.resolve(&directory).is_ok_and(|(_, is_dir)| is_dir);
    if !there(session) {
        if chart.repo.is_empty() {
            let place = directory.display();
            return Err(invalid(format!("no repo specified for pull, no chart found at '{place}'")));
        }
        let source = ChartSource {
            name: &chart.name,
            repository: &chart.repo,
            version: &chart.version,
            devel: chart.devel,
        };
        charts.pull(source, &home).map_err(|error| invalid(error.to_string()))?;
    }
    let (resolved, _) = session.files.resolve(&directory).map_err(|e| invalid(e.to_string()))?;
    session.within(&target.root, &resolved).map_err(|kind| Error::new(target.place.at(chart.at), kind))?;
    session.reads.insert(resolved.clone());
    let values = values(session, target, chart, how, &directory)?;
    let text = charts
        .render(&ChartRelease {
            directory: &resolved,
            name: &chart.release_name,
            name_template: &chart.name_template,
            namespace: &chart.namespace,
            values: &values,
            api_versions: &chart.api_versions,
            kube_version: &chart.kube_version,
            include_crds: chart.include_crds,
            skip_tests: chart.skip_tests,
            skip_hooks: chart.skip_hooks,
        })
        .map_err(|error| invalid(error.to_string()))?;
    let nodes = read_objects(text.as_bytes(), Purpose::Objects)
        .map_err(|e| invalid(format!("what it rendered is not a list of objects: {}", e.message())))?;
    let mut objects = Vec::with_capacity(nodes.len());
    for mut node in nodes {
        let mut pairs: Vec<_> = tree::metadata_pairs(&node, "annotations")
            .filter(|(key, _)| *key != GENERATED)
            .map(|(key, value)| (key.into(), value.into()))
            .collect();
        pairs.push((GENERATED.into(), "true".into()));
        tree::set_metadata_pairs(&mut node, "annotations", pairs);
        objects.push(Resource::new(node, &mut session.schemas));
    }
    Ok(objects)
}

/// The parent of the chart's directory. Versions of a downloaded chart have separate ones.
fn home(target: &Target, chart: &HelmChart) -> PathBuf {
    let home = if chart.home.is_empty() { DEFAULT_HOME } else { &chart.home };
    let home = clean(&target.root.dir.join(home));
    if chart.version.is_empty() || chart.repo.is_empty() {
        return home;
    }
    home.join(format!("{}-{}", chart.name, chart.version))
}

/// The values files of the release: that of the chart or a given one with the inline values merged, then the
/// additional ones.
fn values(
    session: &mut Session<'_>,
    target: &Target,
    chart: &HelmChart,
    how: ValuesMerge,
    directory: &Path,
) -> Result<Vec<(String, Rc<[u8]>)>> {
    let file = if chart.values_file.is_empty() {
        directory.join("values.yaml").display().to_string()
    } else {
        chart.values_file.clone()
    };
    let file = Located { value: file, at: chart.at };
    let inline = chart.values_inline.as_ref().filter(|node| !tree::is_nil_or_empty(node));
    let first: Rc<[u8]> = match inline {
        None => session.load_entry(target, &file)?.1,
        Some(inline) => {
            let merged = merged(session, target, &file, inline, how)?;
            let text = fl_yaml::to_sigs_yaml(&merged, Dialect::V3)
                .map_err(|e| Error::new(target.place.at(chart.at), ErrorKind::Yaml(e.to_string())))?;
            text.into_bytes().into()
        }
    };
    let mut files = vec![(file.value, first)];
    for entry in &chart.additional_values_files {
        files.push((entry.value.clone(), session.load_entry(target, entry)?.1));
    }
    Ok(files)
}

fn merged(
    session: &mut Session<'_>,
    target: &Target,
    file: &Located<String>,
    inline: &Node,
    how: ValuesMerge,
) -> Result<Node> {
    let failed = |reason: String| {
        let what = "valuesInline".to_owned();
        Error::new(target.place.at(file.at), ErrorKind::Invalid { what, reason })
    };
    let mut inline = inline.clone();
    tree::rewrite(&mut inline, Dialect::Sigs).map_err(|error| failed(error.to_string()))?;
    if how == ValuesMerge::Replace {
        return Ok(inline);
    }
    let (path, content) = session.load_entry(target, file)?;
    let (own, _) = target.parse_one(&path, &content, file)?;
    let (under, over) = if how == ValuesMerge::Override { (own, inline) } else { (inline, own) };
    let merged = crate::merge::merge(under, over, &mut session.schemas).map_err(|e| failed(e.to_string()))?;
    Ok(merged.unwrap_or_else(Node::map))
}
