//! Rendering: from a loaded chart and user values to a release.

mod capabilities;
mod chart_object;
mod failure;
mod files;
mod glob;
mod scope;

use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use fl_gotemplate::{Functions, Limits, Map, MissingKey, Str, TemplateSet, Value};
use fl_sprig::{Host, Mode, Outside};

use crate::capabilities::Capabilities;
use crate::chart::Chart;
use crate::chart::ahead::First;
use crate::error::{Error, LoadError};
use crate::plan::{Plan, in_range};
use crate::release::{Crd, HELM_4_INSTALL_ORDER, INSTALL_ORDER, PostRender, Reader, Release, Split};
use crate::values::{Coalescer, Overrides, schema};
use scope::{Renderable, Scopes, VALUES_TYPE};

/// Name and circumstances of a release.
#[derive(Debug, Clone)]
pub struct ReleaseOptions {
    /// Its name.
    pub name: String,
    /// Where it goes.
    pub namespace: String,
    /// Its number.
    pub revision: i64,
    /// Whether there is an earlier one.
    pub is_upgrade: bool,
}

/// Whose ways a chart is rendered in: those of the command, or of the library in Flux.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Generation {
    Helm3,
    Helm4,
}

/// How to render.
#[derive(Clone)]
pub struct RenderOptions {
    /// Name and circumstances.
    pub release: ReleaseOptions,
    /// What the cluster offers.
    pub capabilities: Capabilities,
    /// Budgets of all templates together.
    pub limits: Limits,
    /// Clock, randomness and cluster.
    pub outside: Rc<dyn Outside>,
    /// Whether `values.schema.json` is passed over.
    pub skip_schema: bool,
    /// Whether notes of subcharts are part of the notes.
    pub subchart_notes: bool,
}

impl fmt::Debug for RenderOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RenderOptions").field("release", &self.release).finish_non_exhaustive()
    }
}

/// What templates printed, file by file, and the rest of the release.
#[derive(Debug, Clone, Default)]
pub struct RenderedFiles {
    /// Path and text of every template that is no partial and no notes.
    pub files: Vec<(String, String)>,
    /// Notes, CRDs and the like; no manifests and hooks yet.
    pub release: Release,
}

impl RenderedFiles {
    /// Sorts the files into manifests and hooks, as Helm 4 does.
    pub fn sorted(self) -> Result<Release, Error> {
        let Self { files, mut release } = self;
        let mut reader = Reader::new(Split::Helm4);
        files.into_iter().for_each(|(path, text)| reader.add(path, text));
        release.sort_files(reader.finish(), HELM_4_INSTALL_ORDER)?;
        Ok(release)
    }
}

/// Compiled sets kept per chart: one for each set of subcharts that values have switched on.
const KEPT_SETS: usize = 8;

/// A chart whose templates are parsed once and rendered many times, from any thread.
#[derive(Debug)]
pub struct CompiledChart {
    chart: Chart,
    sets: Mutex<HashMap<SetKey, Arc<TemplateSet>>>,
    /// Where the first set begins: templates that are parsed while the chart is loaded.
    first: Mutex<Option<First>>,
}

/// The names of the templates of a set, and for whom they are parsed.
type SetKey = (Generation, Vec<String>);

fn all_functions(helm: Generation) -> &'static Arc<Functions> {
    static FUNCTIONS: OnceLock<Arc<Functions>> = OnceLock::new();
    static FUNCTIONS_4: OnceLock<Arc<Functions>> = OnceLock::new();
    match helm {
        Generation::Helm3 => FUNCTIONS.get_or_init(|| Arc::new(fl_sprig::functions())),
        Generation::Helm4 => FUNCTIONS_4.get_or_init(|| Arc::new(fl_sprig::functions_of_helm_4())),
    }
}

/// No templates yet, but all that charts may call.
pub(crate) fn empty_set() -> TemplateSet {
    set_of(Generation::Helm3)
}

fn set_of(helm: Generation) -> TemplateSet {
    let mut set = TemplateSet::new(Arc::clone(all_functions(helm)));
    set.set_missing_key(MissingKey::Zero);
    set
}

