//! A build: from a directory with a kustomization to the objects it describes.

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

use crate::error::{Error, ErrorKind, Place, Result};
use crate::files::Files;
use crate::resmap::ResMap;
use crate::resource::{BUILD_ANNOTATIONS, Resource};
use crate::transform::{hash, name_reference, pairs, sort, variable};
use crate::tree;
use session::{Root, Session};
use target::{Accumulator, Target};

/// Which files a kustomization may read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LoadRestrictor {
    /// Only those in or below its own directory.
    #[default]
    RootOnly,
    /// Any, but never outside of [`Options::boundary`].
    None,
}

/// The order of the output when the kustomization names none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reorder {
    /// By kind, then by name.
    #[default]
    Legacy,
    /// In the order of accumulation, as Flux applies it.
    None,
}

/// How to build.
#[derive(Default)]
pub struct Options<'a> {
    /// Which files a kustomization may read.
    pub load_restrictor: LoadRestrictor,
    /// The order of the output.
    pub reorder: Reorder,
    /// A directory that nothing may leave, whatever the restrictor says: the root of an artifact.
    pub boundary: Option<PathBuf>,
    /// Fetches content from other machines; without one, remote content is refused.
    pub fetcher: Option<&'a dyn Fetcher>,
    /// Renders `helmCharts`; without one they are refused.
    pub charts: Option<&'a dyn Charts>,
    /// Add the label that names the tool to every object.
    pub managed_by_label: bool,
    /// How deep kustomizations may nest; 128 by default. More needs a thread with more stack: allow 32 KiB a level.
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

/// What a build made.
#[derive(Debug)]
pub struct Output {
    /// The objects in their final order.
    pub objects: Vec<Node>,
    /// Every file that was read, links resolved, and every directory looked into. A change elsewhere changes nothing here.
    pub reads: BTreeSet<PathBuf>,
    /// What the kustomizations should change: deprecated fields, variables without use.
    pub warnings: Vec<String>,
}

impl Output {
    /// The objects as kustomize prints them.
    ///
    /// # Errors
    /// An object holds something that JSON cannot.
    pub fn to_yaml(&self) -> std::result::Result<String, String> {
        let mut out = String::new();
        for (i, object) in self.objects.iter().enumerate() {
            if i > 0 {
                out.push_str("---\n");
            }
            fl_yaml::write_sigs_yaml(&mut out, object, Dialect::V3).map_err(|e| {
                let kind = object.get("kind").map(tree::text).unwrap_or_default();
                format!("cannot write {kind}/{}: {e}", tree::metadata_text(object, "name"))
            })?;
        }
        Ok(out)
    }
}

/// The label that names the tool, and the version whose output this engine matches.
const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "kustomize-v5.8.1");

/// Builds the kustomization in a directory.
///
/// # Errors
/// The first thing that is wrong; the error names the kustomization file and line.
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
        pairs::set(map, "LabelTransformer", &[(MANAGED_BY.0.into(), MANAGED_BY.1.into())], &[spec])
            .map_err(|kind| Error::new(place.clone(), kind))?;
    }
    let keep =
        Keep { origin: metadata("originAnnotations"), transformations: metadata("transformerAnnotations") };
    let list = std::mem::take(map).into_list();
    Ok(Output {
        objects: list.into_iter().map(|resource| bare(resource, keep)).collect(),
        reads: std::mem::take(&mut session.reads),
        warnings: std::mem::take(&mut session.warnings),
    })
}

/// What is done once, after all kustomizations: hashes, references, variables, local objects.
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

/// Objects that only serve the build do not leave it.
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
struct Keep {
    origin: bool,
    transformations: bool,
}

/// The object without the notes of the build; all annotations are strings then.
fn bare(resource: Resource, keep: Keep) -> Node {
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

/// The place of a root before its file is known.
fn directory_place(root: &Root) -> Place {
    Place::file(root.dir.display().to_string())
}
