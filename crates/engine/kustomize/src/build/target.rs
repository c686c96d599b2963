//! Builds one kustomization: resources, generators, components, transformers and validators, in kustomize's
//! order.

use std::rc::Rc;

use fl_yaml::Node;

use super::charts;
use super::origin::{self, Origin};
use super::plugin::{Plugin, Transformer};
use super::remote::{self, Repository};
use super::session::{LoadError, Root, Session};
use crate::config::Config;
use crate::decode::Located;
use crate::error::{Error, ErrorKind, Place, Result};
use crate::generate::{self, Kind};
use crate::input::{Purpose, read_objects};
use crate::kustomization::{GeneratorArgs, Kustomization};
use crate::resmap::{DuplicateId, ResMap};
use crate::resource::{Behavior, Resource};
use crate::transform::variable::{self, Variables};

/// Objects with the configuration and variables that came with them.
#[derive(Debug)]
pub(super) struct Accumulator {
    pub(super) map: ResMap,
    pub(super) config: Rc<Config>,
    pub(super) variables: Variables,
}

impl Default for Accumulator {
    fn default() -> Self {
        Self { map: ResMap::default(), config: Rc::new(Config::default()), variables: Variables::new() }
    }
}

/// A kustomization that is being built.
pub(super) struct Target {
    pub(super) root: Rc<Root>,
    pub(super) kustomization: Rc<Kustomization>,
    pub(super) place: Place,
    pub(super) file: String,
    /// Its origin, if origins are recorded.
    pub(super) origin: Option<Origin>,
    /// The namespace of the nearest parent that sets one, for charts.
    namespace_above: String,
}

impl From<Box<DuplicateId>> for ErrorKind {
    fn from(duplicate: Box<DuplicateId>) -> Self {
        ErrorKind::Duplicate { id: duplicate.id.to_string(), first: duplicate.first }
    }
}

impl Target {
    /// Loads the kustomization of a directory.
    pub(super) fn load(session: &mut Session<'_>, root: &Rc<Root>) -> Result<Self> {
        let (kustomization, place, file) = session.kustomization(root)?;
        let origin = (!kustomization.build_metadata.is_empty()).then(Origin::default);
        Ok(Self { root: root.clone(), kustomization, place, file, origin, namespace_above: String::new() })
    }

    fn error(&self, at: (u32, u32), kind: impl Into<ErrorKind>) -> Error {
        Error::new(self.place.at(at), kind)
    }

    /// The namespace of charts that do not set one.
    fn namespace(&self) -> &String {
        let own = &self.kustomization.namespace;
        if own.is_empty() { &self.namespace_above } else { own }
    }

    /// Builds the kustomization on top of the given objects.
    pub(super) fn build(&self, session: &mut Session<'_>, mut done: Accumulator) -> Result<Accumulator> {
        let k = self.kustomization.clone();
        for entry in &k.resources {
            self.add_entry(session, &mut done, entry)?;
        }
        self.configure(session, &mut done)?;
        self.generate(session, &mut done)?;
        for entry in &k.components {
            done = self.add_component(session, done, entry)?;
        }
        self.transform(session, &mut done)?;
        self.validate(session, &mut done)?;
        for variable in &k.vars {
            variable::declare(&mut done.map, &mut done.variables, std::slice::from_ref(variable))
                .map_err(|kind| self.error(variable.at, kind))?;
        }
        Ok(done)
    }

    /// Adds the objects of a file or of another kustomization.
    fn add_entry(
        &self,
        session: &mut Session<'_>,
        done: &mut Accumulator,
        entry: &Located<String>,
    ) -> Result<()> {
        let repository = Repository::parse(&entry.value).is_some();
        let file = match session.load(&self.root, &entry.value) {
            Ok((path, content)) => match self.add_file(session, done, entry, &path, &content) {
                // An HTML page of a Git host is not a file of objects.
                Err(error) if repository && is_unreadable(&error) => Some(*error.kind),
                done => return done,
            },
            Err(LoadError::Directory(_)) => None,
            Err(LoadError::Denied(kind)) => return Err(self.error(entry.at, kind)),
            Err(LoadError::Missing(kind @ ErrorKind::Fetch { .. })) if !repository => {
                return Err(self.error(entry.at, kind));
            }
            Err(LoadError::Missing(kind)) => Some(kind),
        };
        let root = session.enter(&self.root, &entry.value).map_err(|directory| match (file, directory) {
            (Some(file), directory @ (ErrorKind::Read { .. } | ErrorKind::Fetch { .. })) => {
                let (path, file, other) =
                    (remote::redacted(&entry.value), file.to_string(), directory.to_string());
                // If the path does not exist, both attempts fail for the same reason.
                let kind =
                    if file == other { directory } else { ErrorKind::Entry { path, file, directory: other } };
                self.error(entry.at, kind)
            }
            (_, directory) => self.error(entry.at, directory),
        })?;
        let here = self.place.at(entry.at);
        let below = self.descend(session, &root, &entry.value, false).map_err(|e| e.through(here.clone()))?;
        let built = below.build(session, Accumulator::default()).map_err(|e| e.through(here))?;
        self.append_built(done, built, entry.at)
    }

