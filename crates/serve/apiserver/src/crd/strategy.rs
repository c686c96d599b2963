//! The strategy of a custom resource, made from its schema.

use std::sync::Arc;

use fl_builtin::{Column, ScalePaths, Strategy, StrategyContext};
use fl_schema::{FieldError, FieldErrorKind, Schema};
use serde_json::Value;

use super::printer_columns::{self, PrinterColumn};
use crate::object;

/// One version of one definition.
#[derive(Debug)]
pub(crate) struct CustomResourceStrategy {
    api_version: String,
    storage_version: String,
    /// Every version of the definition, served or not.
    versions: Vec<String>,
    kind: String,
    schema: Arc<Schema>,
    /// The schema as JSON text: rarely needed, and large when parsed.
    source: String,
    served: Arc<Schema>,
    rules: Option<fl_cel::Validator>,
    storage_schema: Option<Arc<Schema>>,
    has_defaults: bool,
    has_status: bool,
    columns: Vec<PrinterColumn>,
    scale: Option<ScalePaths>,
    selectable: Vec<String>,
    warning: Option<String>,
    terminating: bool,
}

impl CustomResourceStrategy {
    pub(crate) fn new(definition: &Value, version: &Value, group: &str, kind: &str, storage: &str) -> Self {
        let name = version.get("name").and_then(Value::as_str).unwrap_or_default();
        let json = version.pointer("/schema/openAPIV3Schema").cloned().unwrap_or_else(
            || serde_json::json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
        );
        let preserve =
            definition.pointer("/spec/preserveUnknownFields").and_then(Value::as_bool).unwrap_or(false);
        let schema = Schema::from_json(&json).unwrap_or_else(|_| {
            // Validation rejects a schema that cannot be parsed; definitions stored before that validation
            // keep all fields.
            Schema::from_json(
                &serde_json::json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
            )
            .expect("a schema that allows everything")
        });
        let _ = preserve;
        let text = |pointer: &str| version.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let scale = version.pointer("/subresources/scale").filter(|s| !s.is_null()).map(|_| ScalePaths {
            spec: text("/subresources/scale/specReplicasPath").unwrap_or_default(),
            status: text("/subresources/scale/statusReplicasPath").unwrap_or_default(),
            selector: text("/subresources/scale/labelSelectorPath"),
        });
        let deprecated = version.get("deprecated").and_then(Value::as_bool) == Some(true);
        let api_version = format!("{group}/{name}");
        Self {
            warning: deprecated.then(|| {
                text("/deprecationWarning").unwrap_or_else(|| default_warning(definition, group, name, kind))
            }),
            storage_version: format!("{group}/{storage}"),
            versions: definition
                .pointer("/spec/versions")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(|v| Some(format!("{group}/{}", v.get("name")?.as_str()?)))
                .collect(),
            kind: kind.to_owned(),
            has_defaults: json_has_default(&json),
            source: json.to_string(),
            storage_schema: (name != storage)
                .then(|| storage_schema(definition, storage))
                .flatten()
                .map(Arc::new),
            has_status: version.pointer("/subresources/status").is_some_and(|s| !s.is_null()),
            served: Arc::new(schema.served()),
            rules: fl_cel::Validator::new(&fl_schema::Node::new(schema.clone())),
            schema: Arc::new(schema),
            columns: printer_columns::read(version),
            scale,
            selectable: version
                .get("selectableFields")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(|f| f.get("jsonPath").and_then(Value::as_str))
                .map(|p| p.trim_start_matches('.').to_owned())
                .collect(),
            terminating: super::is_terminating(definition),
            api_version,
        }
    }

