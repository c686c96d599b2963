//! Rendering: from a loaded chart and user values to a release.

mod capabilities;
mod chart_object;
mod files;
mod glob;
mod template_error;
mod template_values;

use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use fl_gotemplate::{Functions, Limits, Map, MissingKey, Str, TemplateSet, Value};
use fl_sprig::{Host, HostContext, Mode};

use crate::capabilities::Capabilities;
use crate::chart::Chart;
use crate::chart::background_parse::ParsedTemplates;
use crate::dependencies::{ChartGraph, in_range};
use crate::error::{Error, LoadError};
use crate::release::{Crd, HELM_4_INSTALL_ORDER, INSTALL_ORDER, ManifestParser, PostRender, Release, Split};
use crate::values::{Coalescer, Overrides, schema};
use template_values::{Renderable, TemplateValues, VALUES_TYPE};

/// The release to render.
#[derive(Debug, Clone)]
pub struct ReleaseOptions {
    /// Release name.
    pub name: String,
    /// Release namespace.
    pub namespace: String,
    /// Revision number.
    pub revision: i64,
    /// Whether this is an upgrade.
    pub is_upgrade: bool,
}

/// Major version of Helm whose behaviour is matched: 3 as the command, 4 as the library in Flux.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Generation {
    Helm3,
    Helm4,
}

/// Options of a render.
#[derive(Clone)]
pub struct RenderOptions {
    /// The release.
    pub release: ReleaseOptions,
    /// Capabilities of the cluster.
    pub capabilities: Capabilities,
    /// Limits for all templates together.
    pub limits: Limits,
    /// Clock, randomness and cluster access.
    pub host: Rc<dyn Host>,
    /// Skip validation with `values.schema.json`.
    pub skip_schema: bool,
    /// Include the notes of subcharts.
    pub subchart_notes: bool,
}

impl fmt::Debug for RenderOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RenderOptions").field("release", &self.release).finish_non_exhaustive()
    }
}

/// Output of the templates by file, and the rest of the release.
#[derive(Debug, Clone, Default)]
pub struct RenderedFiles {
    /// Path and text of every template except partials and notes.
    pub files: Vec<(String, String)>,
    /// Notes, CRDs and the like, without manifests and hooks.
    pub release: Release,
}

impl RenderedFiles {
    /// Sorts the files into manifests and hooks, as Helm 4 does.
    pub fn sorted(self) -> Result<Release, Error> {
        let Self { files, mut release } = self;
        let mut reader = ManifestParser::new(Split::Helm4);
        files.into_iter().for_each(|(path, text)| reader.add(path, text));
        release.sort_files(reader.finish(), HELM_4_INSTALL_ORDER)?;
        Ok(release)
    }
}

/// Compiled template sets kept per chart: one for each combination of enabled subcharts.
const MAX_COMPILED_SETS: usize = 8;

/// A chart whose templates are parsed once and can be rendered many times, from any thread.
#[derive(Debug)]
pub struct CompiledChart {
    chart: Chart,
    sets: Mutex<HashMap<SetKey, Arc<TemplateSet>>>,
    /// Templates that were parsed while the chart was loaded.
    parsed: Mutex<Option<ParsedTemplates>>,
}

/// Helm generation and the names of the templates of a set.
type SetKey = (Generation, Vec<String>);

fn all_functions(helm: Generation) -> &'static Arc<Functions> {
    static FUNCTIONS: OnceLock<Arc<Functions>> = OnceLock::new();
    static FUNCTIONS_4: OnceLock<Arc<Functions>> = OnceLock::new();
    match helm {
        Generation::Helm3 => FUNCTIONS.get_or_init(|| Arc::new(fl_sprig::functions())),
        Generation::Helm4 => FUNCTIONS_4.get_or_init(|| Arc::new(fl_sprig::functions_of_helm_4())),
    }
}

/// A set with all template functions and no templates.
pub(crate) fn empty_set() -> TemplateSet {
    set_of(Generation::Helm3)
}

fn set_of(helm: Generation) -> TemplateSet {
    let mut set = TemplateSet::new(Arc::clone(all_functions(helm)));
    set.set_missing_key(MissingKey::Zero);
    set
}

impl CompiledChart {
    /// Creates a compiled chart. Templates are parsed when first needed, since the values decide which ones
    /// are used.
    pub fn new(chart: Chart) -> Self {
        Self::with_parsed(chart, ParsedTemplates::empty())
    }

    /// Creates a compiled chart whose templates were parsed while it was loaded.
    pub(crate) fn with_parsed(chart: Chart, parsed: ParsedTemplates) -> Self {
        Self { chart, sets: Mutex::default(), parsed: Mutex::new(Some(parsed)) }
    }

    /// The chart.
    pub fn chart(&self) -> &Chart {
        &self.chart
    }