impl CompiledChart {
    /// Takes a loaded chart. Templates are parsed when they are first needed: which ones are depends on the values.
    pub fn new(chart: Chart) -> Self {
        Self::with_first(chart, First::nothing())
    }

    /// Takes a chart whose templates were parsed ahead.
    pub(crate) fn with_first(chart: Chart, first: First) -> Self {
        Self { chart, sets: Mutex::default(), first: Mutex::new(Some(first)) }
    }

    /// The chart.
    pub fn chart(&self) -> &Chart {
        &self.chart
    }

    /// Renders the chart. With a post-renderer the manifests are what it makes of them.
    pub fn render(
        &self,
        values: &Overrides,
        options: &RenderOptions,
        post_render: Option<&dyn PostRender>,
    ) -> Result<Release, Error> {
        check_installable(&self.chart)?;
        let mut reader = Reader::new(Split::Helm3);
        let mut release =
            self.render_each(values, options, Generation::Helm3, &mut |path, text| reader.add(path, text))?;
        release.sort_files(reader.finish(), INSTALL_ORDER)?;
        if let Some(post_render) = post_render {
            release.post_render(post_render)?;
        }
        Ok(release)
    }

    /// Renders the chart's files and leaves them as they are.
    pub fn render_files(&self, values: &Overrides, options: &RenderOptions) -> Result<RenderedFiles, Error> {
        check_installable(&self.chart)?;
        self.files(values, options, Generation::Helm3)
    }

    /// Renders the chart's files as the actions of Helm 4 do, which hand them to post-renderers. They take every chart, also a
    /// library and one whose subcharts are not there: only the commands ask for more.
    pub fn render_for_action(
        &self,
        values: &Overrides,
        options: &RenderOptions,
    ) -> Result<RenderedFiles, Error> {
        self.files(values, options, Generation::Helm4).map_err(failure::traced)
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

    /// Renders the chart and hands out path and text of each file when it is there; the rest of the release comes back.
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
        let plan = Plan::new(chart, values.table(), &mut release.warnings)?;
        let computed = Coalescer::coalescing(&plan, &mut release.warnings).run(Plan::ROOT, values.table())?;
        if !options.skip_schema {
            schema::validate(&plan, Plan::ROOT, &computed, &mut release.warnings)?;
        }
        let wanted = &chart.metadata.kube_version;
        let version = &options.capabilities.kube_version.version;
        if !wanted.is_empty() && !in_range(wanted, version) {
            return Err(Error::KubeVersion { wanted: wanted.clone(), version: version.clone() });
        }
        let root_notes = format!("{}/templates/NOTES.txt", chart.name());
        self.execute(&plan, &computed, options, helm, &mut |path, text| {
            if !path.ends_with("NOTES.txt") {
                file(path, text);
            } else if options.subchart_notes || path == root_notes {
                if !release.notes.is_empty() {
                    release.notes.push('\n');
                }
                release.notes.push_str(&text);
            }
        })?;
        check_files(&plan, Plan::ROOT)?;
        collect_crds(&plan, Plan::ROOT, &mut release.crds);
        release.dependencies = plan.dependency_list(Plan::ROOT);
        release.imported_values = plan.values(Plan::ROOT).imported();
        Ok(release)
    }

    /// The CRDs of the chart and of the subcharts that values switch on.
    pub fn crds(&self, values: &Overrides) -> Result<Vec<Crd>, Error> {
        let plan = Plan::new(&self.chart, values.table(), &mut Vec::new())?;
        let mut crds = Vec::new();
        collect_crds(&plan, Plan::ROOT, &mut crds);
        Ok(crds)
    }

