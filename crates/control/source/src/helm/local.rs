//! Charts of a source tree: a directory that is packaged, or an archive.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::Mutex;

use fl_helm::{Entry, Files, JsonValue as Values, Kind};

use super::HelmLimits;
use super::build::{Build, BuildError, BuildOptions, Reason};
use super::remote::{archive_limits, loader};
use crate::tree::{Node, TarTree, Tree, clean, confined};

/// A source tree that several readers can share.
pub(super) struct SourceTree {
    nodes: BTreeMap<String, Node>,
    tree: Mutex<TarTree>,
    /// The path of its root in messages.
    pub(super) shown: String,
}

impl std::fmt::Debug for SourceTree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SourceTree({} entries)", self.nodes.len())
    }
}

impl SourceTree {
    pub(super) fn new(tree: TarTree, shown: String) -> Self {
        Self { nodes: tree.paths().into_iter().collect(), tree: Mutex::new(tree), shown }
    }

    pub(super) fn node(&self, path: &str) -> Option<Node> {
        if path.is_empty() { Some(Node::Directory) } else { self.nodes.get(path).copied() }
    }

    pub(super) fn read(&self, path: &str, limit: u64) -> io::Result<Vec<u8>> {
        let mut tree = self.tree.lock().map_err(|_| io::Error::other("another reader failed"))?;
        let (size, content) = tree.open(path)?;
        if size > limit {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("{path} is larger than {limit} bytes"),
            ));
        }
        let mut data = Vec::new();
        content.take(limit).read_to_end(&mut data)?;
        Ok(data)
    }

    /// One directory of the tree.
    pub(super) fn at<'a>(&'a self, path: &str) -> Directory<'a> {
        Directory { source: self, root: path.to_owned() }
    }

    /// Go's message for a path that does not exist.
    fn missing(&self, action: &str, path: &str) -> String {
        format!("{action} {}/{path}: no such file or directory", self.shown)
    }
}

/// A directory of a source tree, as a chart is read from it.
pub(super) struct Directory<'a> {
    source: &'a SourceTree,
    root: String,
}

impl Directory<'_> {
    fn path(&self, inside: &str) -> String {
        match (self.root.is_empty(), inside.is_empty()) {
            (true, _) => inside.to_owned(),
            (_, true) => self.root.clone(),
            _ => format!("{}/{inside}", self.root),
        }
    }
}

impl Files for Directory<'_> {
    fn list(&self, directory: &str) -> io::Result<Vec<Entry>> {
        let path = self.path(directory);
        let below = if path.is_empty() { String::new() } else { format!("{path}/") };
        let mut entries = Vec::new();
        let from = below.clone();
        for (found, node) in self.source.nodes.range(from..).take_while(|(p, _)| p.starts_with(&below)) {
            let name = &found[below.len()..];
            if name.is_empty() || name.contains('/') {
                continue;
            }
            let kind = match node {
                Node::Directory => Kind::Directory,
                // The size is checked when it is read.
                Node::File { .. } => Kind::File(0),
            };
            entries.push(Entry { name: name.to_owned(), kind, link: None });
        }
        Ok(entries)
    }

    fn read(&self, path: &str, limit: u64) -> io::Result<Vec<u8>> {
        self.source.read(&self.path(path), limit)
    }

    fn shown(&self, path: &str) -> String {
        format!("{}/{}", self.source.shown, self.path(path))
    }
}

/// A chart of the source that is to be packaged.
pub(super) struct LoadedChart {
    pub(super) chart: fl_helm::Chart,
    /// Where its directory is; `None` for an archive.
    pub(super) directory: Option<String>,
    values_files: Vec<String>,
}

/// What a source tree has for a chart.
pub(super) enum LocalChart {
    /// Nothing has to be packaged.
    Complete(Build),
    Loaded(Box<LoadedChart>),
}