    fn add_file(
        &self,
        session: &mut Session<'_>,
        done: &mut Accumulator,
        entry: &Located<String>,
        path: &std::path::Path,
        content: &[u8],
    ) -> Result<()> {
        let here = self.place.at(entry.at);
        let objects = session.objects(path, content).map_err(|e| {
            let message = e.message().to_owned();
            let kind = if e.is_yaml() { ErrorKind::Yaml(message) } else { ErrorKind::Object(message) };
            Error::new(Place::file(path.display().to_string()).at(e.at()), kind).through(here.clone())
        })?;
        let origin = self.origin.as_ref().map(|o| o.append(&entry.value));
        for mut object in objects {
            if let Some(origin) = &origin {
                origin::set(&mut object, origin);
            }
            done.map.append(object).map_err(|duplicate| Error::new(here.clone(), duplicate))?;
        }
        Ok(())
    }

    /// Builds a kustomization below. A component is not accepted as a kustomization, and vice versa.
    fn descend(
        &self,
        session: &mut Session<'_>,
        root: &Rc<Root>,
        path: &str,
        component: bool,
    ) -> Result<Target> {
        let mut below = Target::load(session, root)?;
        below.origin = self.origin.as_ref().map(|o| o.append(path));
        if self.origin.is_none() {
            below.origin = None;
        }
        below.namespace_above.clone_from(self.namespace());
        session.choose_schema(root, &below, false)?;
        if component != (below.kustomization.kind == "Component") {
            let expected = if component { "'Component'" } else { "other than 'Component'" };
            let found = below.kustomization.kind.clone();
            let path = root.dir.display().to_string();
            return Err(Error::new(below.place.clone(), ErrorKind::Kind { expected, path, found }));
        }
        Ok(below)
    }

    fn append_built(&self, done: &mut Accumulator, built: Accumulator, at: (u32, u32)) -> Result<()> {
        done.map.append_all(built.map).map_err(|duplicate| self.error(at, duplicate))?;
        Config::merge_shared(&mut done.config, &built.config).map_err(|e| self.error(at, e))?;
        variable::merge(&mut done.variables, built.variables.into_values())
            .map_err(|kind| self.error(at, kind))
    }

    /// A component transforms the objects that its parent has so far.
    fn add_component(
        &self,
        session: &mut Session<'_>,
        done: Accumulator,
        entry: &Located<String>,
    ) -> Result<Accumulator> {
        let root = session.enter(&self.root, &entry.value).map_err(|kind| self.error(entry.at, kind))?;
        let here = self.place.at(entry.at);
        let below = self.descend(session, &root, &entry.value, true).map_err(|e| e.through(here.clone()))?;
        below.build(session, done).map_err(|e| e.through(here))
    }

    /// Merges the built-in configuration, that of files, and that of CRDs.
    fn configure(&self, session: &mut Session<'_>, done: &mut Accumulator) -> Result<()> {
        let conflict = |e| self.error((0, 0), e);
        let mut config = Config::builtin();
        let mut own = Config::default();
        for entry in &self.kustomization.configurations {
            let (path, content) = session.load_entry(self, entry)?;
            let (node, place) = self.parse_one(&path, &content, entry)?;
            let more = crate::kustomization::configuration(&node, &place)
                .map_err(|e| e.through(self.place.at(entry.at)))?;
            own.merge(&more).map_err(|e| self.error(entry.at, e))?;
        }
        if own != Config::default() {
            let mut merged = (*config).clone();
            merged.merge(&own).map_err(conflict)?;
            config = Rc::new(merged);
        }
        Config::merge_shared(&mut done.config, &config).map_err(conflict)?;
        for entry in &self.kustomization.crds {
            let (path, content) = session.load_entry(self, entry)?;
            let (node, _) = self.parse_one(&path, &content, entry)?;
            let more = super::crds::configuration(&node).map_err(|e| self.error(entry.at, e))?;
            if more != Config::default() {
                Config::merge_shared(&mut done.config, &Rc::new(more))
                    .map_err(|e| self.error(entry.at, e))?;
            }
        }
        Ok(())
    }