    /// Runs all templates that are no partials; hands out the name and the output of each.
    fn execute(
        &self,
        plan: &Plan<'_>,
        values: &Map,
        options: &RenderOptions,
        helm: Generation,
        file: &mut dyn FnMut(String, String),
    ) -> Result<(), Error> {
        let mut scopes = Scopes {
            plan,
            release: scope::release(&options.release),
            capabilities: capabilities::capabilities(&options.capabilities, helm),
            helm,
            templates: Vec::new(),
        };
        scopes.add(Plan::ROOT, values)?;
        let mut templates = scopes.templates;
        scope::sort_for_parsing(&mut templates);
        let set = self.compiled(&templates, helm)?;
        let host = Host::new(Rc::clone(&options.outside), Mode::Render);
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
                .map_err(|error| failure::of_execution(&template.name, &error))?;
            // Notes are never read as YAML, so any bytes may be in them.
            if base.ends_with("NOTES.txt") {
                file(template.name, String::from_utf8_lossy(&out).replace("<no value>", ""));
                continue;
            }
            let text = without_no_value(&out).map_err(|_| Error::Output {
                file: template.name.clone(),
                why: fl_sprig::from_yaml(&out).err().unwrap_or_default(),
                printed: String::new(),
            })?;
            file(template.name, text);
        }
        Ok(())
    }

    /// The parsed templates for a set of names.
    fn compiled(&self, templates: &[Renderable<'_>], helm: Generation) -> Result<Arc<TemplateSet>, Error> {
        let names = (helm, templates.iter().map(|t| t.name.clone()).collect::<Vec<String>>());
        let kept = |sets: &HashMap<_, Arc<TemplateSet>>| sets.get(&names).cloned();
        if let Some(set) = kept(&self.sets.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(set);
        }
        let mut set = match helm {
            Generation::Helm3 => {
                let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).take();
                first.map_or_else(empty_set, First::finish)
            }
            Generation::Helm4 => set_of(helm),
        };
        let texts: Vec<_> = templates.iter().map(|t| (t.name.as_str(), t.text)).collect();
        set.parse_all(&texts).map_err(|(at, error)| failure::of_parsing(&templates[at].name, &error))?;
        let set = Arc::new(set);
        let mut sets = self.sets.lock().unwrap_or_else(PoisonError::into_inner);
        if sets.len() >= KEPT_SETS {
            sets.clear();
        }
        sets.insert(names, Arc::clone(&set));
        Ok(set)
    }
}

/// Go prints `<no value>` for a missing one even when told otherwise; Helm takes it out afterwards, wherever it stands.
fn without_no_value(out: &[u8]) -> Result<String, std::str::Utf8Error> {
    let text = std::str::from_utf8(out)?;
    Ok(match memchr::memmem::find(out, b"<no value>") {
        Some(_) => text.replace("<no value>", ""),
        None => text.to_owned(),
    })
}

fn collect_crds(plan: &Plan<'_>, id: crate::plan::ChartId, crds: &mut Vec<Crd>) {
    let path = plan.full_path(id);
    crds.extend(
        plan.chart(id)
            .crd_files()
            .map(|file| Crd { source: format!("{path}/{}", file.name), data: file.data.clone() }),
    );
    for sub in plan.subcharts(id) {
        collect_crds(plan, *sub, crds);
    }
}

/// A file that could not be read while templates asked for it has given them nothing: their output is not what it should be.
fn check_files(plan: &Plan<'_>, id: crate::plan::ChartId) -> Result<(), Error> {
    if let Some(error) = files::unread(&plan.chart(id).files) {
        return Err(LoadError::Archive(error.to_string()).into());
    }
    plan.subcharts(id).iter().try_for_each(|sub| check_files(plan, *sub))
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

/// DNS labels with dots between, 53 characters at most, so that names made from it fit into 63.
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

/// Makes a release name from a template, as `--name-template` asks.
pub fn release_name_from_template(template: &str, outside: Rc<dyn Outside>) -> Result<String, Error> {
    let mut set = TemplateSet::new(Arc::clone(all_functions(Generation::Helm3)));
    let failed = |error: fl_gotemplate::Error| Error::Template(error.to_string(), None);
    set.parse("name-template", template).map_err(failed)?;
    let host = Host::new(outside, Mode::Render);
    let mut out = Vec::new();
    set.execute("name-template", Value::Nil, &Limits::default(), Some(Rc::new(host)), &mut out)
        .map_err(failed)?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}