/// Finds the chart and loads it, unless storage has it.
pub(super) fn load(
    source: &SourceTree,
    path: &str,
    options: &BuildOptions,
    limits: HelmLimits,
) -> Result<LocalChart, BuildError> {
    let wrong = |problem: String| BuildError::new(Reason::Reference, problem);
    if path.is_empty() {
        return Err(wrong("no path set for local chart reference".to_owned()));
    }
    if path.starts_with('/') {
        return Err(wrong("local chart reference path is expected to be relative".to_owned()));
    }
    let place = confined(path);
    let is_directory = match source.node(&place) {
        None => return Err(wrong(source.missing("stat", &place))),
        Some(Node::Directory) => true,
        Some(Node::File { .. }) => false,
    };
    let archive = if is_directory {
        Vec::new()
    } else {
        source.read(&place, limits.chart).map_err(|e| wrong(e.to_string()))?
    };
    let mut metadata = if is_directory {
        if source.node(&join(&place, "Chart.yaml")).is_none() {
            return Err(wrong(source.missing("open", &join(&place, "Chart.yaml"))));
        }
        fl_helm::chart_metadata(&source.at(&place)).map_err(|e| wrong(e.to_string()))?
    } else {
        fl_helm::archive_metadata(&archive, archive_limits(limits)).map_err(|e| wrong(e.to_string()))?
    };
    metadata.validate().map_err(|e| wrong(e.to_string()))?;
    let version = options.version(&metadata.version)?;
    let packaged = is_directory || options.needs_packaging();
    if let Some(build) = options.cached_build(&metadata.name, &version, packaged) {
        return Ok(LocalChart::Complete(build));
    }
    if !packaged {
        return Ok(LocalChart::Complete(Build {
            name: metadata.name,
            version,
            archive: Some(archive),
            values_files: Vec::new(),
            resolved_dependencies: 0,
            packaged: false,
            verified: false,
        }));
    }
    let merged = if options.merged_files().is_empty() { None } else { Some(merge(source, options)?) };
    let loaded = if is_directory {
        loader(limits).directory(&source.at(&place))
    } else {
        loader(limits).archive(&archive)
    };
    let mut chart = loaded.map_err(|e| {
        let from = if place.is_empty() { "/".to_owned() } else { format!("/{place}/") };
        let place = if is_directory { format!("failed to load chart from {from}: ") } else { String::new() };
        BuildError::new(Reason::Package, format!("{place}{e}"))
    })?;
    chart.metadata.version = version;
    let mut values_files = Vec::new();
    if let Some((values, used)) = merged
        && chart.set_default_values(values).map_err(|e| BuildError::new(Reason::Values, e.to_string()))?
    {
        values_files = used;
    }
    Ok(LocalChart::Loaded(Box::new(LoadedChart {
        chart,
        directory: is_directory.then_some(place),
        values_files,
    })))
}

/// Packages a chart whose dependencies are complete.
pub(super) fn package(loaded: LoadedChart, resolved: usize) -> Result<Build, BuildError> {
    let LoadedChart { chart, values_files, .. } = loaded;
    let archive = fl_helm::package(&chart).map_err(|e| BuildError::new(Reason::Package, e.to_string()))?;
    Ok(Build {
        name: chart.metadata.name,
        version: chart.metadata.version,
        archive: Some(archive),
        values_files,
        resolved_dependencies: resolved,
        packaged: true,
        verified: false,
    })
}

/// Merges the named values files of the source, later ones over earlier ones. Paths are relative to the root of the source.
fn merge(source: &SourceTree, options: &BuildOptions) -> Result<(Values, Vec<String>), BuildError> {
    let failed = |problem: String| BuildError::new(Reason::Values, problem);
    let mut merged = Values::Map(Vec::new());
    let mut used = Vec::new();
    for path in &options.values_files {
        let place = confined(path);
        match source.node(&place) {
            Some(Node::File { .. }) => {}
            None if options.ignore_missing => continue,
            _ => {
                return Err(failed(format!(
                    "no values file found at path '/{}' (reference '{path}')",
                    clean(&place)
                )));
            }
        }
        let data = source
            .read(&place, 5 << 20)
            .map_err(|e| failed(format!("could not read values from file '{path}': {e}")))?;
        let values = fl_helm::values_from_yaml(&data)
            .map_err(|e| failed(format!("unmarshaling values from '{path}' failed: {e}")))?;
        merged = fl_helm::merge_values(merged, &values);
        used.push(path.clone());
    }
    Ok((merged, used))
}

pub(super) fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}