    pub(super) fn parse_one(
        &self,
        path: &std::path::Path,
        content: &[u8],
        entry: &Located<String>,
    ) -> Result<(Node, Place)> {
        let place = Place::file(path.display().to_string());
        let node = crate::input::read_one(content).map_err(|e| {
            Error::new(place.at(e.at()), ErrorKind::Yaml(e.message().to_owned()))
                .through(self.place.at(entry.at))
        })?;
        Ok((node, place))
    }

    fn generate(&self, session: &mut Session<'_>, done: &mut Accumulator) -> Result<()> {
        let k = &self.kustomization;
        let global = k.generator_options.as_ref();
        let mut generated: Vec<(Resource, (u32, u32))> = Vec::new();
        for (kind, list, name) in [
            (Kind::ConfigMap, &k.config_map_generator, "ConfigMapGenerator"),
            (Kind::Secret, &k.secret_generator, "SecretGenerator"),
        ] {
            for args in list {
                let args = generate::with_global_options(args.clone(), global);
                let mut object = self.generate_one(session, kind, &args)?;
                if let Some(origin) = &self.origin {
                    origin::set(&mut object, &origin.builtin(&self.file, name));
                }
                generated.push((object, args.at));
            }
        }
        for chart in &k.helm_charts {
            let mut chart = chart.clone();
            if chart.namespace.is_empty() {
                chart.namespace.clone_from(self.namespace());
            }
            for mut object in charts::inflate(session, self, &chart)? {
                if let Some(origin) = &self.origin {
                    origin::set(&mut object, &origin.builtin(&self.file, "HelmChartInflationGenerator"));
                }
                generated.push((object, chart.at));
            }
        }
        for plugin in self.plugins(session, &k.generators)? {
            for object in plugin.generate(session, self)? {
                generated.push((object, plugin.at));
            }
        }
        for (object, at) in generated {
            add_generated(&mut done.map, object, session).map_err(|kind| self.error(at, kind))?;
        }
        Ok(())
    }

    /// Creates the object of a generator.
    pub(super) fn generate_one(
        &self,
        session: &mut Session<'_>,
        kind: Kind,
        args: &GeneratorArgs,
    ) -> Result<Resource> {
        if args.name.is_empty() {
            let what = if kind == Kind::Secret { "a secret" } else { "a configmap" };
            let reason = format!("{what} must have a name");
            return Err(self.error(args.at, ErrorKind::Invalid { what: "generator".to_owned(), reason }));
        }
        let pairs = generate::load(args, |entry| session.load_entry(self, entry).map(|(_, content)| content))
            .map_err(|e| match e {
                generate::LoadError::Load(error) => error,
                generate::LoadError::Entry { at, error } => {
                    let reason = error.to_string();
                    let id = args.name.clone();
                    self.error(at, ErrorKind::Generator { id, reason })
                }
            })?;
        Ok(generate::object(kind, args, pairs, &mut session.schemas))
    }

    fn transform(&self, session: &mut Session<'_>, done: &mut Accumulator) -> Result<()> {
        let config = done.config.clone();
        let mut steps = Transformer::of_kustomization(self, session, &config)?;
        for plugin in self.plugins(session, &self.kustomization.transformers)? {
            steps.extend(plugin.transformers(session, self)?);
        }
        for step in steps {
            step.run(&mut done.map, &mut session.schemas).map_err(|kind| self.error(step.at, kind))?;
            if let Some(origin) = &step.origin {
                origin::note_transformation(&mut done.map, origin);
            }
            done.map.remove_deleted();
        }
        Ok(())
    }