    /// Renders the chart and applies the post-renderer, if any.
    pub fn render(
        &self,
        values: &Overrides,
        options: &RenderOptions,
        post_render: Option<&dyn PostRender>,
    ) -> Result<Release, Error> {
        check_installable(&self.chart)?;
        let mut reader = ManifestParser::new(Split::Helm3);
        let mut release =
            self.render_each(values, options, Generation::Helm3, &mut |path, text| reader.add(path, text))?;
        release.sort_files(reader.finish(), INSTALL_ORDER)?;
        if let Some(post_render) = post_render {
            release.post_render(post_render)?;
        }
        Ok(release)
    }

    /// Renders the chart's files without splitting them into manifests.
    pub fn render_files(&self, values: &Overrides, options: &RenderOptions) -> Result<RenderedFiles, Error> {
        check_installable(&self.chart)?;
        self.files(values, options, Generation::Helm3)
    }

    /// Renders the chart's files as Helm 4's actions do, which pass them to post-renderers. Library charts
    /// and missing subcharts are allowed: only the commands reject them.
    pub fn render_for_action(
        &self,
        values: &Overrides,
        options: &RenderOptions,
    ) -> Result<RenderedFiles, Error> {
        self.files(values, options, Generation::Helm4).map_err(template_error::with_call_chain)
    }

    fn files(
        &self,
        values: &Overrides,
        options: &RenderOptions,
        helm: Generation,
    ) -> Result<RenderedFiles, Error> {
        let mut files = Vec::new();
        let release = self.render_each(values, options, helm, &mut |path, text| files.push((path, text)))?;
        Ok(RenderedFiles { files, release })
    }

    /// Renders the chart and calls `file` with the path and text of each file; returns the rest of the
    /// release.
    fn render_each(
        &self,
        values: &Overrides,
        options: &RenderOptions,
        helm: Generation,
        file: &mut dyn FnMut(String, String),
    ) -> Result<Release, Error> {
        let chart = &self.chart;
        check_release_name(&options.release.name)?;
        let mut release = Release::default();
        let graph = ChartGraph::new(chart, values.table(), &mut release.warnings)?;
        let computed =
            Coalescer::coalescing(&graph, &mut release.warnings).run(ChartGraph::ROOT, values.table())?;
        if !options.skip_schema {
            schema::validate(&graph, ChartGraph::ROOT, &computed, &mut release.warnings)?;
        }
        let wanted = &chart.metadata.kube_version;
        let version = &options.capabilities.kube_version.version;
        if !wanted.is_empty() && !in_range(wanted, version) {
            return Err(Error::KubeVersion { wanted: wanted.clone(), version: version.clone() });
        }
        let root_notes = format!("{}/templates/NOTES.txt", chart.name());
        self.execute(&graph, &computed, options, helm, &mut |path, text| {
            if !path.ends_with("NOTES.txt") {
                file(path, text);
            } else if options.subchart_notes || path == root_notes {
                if !release.notes.is_empty() {
                    release.notes.push('\n');
                }
                release.notes.push_str(&text);
            }
        })?;
        check_files(&graph, ChartGraph::ROOT)?;
        collect_crds(&graph, ChartGraph::ROOT, &mut release.crds);
        release.dependencies = graph.dependency_list(ChartGraph::ROOT);
        release.imported_values = graph.values(ChartGraph::ROOT).imported();
        Ok(release)
    }

    /// The CRDs of the chart and of its enabled subcharts.
    pub fn crds(&self, values: &Overrides) -> Result<Vec<Crd>, Error> {
        let graph = ChartGraph::new(&self.chart, values.table(), &mut Vec::new())?;
        let mut crds = Vec::new();
        collect_crds(&graph, ChartGraph::ROOT, &mut crds);
        Ok(crds)
    }

    /// Executes all templates except partials and calls `file` with the name and output of each.
    fn execute(
        &self,
        graph: &ChartGraph<'_>,
        values: &Map,
        options: &RenderOptions,
        helm: Generation,
        file: &mut dyn FnMut(String, String),
    ) -> Result<(), Error> {
        let mut scopes = TemplateValues {
            graph,
            release: template_values::release(&options.release),
            capabilities: capabilities::capabilities(&options.capabilities, helm),
            helm,
            templates: Vec::new(),
        };
        scopes.add(ChartGraph::ROOT, values)?;
        let mut templates = scopes.templates;
        template_values::sort_for_parsing(&mut templates);
        let set = self.compiled(&templates, helm)?;
        let host = HostContext::new(Rc::clone(&options.host), Mode::Render);
        let mut context = set.context(&options.limits, Some(Rc::new(host)));
        let mut out = Vec::new();
        for template in templates {
            let base = template.name.rsplit('/').next().unwrap_or_default();
            if base.starts_with('_') {
                continue;
            }
            let about = Map::with_type(VALUES_TYPE, Default::default());
            about.insert("Name", Value::str(template.name.as_str()));
            about.insert("BasePath", Value::str(template.base_path));
            template.scope.insert("Template", Value::Map(about));
            out.clear();
            context
                .run_named(&Str::from(template.name.as_str()), Value::Map(template.scope), &mut out)
                .map_err(|error| template_error::from_exec_error(&template.name, &error))?;
            // Notes are not parsed as YAML and may contain any bytes.
            if base.ends_with("NOTES.txt") {
                file(template.name, String::from_utf8_lossy(&out).replace("<no value>", ""));
                continue;
            }
            let text = without_no_value(&out).map_err(|_| Error::Output {
                file: template.name.clone(),
                why: fl_sprig::from_yaml(&out).err().map(|error| error.to_string()).unwrap_or_default(),
                printed: String::new(),
            })?;
            file(template.name, text);
        }
        Ok(())
    }

