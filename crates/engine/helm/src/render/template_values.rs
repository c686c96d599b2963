//! Top-level values of templates: one table per chart with `.Values`, `.Chart`, `.Files` and the rest.

use std::cmp::Reverse;

use fl_gotemplate::{CallError, Context, Entries, Map, MapClass, MapMethod, MapType, Signature, Type, Value};

use super::files::ChartFiles;
use super::{Generation, ReleaseOptions, chart_object};
use crate::dependencies::{ChartGraph, ChartId};
use crate::error::LoadError;
use crate::values::{path_value, table};

/// Go's `chartutil.Values`, a map with a few methods callable from templates.
static VALUES: MapClass = MapClass {
    name: "chartutil.Values",
    methods: &[
        MapMethod { name: "AsMap", signature: Signature::fixed(&[]), code: as_map },
        MapMethod { name: "PathValue", signature: Signature::fixed(&[Type::Str]), code: value_at_path },
        MapMethod { name: "Table", signature: Signature::fixed(&[Type::Str]), code: table_at_path },
        MapMethod { name: "YAML", signature: Signature::fixed(&[]), code: yaml },
    ],
};

pub(crate) const VALUES_TYPE: MapType = MapType::Named(&VALUES);

fn argument(args: &[Value]) -> String {
    args.first().and_then(Value::as_str).map(|text| text.to_text().into_owned()).unwrap_or_default()
}

fn as_map(map: &Map, _: &[Value], _: &mut Context<'_>) -> Result<Value, CallError> {
    Ok(Value::Map(map.retyped(MapType::Any)))
}

fn value_at_path(map: &Map, args: &[Value], _: &mut Context<'_>) -> Result<Value, CallError> {
    let path = argument(args);
    let last = path.rsplit('.').next().unwrap_or_default();
    path_value(map, &path).ok_or_else(|| CallError::new(format!("{last:?} is not a value")))
}

fn table_at_path(map: &Map, args: &[Value], _: &mut Context<'_>) -> Result<Value, CallError> {
    match table(map, &argument(args)) {
        Ok(found) => Ok(Value::Map(found.retyped(VALUES_TYPE))),
        Err(error) => Err(CallError::new(error.to_string())),
    }
}

fn yaml(map: &Map, _: &[Value], _: &mut Context<'_>) -> Result<Value, CallError> {
    fl_sprig::to_yaml(&Value::Map(map.clone())).map(Value::str)
}

/// A template and the values it is executed with.
pub(crate) struct Renderable<'c> {
    /// Name: the path through the charts.
    pub(crate) name: String,
    pub(crate) text: &'c fl_gotemplate::Str,
    /// Top-level table of its chart, shared with the chart's other templates.
    pub(crate) scope: Map,
    /// `.Template.BasePath`
    pub(crate) base_path: String,
}

/// Builds the top-level tables of all charts and lists their templates.
pub(crate) struct TemplateValues<'p, 'c> {
    pub(crate) graph: &'p ChartGraph<'c>,
    pub(crate) release: Value,
    pub(crate) capabilities: Value,
    pub(crate) helm: Generation,
    pub(crate) templates: Vec<Renderable<'c>>,
}

/// The value of `.Release`.
pub(crate) fn release(options: &ReleaseOptions) -> Value {
    Value::Map(Map::from_iter([
        ("Name", Value::str(options.name.as_str())),
        ("Namespace", Value::str(options.namespace.as_str())),
        ("IsUpgrade", Value::Bool(options.is_upgrade)),
        ("IsInstall", Value::Bool(!options.is_upgrade)),
        ("Revision", Value::int(options.revision)),
        ("Service", Value::str("Helm")),
    ]))
}

impl TemplateValues<'_, '_> {
    /// Adds a chart; `values` are the chart's own.
    pub(crate) fn add(&mut self, id: ChartId, values: &Map) -> Result<Map, LoadError> {
        let graph = self.graph;
        let chart = graph.chart(id);
        let subcharts = Map::new(Entries::new());
        let dependencies = graph.dependency_list(id).unwrap_or_default();
        let scope = Map::with_type(VALUES_TYPE, Entries::new());
        let about = match self.helm {
            Generation::Helm3 => chart_object::chart,
            Generation::Helm4 => chart_object::chart_table,
        };
        for (name, value) in [
            ("Chart", about(&chart.metadata, graph.name(id), &dependencies, graph.is_root(id))),
            ("Files", Value::object(ChartFiles::new(&chart.files))),
            ("Release", self.release.clone()),
            ("Capabilities", self.capabilities.clone()),
            ("Values", Value::Map(values.retyped(VALUES_TYPE))),
            ("Subcharts", Value::Map(subcharts.clone())),
        ] {
            scope.insert(name, value);
        }
        for sub in graph.subcharts(id) {
            let name = graph.name(*sub);
            let below = table(values, name).unwrap_or_else(|_| Map::new(Entries::new()));
            let sub_scope = self.add(*sub, &below)?;
            subcharts.insert(name, Value::Map(sub_scope.retyped(MapType::Any)));
        }
        let path = graph.full_path(id);
        let library = chart.metadata.is_library();
        for file in &chart.templates {
            let base = file.name.rsplit('/').next().unwrap_or_default();
            if library && !base.starts_with('_') {
                continue;
            }
            self.templates.push(Renderable {
                name: format!("{path}/{}", file.name),
                text: file.data.read().map_err(|error| LoadError::Archive(error.to_string()))?,
                scope: scope.clone(),
                base_path: format!("{path}/templates"),
            });
        }
        Ok(scope)
    }
}

/// Sorts deeper paths first, then by name backwards. The template parsed last wins: of two definitions of one
/// name, the one nearer to the root, then the alphabetically first file.
pub(crate) fn sort_for_parsing(templates: &mut Vec<Renderable<'_>>) {
    let depth = |name: &str| name.bytes().filter(|b| *b == b'/').count();
    templates.sort_by(|a, b| b.name.cmp(&a.name));
    templates.sort_by_cached_key(|template| Reverse(depth(&template.name)));
    // If two charts have the same path, the one added last is used.
    templates.dedup_by(|later, kept| {
        later.name == kept.name && {
            std::mem::swap(later, kept);
            true
        }
    });
}
