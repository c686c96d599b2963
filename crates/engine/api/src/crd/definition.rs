//! CRDs: names, versions, columns and the schema of the types.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::structural_schema;
use crate::resource::{ObjectSchema, Resource, Scope};

/// The definition of a kind for its CRD. Built by the file of the kind.
#[derive(Clone, Debug)]
pub struct Definition {
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    versions: &'static [&'static str],
    scope: Scope,
    spec: Value,
    status: Option<Value>,
    short_names: &'static [&'static str],
    categories: &'static [&'static str],
    annotations: Vec<(&'static str, &'static str)>,
    labels: Vec<(&'static str, &'static str)>,
    columns: Vec<Column>,
    selectable: Vec<&'static str>,
    rules: Vec<(&'static str, &'static str)>,
    status_subresource: bool,
    unobserved_until_reconciled: bool,
    spec_required: bool,
}

/// A column of `kubectl get`.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    name: &'static str,
    r#type: &'static str,
    path: &'static str,
    priority: i32,
}

impl Column {
    /// A column that is always shown.
    #[must_use]
    pub const fn new(name: &'static str, r#type: &'static str, path: &'static str) -> Self {
        Column { name, r#type, path, priority: 0 }
    }

    /// With a priority above zero it is only shown with `-o wide`.
    #[must_use]
    pub const fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    fn to_json(self) -> Value {
        let mut column = json!({"name": self.name, "type": self.r#type, "jsonPath": self.path});
        if self.priority != 0 {
            column["priority"] = json!(self.priority);
        }
        column
    }
}

fn generator() -> SchemaGenerator {
    let settings = SchemaSettings::draft07().with(|s| {
        s.inline_subschemas = true;
        s.meta_schema = None;
    });
    settings.into_generator()
}

impl Definition {
    /// The definition of a kind with the schemas of its types, without columns and the like.
    pub(crate) fn of<R: Resource + ObjectSchema>() -> Self {
        Definition {
            group: R::GROUP,
            kind: R::KIND,
            plural: R::PLURAL,
            versions: R::VERSIONS,
            scope: R::SCOPE,
            spec: structural_schema(R::spec_schema(&mut generator())),
            status: R::status_schema(&mut generator()).map(structural_schema),
            short_names: &[],
            categories: &[],
            annotations: Vec::new(),
            labels: Vec::new(),
            columns: Vec::new(),
            selectable: Vec::new(),
            rules: Vec::new(),
            status_subresource: false,
            unobserved_until_reconciled: false,
            spec_required: false,
        }
    }

    pub(crate) fn short_names(mut self, names: &'static [&'static str]) -> Self {
        self.short_names = names;
        self
    }

    pub(crate) fn categories(mut self, categories: &'static [&'static str]) -> Self {
        self.categories = categories;
        self
    }

    pub(crate) fn annotation(mut self, key: &'static str, value: &'static str) -> Self {
        self.annotations.push((key, value));
        self
    }

    pub(crate) fn label(mut self, key: &'static str, value: &'static str) -> Self {
        self.labels.push((key, value));
        self
    }

    pub(crate) fn column(mut self, column: Column) -> Self {
        self.columns.push(column);
        self
    }

    /// Adds a selectable field.
    pub(crate) fn selectable(mut self, path: &'static str) -> Self {
        self.selectable.push(path);
        self
    }

    /// Adds a CEL rule on the whole object.
    pub(crate) fn rule(mut self, rule: &'static str, message: &'static str) -> Self {
        self.rules.push((rule, message));
        self
    }

    pub(crate) fn status_subresource(mut self) -> Self {
        self.status_subresource = true;
        self
    }

    /// New objects have `observedGeneration: -1`, so that clients do not take them for reconciled.
    pub(crate) fn unobserved_until_reconciled(mut self) -> Self {
        self.unobserved_until_reconciled = true;
        self
    }

    pub(crate) fn spec_required(mut self) -> Self {
        self.spec_required = true;
        self
    }

    /// `plural.group`, the name of the CRD.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    /// API group.
    #[must_use]
    pub fn group(&self) -> &'static str {
        self.group
    }

    /// Kind.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// Plural.
    #[must_use]
    pub fn plural(&self) -> &'static str {
        self.plural
    }

    /// Served versions, the stored one first.
    #[must_use]
    pub fn versions(&self) -> &'static [&'static str] {
        self.versions
    }

    /// The CRD as an object for the API server.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut metadata = json!({"name": self.name()});
        for (key, pairs) in [("annotations", &self.annotations), ("labels", &self.labels)] {
            if !pairs.is_empty() {
                metadata[key] =
                    pairs.iter().map(|(k, v)| ((*k).to_owned(), json!(v))).collect::<Map<_, _>>().into();
            }
        }
        let mut names = json!({
            "kind": self.kind,
            "listKind": format!("{}List", self.kind),
            "plural": self.plural,
            "singular": self.kind.to_lowercase(),
        });
        if !self.short_names.is_empty() {
            names["shortNames"] = json!(self.short_names);
        }
        if !self.categories.is_empty() {
            names["categories"] = json!(self.categories);
        }
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": metadata,
            "spec": {
                "group": self.group,
                "names": names,
                "scope": match self.scope { Scope::Namespaced => "Namespaced", Scope::Cluster => "Cluster" },
                "versions": self.versions.iter().map(|v| self.version_json(v)).collect::<Vec<_>>(),
            },
        })
    }

    fn version_json(&self, name: &str) -> Value {
        let stored = name == self.versions[0];
        let mut version = json!({
            "name": name,
            "served": true,
            "storage": stored,
            "schema": {"openAPIV3Schema": self.root_schema()},
        });
        if !stored {
            version["deprecated"] = json!(true);
            let newest = self.versions[0];
            version["deprecationWarning"] =
                json!(format!("{name} {} is deprecated, upgrade to {newest}", self.kind));
        }
        if !self.columns.is_empty() {
            let columns = self.columns.iter().map(|c| c.to_json());
            version["additionalPrinterColumns"] = columns.collect::<Vec<_>>().into();
        }
        if !self.selectable.is_empty() {
            let fields = self.selectable.iter().map(|path| json!({"jsonPath": path}));
            version["selectableFields"] = fields.collect::<Vec<_>>().into();
        }
        if self.status_subresource {
            version["subresources"] = json!({"status": {}});
        }
        version
    }

    /// All versions have the same fields, so no conversion is needed.
    fn root_schema(&self) -> Value {
        let text = |description: &str| json!({"type": "string", "description": description});
        let mut root = json!({
            "type": "object",
            "description": format!("{} of the group {}.", self.kind, self.group),
            "properties": {
                "apiVersion": text("API group and version of this object."),
                "kind": text("Kind of this object."),
                "metadata": {"type": "object"},
                "spec": self.spec,
            },
        });
        if let Some(status) = &self.status {
            let mut status = status.clone();
            if self.unobserved_until_reconciled {
                status["default"] = json!({"observedGeneration": -1});
            }
            root["properties"]["status"] = status;
        }
        if self.spec_required {
            root["required"] = json!(["spec"]);
        }
        if !self.rules.is_empty() {
            let rules = self.rules.iter().map(|(rule, message)| json!({"rule": rule, "message": message}));
            root["x-kubernetes-validations"] = rules.collect::<Vec<_>>().into();
        }
        root
    }
}