    /// The warning for requests of a deprecated version.
    pub(crate) fn deprecation(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    fn check(&self, object: &Value, old: Option<&Value>, prefix: &str) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if prefix == "status" {
            let none = Value::Null;
            let (status, old_status) =
                (object.get("status"), old.and_then(|o| o.get("status")).unwrap_or(&none));
            if let (Some(status), Some(schema)) = (status, self.schema.property("status")) {
                let old_status = (!old_status.is_null()).then_some(old_status);
                errors.extend(fl_schema::validate(status, old_status, schema.schema(), "status"));
            }
        } else {
            errors.extend(fl_schema::validate(object, old, &self.schema, ""));
            errors.extend(fl_schema::check_list_types(object, &self.schema));
            errors.extend(fl_schema::check_embedded(
                object,
                &self.schema,
                &crate::verbs::metadata::check_embedded,
            ));
        }
        let Some(rules) = &self.rules else { return errors };
        if errors.iter().any(|e| blocks_rules(e.kind)) {
            errors.push(FieldError {
                kind: FieldErrorKind::Invalid,
                field: "<nil>".to_owned(),
                value: Some("null".to_owned()),
                detail: "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation".to_owned(),
            });
        } else {
            errors.extend(rules.validate(object, old).0);
        }
        errors
    }
}

/// Whether an error keeps the CEL rules from being evaluated.
fn blocks_rules(kind: FieldErrorKind) -> bool {
    matches!(
        kind,
        FieldErrorKind::NotSupported
            | FieldErrorKind::Required
            | FieldErrorKind::TooLong
            | FieldErrorKind::TooMany
            | FieldErrorKind::TypeInvalid
    )
}

fn storage_schema(definition: &Value, storage: &str) -> Option<Schema> {
    let versions = definition.pointer("/spec/versions")?.as_array()?;
    let stored = versions.iter().find(|v| v["name"] == storage)?;
    Schema::from_json(stored.pointer("/schema/openAPIV3Schema")?).ok()
}

fn default_warning(definition: &Value, group: &str, version: &str, kind: &str) -> String {
    let served = |v: &&Value| {
        v.get("served").and_then(Value::as_bool) == Some(true)
            && v.get("deprecated").and_then(Value::as_bool) != Some(true)
    };
    let mut better: Vec<&str> = definition
        .pointer("/spec/versions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter(served)
        .filter_map(|v| v.get("name").and_then(Value::as_str))
        .filter(|v| crate::discovery::version_rank(v) < crate::discovery::version_rank(version))
        .collect();
    better.sort_by_key(|v| crate::discovery::version_rank(v));
    match better.first() {
        Some(other) => format!("{group}/{version} {kind} is deprecated; use {group}/{other} {kind}"),
        None => format!("{group}/{version} {kind} is deprecated"),
    }
}

fn json_has_default(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => map.iter().any(|(k, v)| k == "default" || json_has_default(v)),
        Value::Array(list) => list.iter().any(json_has_default),
        _ => false,
    }
}

impl Strategy for CustomResourceStrategy {
    fn is_custom(&self) -> bool {
        true
    }

    fn has_version(&self, api_version: &str) -> bool {
        self.versions.iter().any(|known| known == api_version)
    }

    fn schema(&self) -> Option<Arc<Schema>> {
        Some(self.schema.clone())
    }

    fn openapi(&self) -> Option<Value> {
        serde_json::from_str(&self.source).ok()
    }

    fn merge_schema(&self) -> Option<Arc<Schema>> {
        Some(self.served.clone())
    }

    fn default(&self, object: &mut Value) {
        if self.has_defaults {
            fl_schema::default(object, &self.schema);
        }
    }

    fn prepare_for_create(&self, cx: StrategyContext<'_>, object: &mut Value) {
        if cx.has_status {
            fl_builtin::remove_status(object);
            // The removed status gets its defaults, as reads show it.
            self.default(object);
        }
    }

    fn warnings(&self, _cx: StrategyContext<'_>, object: &Value, old: Option<&Value>) -> Vec<String> {
        // Errors in unchanged fields become warnings (ratcheting).
        match (&self.rules, old) {
            (Some(rules), Some(_)) => rules.validate(object, old).1,
            _ => Vec::new(),
        }
    }

    fn prepare_for_status_update(&self, _cx: StrategyContext<'_>, object: &mut Value, old: &Value) {
        // Only the status and the managed fields are taken from the request.
        let status = object.get("status").cloned();
        let managed = object.get("metadata").and_then(|m| m.get("managedFields")).cloned();
        *object = old.clone();
        let Some(map) = object.as_object_mut() else { return };
        match status {
            Some(status) => {
                map.insert("status".to_owned(), status);
            }
            None => {
                map.remove("status");
            }
        }
        match managed {
            Some(managed) => object::set_meta(object, "managedFields", managed),
            None => {
                object::remove_meta(object, "managedFields");
            }
        }
    }

