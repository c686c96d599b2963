//! The build: from a directory with a kustomization to the objects it describes.

mod charts;
mod crds;
mod origin;
mod plugin;
mod remote;
mod session;
mod target;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fl_yaml::{Dialect, Node};

pub use charts::{ChartRelease, ChartSource, Charts};
pub use remote::{Fetcher, Repository};

use crate::error::{Error, ErrorKind, Place, PrintError, Result};
use crate::files::Files;
use crate::resmap::ResMap;
use crate::resource::{BUILD_ANNOTATIONS, Resource};
use crate::transform::{hash, labels, name_reference, sort, variable};
use crate::tree;
use session::{Root, Session};
use target::{Accumulator, Target};

/// The files that a kustomization may read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LoadRestrictor {
    /// Only those in or below its own directory.
    #[default]
    RootOnly,
    /// Any file inside of [`Options::boundary`].
    None,
}

/// The order of the output, unless the kustomization sets it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reorder {
    /// By kind, then by name.
    #[default]
    Legacy,
    /// In the order of accumulation, as Flux applies it.
    None,
}

/// Options of a build.
#[derive(Default)]
pub struct Options<'a> {
    /// The files that a kustomization may read.
    pub load_restrictor: LoadRestrictor,
    /// The order of the output.
    pub reorder: Reorder,
    /// A directory that must not be left, independent of the restrictor: the root of an artifact.
    pub boundary: Option<PathBuf>,
    /// Fetches remote content; without it, remote content is rejected.
    pub fetcher: Option<&'a dyn Fetcher>,
    /// Renders `helmCharts`; without it, they are rejected.
    pub charts: Option<&'a dyn Charts>,
    /// Whether to add the label with the name of the tool to every object.
    pub managed_by_label: bool,
    /// Maximum nesting of kustomizations; 128 by default. Larger values need a larger stack: 32 KiB per
    /// level.
    pub max_depth: Option<usize>,
}

impl std::fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("load_restrictor", &self.load_restrictor)
            .field("reorder", &self.reorder)
            .field("boundary", &self.boundary)
            .field("fetcher", &self.fetcher.is_some())
            .field("charts", &self.charts.is_some())
            .field("managed_by_label", &self.managed_by_label)
            .field("max_depth", &self.max_depth)
            .finish()
    }
}

/// The result of a build.
#[derive(Debug)]
pub struct Output {
    /// The objects in their final order.
    pub objects: Vec<Node>,
    /// Every file that was read, with links resolved, and every directory that was searched. Only changes of
    /// these can change the result.
    pub reads: BTreeSet<PathBuf>,
    /// Warnings about the kustomizations: deprecated fields, unused variables.
    pub warnings: Vec<String>,
}

impl Output {
    /// The objects as kustomize prints them.
    ///
    /// # Errors
    /// An object has a value that JSON cannot represent.
    pub fn to_yaml(&self) -> std::result::Result<String, PrintError> {
        let mut out = String::new();
        for (i, object) in self.objects.iter().enumerate() {
            if i > 0 {
                out.push_str("---\n");
            }
            fl_yaml::write_sigs_yaml(&mut out, object, Dialect::V3).map_err(|error| PrintError {
                kind: object.get("kind").map(tree::text).unwrap_or_default().to_owned(),
                name: tree::metadata_text(object, "name").to_owned(),
                error,
            })?;
        }
        Ok(out)
    }
}

/// The label with the name of the tool, and the version whose output this engine matches.
const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "kustomize-v5.8.1");

/// Builds the kustomization in a directory.
///
/// # Errors
/// The first error, with the kustomization file and line.
pub fn build(files: &dyn Files, directory: &Path, options: &Options<'_>) -> Result<Output> {
    let mut session = Session::new(files, options);
    let root = session.root(directory)?;
    let target = Target::load(&mut session, &root)?;
    let kustomization = target.kustomization.clone();
    session.choose_schema(&root, &target, true)?;
    let place = target.place.clone();
    let mut done = target.build(&mut session, Accumulator::default())?;
    finish(&mut session, &mut done).map_err(|kind| Error::new(place.clone(), kind))?;
    let map = &mut done.map;
    if kustomization.sort_options.is_some() || options.reorder == Reorder::Legacy {
        sort::sort(map, kustomization.sort_options.as_ref()).map_err(|kind| {
            let at = kustomization.sort_options.as_ref().map_or((0, 0), |o| o.at);
            Error::new(place.at(at), kind)
        })?;
    }
    let metadata = |word: &str| kustomization.build_metadata.iter().any(|m| m == word);
    if options.managed_by_label || metadata("managedByLabel") {
        let spec = crate::config::FieldSpec::everywhere("metadata/labels", true);
        labels::set(map, "LabelTransformer", &[(MANAGED_BY.0.into(), MANAGED_BY.1.into())], &[spec])
            .map_err(|kind| Error::new(place.clone(), kind))?;
    }
    let keep = KeptAnnotations {
        origin: metadata("originAnnotations"),
        transformations: metadata("transformerAnnotations"),
    };
    let list = std::mem::take(map).into_list();
    Ok(Output {
        objects: list.into_iter().map(|resource| without_build_annotations(resource, keep)).collect(),
        reads: std::mem::take(&mut session.reads),
        warnings: std::mem::take(&mut session.warnings),
    })
}

/// Steps that run once, after all kustomizations: hashes, references, variables, local objects.
fn finish(session: &mut Session<'_>, done: &mut Accumulator) -> std::result::Result<(), ErrorKind> {
    hash::add(&mut done.map, &mut session.schemas)?;
    name_reference::update(&mut done.map, &done.config.name_reference)?;
    let unused = variable::resolve(&mut done.map, &done.variables, &done.config.var_reference)?;
    if !unused.is_empty() {
        session.warnings.push(format!("well-defined vars that were never replaced: {}", unused.join(",")));
    }
    drop_local(&mut done.map);
    Ok(())
}

/// Removes objects that are only used by the build.
fn drop_local(map: &mut ResMap) {
    let is_local = |resource: &Resource| {
        tree::metadata_pair(&resource.node, "annotations", "config.kubernetes.io/local-config")
            .is_some_and(|value| value != "false")
    };
    if map.list().iter().any(is_local) {
        map.retain(|resource| !is_local(resource));
    }
}

#[derive(Clone, Copy)]
struct KeptAnnotations {
    origin: bool,
    transformations: bool,
}

/// The object without annotations of the build; all annotations become strings.
fn without_build_annotations(resource: Resource, keep: KeptAnnotations) -> Node {
    let mut node = resource.node;
    let pairs = tree::metadata_pairs(&node, "annotations")
        .filter(|(key, _)| {
            !BUILD_ANNOTATIONS.contains(key)
                && (keep.origin || *key != origin::ORIGIN)
                && (keep.transformations || *key != origin::TRANSFORMATIONS)
        })
        .map(|(key, value)| (key.into(), value.into()))
        .collect();
    tree::set_metadata_pairs(&mut node, "annotations", pairs);
    node
}

/// The location of a root before its file is known.
fn directory_place(root: &Root) -> Place {
    Place::file(root.dir.display().to_string())
}
