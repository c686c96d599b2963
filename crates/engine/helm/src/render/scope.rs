//! What templates see: one table per chart, with `.Values`, `.Chart`, `.Files` and the rest.

use std::cmp::Reverse;

use fl_gotemplate::{CallError, Context, Entries, Map, MapClass, MapMethod, MapType, Signature, Type, Value};

use super::files::ChartFiles;
use super::{Generation, ReleaseOptions, chart_object};
use crate::error::LoadError;
use crate::plan::{ChartId, Plan};
use crate::values::{path_value, table};

/// Go's `chartutil.Values`, a map with a few methods that templates can call.
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
        Err(why) => Err(CallError::new(why)),
    }
}

fn yaml(map: &Map, _: &[Value], _: &mut Context<'_>) -> Result<Value, CallError> {
    fl_sprig::to_yaml(&Value::Map(map.clone())).map(Value::str)
}

/// A template of the plan with what it sees.
pub(crate) struct Renderable<'c> {
    /// Its name: the path through the charts.
    pub(crate) name: String,
    pub(crate) text: &'c fl_gotemplate::Str,
    /// The table of its chart, shared with the chart's other templates.
    pub(crate) scope: Map,
    /// `.Template.BasePath`
    pub(crate) base_path: String,
}

/// Builds the tables of all charts and lists their templates.
pub(crate) struct Scopes<'p, 'c> {
    pub(crate) plan: &'p Plan<'c>,
    pub(crate) release: Value,
    pub(crate) capabilities: Value,
    pub(crate) helm: Generation,
    pub(crate) templates: Vec<Renderable<'c>>,
}

/// The table for `.Release`.
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

impl Scopes<'_, '_> {
    /// The table of a chart; `values` are its own already.
    pub(crate) fn add(&mut self, id: ChartId, values: &Map) -> Result<Map, LoadError> {
        let plan = self.plan;
        let chart = plan.chart(id);
        let subcharts = Map::new(Entries::new());
        let dependencies = plan.dependency_list(id).unwrap_or_default();
        let scope = Map::with_type(VALUES_TYPE, Entries::new());
        let about = match self.helm {
            Generation::Helm3 => chart_object::chart,
            Generation::Helm4 => chart_object::chart_table,
        };
        for (name, value) in [
            ("Chart", about(&chart.metadata, plan.name(id), &dependencies, plan.is_root(id))),
            ("Files", Value::object(ChartFiles::new(&chart.files))),
            ("Release", self.release.clone()),
            ("Capabilities", self.capabilities.clone()),
            ("Values", Value::Map(values.retyped(VALUES_TYPE))),
            ("Subcharts", Value::Map(subcharts.clone())),
        ] {
            scope.insert(name, value);
        }
        for sub in plan.subcharts(id) {
            let name = plan.name(*sub);
            let below = table(values, name).unwrap_or_else(|_| Map::new(Entries::new()));
            let sub_scope = self.add(*sub, &below)?;
            subcharts.insert(name, Value::Map(sub_scope.retyped(MapType::Any)));
        }
        let path = plan.full_path(id);
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

/// Deeper paths first, then by name backwards: of two definitions of one name the one nearer to the root, then the
/// alphabetically first file, is parsed last and wins.
pub(crate) fn sort_for_parsing(templates: &mut Vec<Renderable<'_>>) {
    let depth = |name: &str| name.bytes().filter(|b| *b == b'/').count();
    templates.sort_by(|a, b| b.name.cmp(&a.name));
    templates.sort_by_cached_key(|template| Reverse(depth(&template.name)));
    // Charts given twice under one path: the one added last counts.
    templates.dedup_by(|later, kept| {
        later.name == kept.name && {
            std::mem::swap(later, kept);
            true
        }
    });
}