    fn validate_create(&self, _cx: StrategyContext<'_>, object: &Value) -> Vec<FieldError> {
        let mut errors = self.check(object, None, "");
        errors.extend(self.check_scale(object));
        errors
    }

    fn validate_update(&self, _cx: StrategyContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = self.check(object, Some(old), "");
        errors.extend(self.check_scale(object));
        errors
    }

    fn validate_status_update(
        &self,
        _cx: StrategyContext<'_>,
        object: &Value,
        old: &Value,
    ) -> Vec<FieldError> {
        self.check(object, Some(old), "status")
    }

    fn checks_metadata_twice(&self) -> bool {
        false
    }

    fn allow_create_on_update(&self) -> bool {
        false
    }

    fn allow_unconditional_update(&self) -> bool {
        false
    }

    fn refuses_creation(&self) -> Option<String> {
        self.terminating
            .then(|| "create not allowed while custom resource definition is terminating".to_owned())
    }

    fn request_warning(&self) -> Option<&str> {
        self.deprecation()
    }

    fn scale_paths(&self) -> Option<ScalePaths> {
        self.scale.clone()
    }

    fn selectable_labels(&self) -> Vec<String> {
        self.selectable.clone()
    }

    fn selectable_fields(&self, object: &Value) -> Vec<(String, String)> {
        let text = |path: &str| {
            let value = path.split('.').try_fold(object, |v, p| v.get(p));
            match value {
                Some(Value::String(s)) => s.clone(),
                Some(Value::Null) | None => String::new(),
                Some(other) => other.to_string(),
            }
        };
        self.selectable.iter().map(|p| (p.clone(), text(p))).collect()
    }

    fn columns(&self) -> Vec<Column> {
        printer_columns::definitions(&self.columns)
    }

    fn cells(&self, object: &Value, now: i64) -> Vec<Value> {
        printer_columns::cells(&self.columns, object, now)
    }

    fn read_from_storage(&self, mut object: Value) -> Value {
        // Defaults of the storage version apply on read; those of another served version only to requests.
        let stored = object.get("apiVersion").and_then(Value::as_str) == Some(self.storage_version.as_str());
        if let Some(schema) = self.storage_schema.as_deref().filter(|_| stored) {
            fl_schema::prune_nulls(&mut object, Some(schema));
            fl_schema::default(&mut object, schema);
        }
        if let Some(map) = object.as_object_mut() {
            map.insert("apiVersion".to_owned(), Value::from(self.api_version.as_str()));
            map.insert("kind".to_owned(), Value::from(self.kind.as_str()));
        }
        fl_schema::prune(&mut object, &self.schema);
        if self.has_defaults && self.storage_schema.is_none() {
            // Nulls that have a default are removed first, as for requests.
            fl_schema::prune_nulls(&mut object, Some(&self.schema));
            fl_schema::default(&mut object, &self.schema);
        }
        object
    }

    fn to_storage(&self, mut object: Value) -> Value {
        if let Some(map) = object.as_object_mut() {
            map.insert("apiVersion".to_owned(), Value::from(self.storage_version.as_str()));
        }
        if let Some(schema) = &self.storage_schema {
            fl_schema::prune(&mut object, schema);
        }
        object
    }

    fn stored_as_served(&self) -> bool {
        false
    }
}

impl CustomResourceStrategy {
    fn check_scale(&self, object: &Value) -> Vec<FieldError> {
        let Some(paths) = &self.scale else { return Vec::new() };
        let mut errors = Vec::new();
        for path in [&paths.spec, &paths.status] {
            let value = path.split('.').filter(|p| !p.is_empty()).try_fold(object, |v, p| v.get(p));
            if let Some(n) = value.and_then(Value::as_i64).filter(|n| *n < 0) {
                errors.push(FieldError::invalid(
                    path.as_str(),
                    &Value::from(n),
                    "should be a non-negative integer",
                ));
            }
        }
        let _ = self.has_status;
        errors
    }
}
