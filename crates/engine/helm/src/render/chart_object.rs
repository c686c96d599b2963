//! `.Chart`: the metadata with Go's field names.

use std::any::Any;
use std::borrow::Cow;

use fl_gotemplate::{Entries, List, ListType, Map, MapType, Object, Str, Value};

use crate::chart::{Dependency, ImportValue, Maintainer, Metadata};

/// A Go struct with a fixed set of fields.
#[derive(Debug)]
struct Struct {
    type_name: &'static str,
    fields: Vec<(&'static str, Value)>,
    /// Names and values as `encoding/json` writes them, without empty ones.
    json: Vec<(&'static str, Value)>,
}

impl Object for Struct {
    fn type_name(&self) -> Cow<'static, str> {
        self.type_name.into()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn kind(&self) -> fl_gotemplate::Kind {
        if self.type_name.starts_with('*') {
            fl_gotemplate::Kind::Pointer
        } else {
            fl_gotemplate::Kind::Struct
        }
    }

    fn field(&self, name: &str) -> Option<Value> {
        self.fields.iter().find(|(field, _)| *field == name).map(|(_, value)| value.clone())
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        self.fields.clone()
    }

    fn json_fields(&self) -> Option<Vec<(&'static str, Value)>> {
        Some(self.json.clone())
    }

    fn json(&self) -> Option<Value> {
        Some(Value::Map(self.json.iter().cloned().collect()))
    }
}

/// `.Chart` itself: embeds the metadata, so that its fields are reached directly.
#[derive(Debug)]
struct ChartObject {
    metadata: Value,
    is_root: bool,
}

impl Object for ChartObject {
    fn type_name(&self) -> Cow<'static, str> {
        "struct { chart.Metadata; IsRoot bool }".into()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn field(&self, name: &str) -> Option<Value> {
        match name {
            "Metadata" => Some(self.metadata.clone()),
            "IsRoot" => Some(Value::Bool(self.is_root)),
            _ => self.metadata.as_object::<Struct>()?.field(name),
        }
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        vec![("Metadata", self.metadata.clone()), ("IsRoot", Value::Bool(self.is_root))]
    }

    fn json_fields(&self) -> Option<Vec<(&'static str, Value)>> {
        let mut fields = self.metadata.as_object::<Struct>()?.json.clone();
        fields.push(("IsRoot", Value::Bool(self.is_root)));
        Some(fields)
    }

    fn json(&self) -> Option<Value> {
        Some(Value::Map(self.json_fields()?.into_iter().collect()))
    }
}

/// Collects fields by their Go and JSON names.
#[derive(Default)]
struct Fields {
    fields: Vec<(&'static str, Value)>,
    json: Vec<(&'static str, Value)>,
}

impl Fields {
    fn add(&mut self, go: &'static str, json: &'static str, value: Value) {
        if value.truth() {
            self.json.push((json, value.clone()));
        }
        self.fields.push((go, value));
    }

    /// Adds a field that is written even if it is empty.
    fn always(&mut self, go: &'static str, json: &'static str, value: &str) {
        self.json.push((json, Value::str(value)));
        self.fields.push((go, Value::str(value)));
    }

    fn text(&mut self, go: &'static str, json: &'static str, value: &str) {
        self.add(go, json, Value::str(value));
    }

    fn texts(&mut self, go: &'static str, json: &'static str, values: &[String]) {
        let list = if values.is_empty() {
            List::nil(ListType::Str)
        } else {
            List::of_strings(values.iter().map(String::as_str))
        };
        self.add(go, json, Value::List(list));
    }

    fn list(&mut self, go: &'static str, json: &'static str, ty: &'static str, values: Vec<Value>) {
        let ty = ListType::Named(ty, false);
        let list = if values.is_empty() { List::nil(ty) } else { List::with_type(ty, values) };
        self.add(go, json, Value::List(list));
    }

    fn finish(self, type_name: &'static str) -> Value {
        Value::object(Struct { type_name, fields: self.fields, json: self.json })
    }
}

/// The value of `.Chart`, with the chart's final name and dependencies.
pub(crate) fn chart(metadata: &Metadata, name: &str, dependencies: &[Dependency], is_root: bool) -> Value {
    let mut f = Fields::default();
    f.text("Name", "name", name);
    f.text("Home", "home", &metadata.home);
    f.texts("Sources", "sources", &metadata.sources);
    f.text("Version", "version", &metadata.version);
    f.text("Description", "description", &metadata.description);
    f.texts("Keywords", "keywords", &metadata.keywords);
    f.list(
        "Maintainers",
        "maintainers",
        "[]*chart.Maintainer",
        metadata.maintainers.iter().map(maintainer).collect(),
    );
    f.text("Icon", "icon", &metadata.icon);
    f.text("APIVersion", "apiVersion", &metadata.api_version);
    f.text("Condition", "condition", &metadata.condition);
    f.text("Tags", "tags", &metadata.tags);
    f.text("AppVersion", "appVersion", &metadata.app_version);
    f.add("Deprecated", "deprecated", Value::Bool(metadata.deprecated));
    let annotations: Entries =
        metadata.annotations.iter().map(|(k, v)| (Str::from(k.as_str()), Value::str(v.as_str()))).collect();
    let annotations = if annotations.is_empty() {
        Map::nil(MapType::Str)
    } else {
        Map::with_type(MapType::Str, annotations)
    };
    f.add("Annotations", "annotations", Value::Map(annotations));
    f.text("KubeVersion", "kubeVersion", &metadata.kube_version);
    f.list(
        "Dependencies",
        "dependencies",
        "[]*chart.Dependency",
        dependencies.iter().map(dependency).collect(),
    );
    f.text("Type", "type", &metadata.chart_type);
    Value::object(ChartObject { metadata: f.finish("chart.Metadata"), is_root })
}

/// The value of `.Chart` in Helm 4: plain tables, so that a missing field is empty instead of an error.
pub(crate) fn chart_table(
    metadata: &Metadata,
    name: &str,
    dependencies: &[Dependency],
    is_root: bool,
) -> Value {
    let object = chart(metadata, name, dependencies, is_root);
    let fields = object.as_object::<ChartObject>().and_then(|chart| chart.metadata.as_object::<Struct>());
    let fields = fields.map(|fields| fields.fields.clone()).unwrap_or_default();
    let mut table: Vec<(&'static str, Value)> =
        fields.into_iter().map(|(name, value)| (name, as_table(&value))).collect();
    table.push(("IsRoot", Value::Bool(is_root)));
    Value::Map(table.into_iter().collect())
}

fn as_table(value: &Value) -> Value {
    if let Some(object) = value.as_object::<Struct>() {
        let fields = object.fields.iter().map(|(name, value)| (*name, as_table(value)));
        return Value::Map(fields.collect());
    }
    match value {
        Value::List(list) => Value::List(List::new(list.items().iter().map(as_table).collect())),
        other => other.clone(),
    }
}

fn maintainer(m: &Maintainer) -> Value {
    let mut f = Fields::default();
    f.text("Name", "name", &m.name);
    f.text("Email", "email", &m.email);
    f.text("URL", "url", &m.url);
    f.finish("*chart.Maintainer")
}

fn dependency(d: &Dependency) -> Value {
    let mut f = Fields::default();
    f.always("Name", "name", &d.name);
    f.text("Version", "version", &d.version);
    f.always("Repository", "repository", &d.repository);
    f.text("Condition", "condition", &d.condition);
    f.texts("Tags", "tags", &d.tags);
    f.add("Enabled", "enabled", Value::Bool(d.enabled));
    let imports: Vec<Value> = d.import_values.iter().map(import_value).collect();
    let imports = if imports.is_empty() { List::nil(ListType::Any) } else { List::new(imports) };
    f.add("ImportValues", "import-values", Value::List(imports));
    f.text("Alias", "alias", &d.alias);
    f.finish("*chart.Dependency")
}

fn import_value(import: &ImportValue) -> Value {
    match import {
        ImportValue::Export(name) => Value::str(name.as_str()),
        ImportValue::Other => Value::Nil,
        ImportValue::Table { child, parent } => {
            let entries = [("child", child), ("parent", parent)];
            let entries = entries.into_iter().map(|(k, v)| (Str::from(k), Value::str(v.as_str()))).collect();
            Value::Map(Map::with_type(MapType::Str, entries))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chart_is_a_table_in_helm_4() {
        let metadata = Metadata {
            version: "1.0.0".into(),
            maintainers: vec![Maintainer { name: "me".into(), ..Maintainer::default() }],
            ..Metadata::default()
        };
        let Value::Map(chart) = chart_table(&metadata, "app", &[], true) else { panic!("a table") };
        let field = |name: &str| chart.borrow().get(&Str::from(name)).cloned();
        assert_eq!(
            field("Name").and_then(|v| v.as_str().map(|s| s.to_text().into_owned())).as_deref(),
            Some("app")
        );
        assert!(matches!(field("IsRoot"), Some(Value::Bool(true))));
        let Some(Value::List(maintainers)) = field("Maintainers") else { panic!("a list") };
        assert!(matches!(maintainers.items(), [Value::Map(_)]));
        assert!(matches!(field("Keywords"), Some(Value::List(list)) if list.is_empty() && !list.is_nil()));
        assert!(field("Metadata").is_none());
    }
}