    /// Returns the parsed templates for a set of names, from the cache if possible.
    fn compiled(&self, templates: &[Renderable<'_>], helm: Generation) -> Result<Arc<TemplateSet>, Error> {
        let names = (helm, templates.iter().map(|t| t.name.clone()).collect::<Vec<String>>());
        let kept = |sets: &HashMap<_, Arc<TemplateSet>>| sets.get(&names).cloned();
        if let Some(set) = kept(&self.sets.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(set);
        }
        let mut set = match helm {
            Generation::Helm3 => {
                let parsed = self.parsed.lock().unwrap_or_else(PoisonError::into_inner).take();
                parsed.map_or_else(empty_set, ParsedTemplates::finish)
            }
            Generation::Helm4 => set_of(helm),
        };
        let texts: Vec<_> = templates.iter().map(|t| (t.name.as_str(), t.text)).collect();
        set.parse_all(&texts)
            .map_err(|(at, error)| template_error::from_parse_error(&templates[at].name, &error))?;
        let set = Arc::new(set);
        let mut sets = self.sets.lock().unwrap_or_else(PoisonError::into_inner);
        if sets.len() >= MAX_COMPILED_SETS {
            sets.clear();
        }
        sets.insert(names, Arc::clone(&set));
        Ok(set)
    }
}

/// Go prints `<no value>` for missing values even with `missingkey=zero`; Helm removes it from the output.
fn without_no_value(out: &[u8]) -> Result<String, std::str::Utf8Error> {
    let text = std::str::from_utf8(out)?;
    Ok(match memchr::memmem::find(out, b"<no value>") {
        Some(_) => text.replace("<no value>", ""),
        None => text.to_owned(),
    })
}

fn collect_crds(graph: &ChartGraph<'_>, id: crate::dependencies::ChartId, crds: &mut Vec<Crd>) {
    let path = graph.full_path(id);
    crds.extend(
        graph
            .chart(id)
            .crd_files()
            .map(|file| Crd { source: format!("{path}/{}", file.name), data: file.data.clone() }),
    );
    for sub in graph.subcharts(id) {
        collect_crds(graph, *sub, crds);
    }
}

/// Fails if a template read a file that could not be read, since its output is then incomplete.
fn check_files(graph: &ChartGraph<'_>, id: crate::dependencies::ChartId) -> Result<(), Error> {
    if let Some(error) = files::read_error(&graph.chart(id).files) {
        return Err(LoadError::Archive(error.to_string()).into());
    }
    graph.subcharts(id).iter().try_for_each(|sub| check_files(graph, *sub))
}

fn check_installable(chart: &Chart) -> Result<(), Error> {
    if chart.metadata.is_library() {
        return Err(Error::Library);
    }
    let missing: Vec<String> = chart
        .metadata
        .dependencies
        .iter()
        .flatten()
        .map(|wanted| &wanted.name)
        .filter(|name| !chart.dependencies.iter().any(|present| present.name() == *name))
        .cloned()
        .collect();
    if missing.is_empty() { Ok(()) } else { Err(Error::MissingDependencies(missing)) }
}

/// Checks a release name: DNS labels with dots between them, at most 53 characters, so that derived names fit
/// into 63.
pub fn check_release_name(name: &str) -> Result<(), Error> {
    let label = |label: &str| {
        let fine = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let bytes = label.as_bytes();
        bytes.iter().all(|b| fine(*b) || *b == b'-')
            && bytes.first().is_some_and(|b| fine(*b))
            && bytes.last().is_some_and(|b| fine(*b))
    };
    if name.len() <= 53 && name.split('.').all(label) {
        return Ok(());
    }
    Err(Error::ReleaseName { name: name.to_owned() })
}

/// Executes a `--name-template`.
pub fn release_name_from_template(template: &str, host: Rc<dyn Host>) -> Result<String, Error> {
    let mut set = TemplateSet::new(Arc::clone(all_functions(Generation::Helm3)));
    let failed = |error: fl_gotemplate::Error| Error::Template(error.to_string(), None);
    set.parse("name-template", template).map_err(failed)?;
    let host = HostContext::new(host, Mode::Render);
    let mut out = Vec::new();
    set.execute("name-template", Value::Nil, &Limits::default(), Some(Rc::new(host)), &mut out)
        .map_err(failed)?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}