    /// Runs validators: transformers that may only add the label of the validator.
    fn validate(&self, session: &mut Session<'_>, done: &mut Accumulator) -> Result<()> {
        for plugin in self.plugins(session, &self.kustomization.validators)? {
            for step in plugin.transformers(session, self)? {
                let before: Vec<Node> = done.map.list().iter().map(|r| r.node.clone()).collect();
                step.run(&mut done.map, &mut session.schemas).map_err(|kind| self.error(step.at, kind))?;
                let same = before.len() == done.map.len()
                    && before
                        .iter()
                        .zip(done.map.list())
                        .all(|(old, new)| without_validated_by(&new.node).is_some_and(|new| *old == new));
                if !same {
                    let reason = "validator shouldn't modify the resource map".to_owned();
                    return Err(self.error(plugin.at, ErrorKind::Invalid { what: plugin.kind(), reason }));
                }
            }
        }
        Ok(())
    }

    /// The plugins of a list of entries: each is inline, a file, or a kustomization that builds them.
    fn plugins(&self, session: &mut Session<'_>, entries: &[Located<String>]) -> Result<Vec<Plugin>> {
        let mut found = Accumulator::default();
        let mut places: Vec<(u32, u32)> = Vec::new();
        let mut paths = Vec::new();
        for entry in entries {
            match read_objects(entry.value.as_bytes(), Purpose::Objects) {
                Err(_) => paths.push(entry),
                Ok(nodes) => {
                    for node in nodes {
                        let mut object = Resource::new(node, &mut session.schemas);
                        if let Some(origin) = &self.origin {
                            origin::set(&mut object, &origin.append(&self.file));
                        }
                        found.map.append(object).map_err(|duplicate| self.error(entry.at, duplicate))?;
                        places.push(entry.at);
                    }
                }
            }
        }
        for entry in paths {
            self.add_entry(session, &mut found, entry)?;
            places.resize(found.map.len(), entry.at);
        }
        let list = found.map.into_list();
        Ok(list.into_iter().zip(places).map(|(config, at)| Plugin { config, at }).collect())
    }
}

/// Whether a file does not contain objects.
fn is_unreadable(error: &Error) -> bool {
    matches!(*error.kind, ErrorKind::Yaml(_) | ErrorKind::Object(_))
}

/// The object without the label of a validator. `None` if there are other labels: removing it rewrites those,
/// which kustomize counts as a change.
fn without_validated_by(node: &Node) -> Option<Node> {
    let mut node = node.clone();
    if let Some(metadata) = node.get_mut("metadata").and_then(Node::as_map_mut)
        && let Some(labels) = metadata.get_mut("labels").and_then(Node::as_map_mut)
        && labels.remove("validated-by").is_some()
    {
        if !labels.is_empty() {
            return None;
        }
        metadata.remove("labels");
    }
    Some(node)
}

/// Adds a generated object, or merges it with or replaces the existing one.
fn add_generated(map: &mut ResMap, mut new: Resource, session: &mut Session<'_>) -> Result<(), ErrorKind> {
    let behavior = new.notes.behavior.unwrap_or_default();
    let refuse =
        |id: &crate::resid::ResId, reason: String| ErrorKind::Generator { id: id.to_string(), reason };
    let found = map.with_any_id(&new.id);
    let at = match (found.as_slice(), behavior) {
        ([], Behavior::Merge | Behavior::Replace) => {
            return Err(refuse(&new.id, "it does not exist; cannot merge or replace".to_owned()));
        }
        ([], _) => return map.append(new).map_err(ErrorKind::from),
        ([_], Behavior::Create | Behavior::Unspecified) => {
            let word = behavior.word();
            let reason =
                format!("it exists; cannot use behavior '{word}', behavior must be merge or replace");
            return Err(refuse(&new.id, reason));
        }
        ([at], _) => *at,
        _ => return Err(refuse(&new.id, "found multiple objects that could accept it".to_owned())),
    };
    let old = map.get_mut(at);
    let recorded = crate::tree::metadata_pair(&old.node, "annotations", origin::ORIGIN).map(str::to_owned);
    new.inherit_metadata(old);
    if behavior == Behavior::Merge {
        generate::merge_data(&mut new, old);
        if let Some(text) = recorded {
            crate::tree::ensure_map(&mut new.node, &["metadata", "annotations"])
                .map(|m| m.insert(origin::ORIGIN, Node::string(text)));
        }
    }
    new.refresh(&mut session.schemas);
    *old = new;
    Ok(())
}
