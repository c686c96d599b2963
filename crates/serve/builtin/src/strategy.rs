//! The rules of one resource type, in the shape of Kubernetes' rest strategies.

use std::fmt;
use std::sync::Arc;

use fl_schema::FieldError;
use serde_json::Value;

/// The fields behind a `scale` subresource, as paths such as `.spec.replicas`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScalePaths {
    pub spec: String,
    pub status: String,
    /// The field that holds the label selector.
    pub selector: Option<String>,
}

/// One column of a Table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub kind: String,
    /// `name` for the name column, otherwise usually empty.
    pub format: String,
    pub description: String,
    /// 0 is always shown, 1 only in wide output.
    pub priority: i32,
}

/// What a strategy knows of the request.
#[derive(Debug, Clone, Copy)]
pub struct StrategyContext<'a> {
    /// Whether `status` is a subresource of the served type.
    pub has_status: bool,
    /// The subresource written through, empty for the main endpoint.
    pub subresource: &'a str,
    /// RFC 3339 time of the request, seconds precision.
    pub now: &'a str,
}

/// The rules of one resource type. The default of every method is the rule that most types follow. Objects
/// are in the served version, except in [`Strategy::to_storage`] (output) and [`Strategy::read_from_storage`]
/// (input).
///
/// Order of a write: decode (strict checks) -> `default` -> `prepare_*` -> `validate_*` -> store.
pub trait Strategy: Send + Sync + fmt::Debug {
    /// True for types of CustomResourceDefinitions.
    fn is_custom(&self) -> bool {
        false
    }

    /// The schema used for strict decoding, apply and patch; `None` means untyped (everything is kept).
    fn schema(&self) -> Option<Arc<fl_schema::Schema>> {
        None
    }

    /// The schema for apply and managed fields: [`Strategy::schema`] with the metadata of every object.
    fn merge_schema(&self) -> Option<Arc<fl_schema::Schema>> {
        self.schema()
    }

    /// The schema as in the CustomResourceDefinition, for OpenAPI documents.
    fn openapi(&self) -> Option<Value> {
        None
    }

    /// Converts an object to the JSON that its Go type encodes to: no empty optional fields, no missing
    /// mandatory ones. Called after decoding and again before storing.
    fn normalize(&self, _object: &mut Value) {}

    /// Fills in the defaults of the served version.
    fn default(&self, _object: &mut Value) {}

    /// Whether a new object shares the labels of its pod template, including those the server adds to them
    /// later.
    fn shares_labels(&self, _object: &Value) -> bool {
        false
    }

    /// Called before create: removes fields that clients may not set (status), sets fields that the server
    /// owns.
    fn prepare_for_create(&self, cx: StrategyContext<'_>, object: &mut Value) {
        if cx.has_status {
            remove_status(object);
        }
    }

    /// Called before an update through the main endpoint: keeps the stored status.
    fn prepare_for_update(&self, cx: StrategyContext<'_>, object: &mut Value, old: &Value) {
        if cx.has_status {
            copy_field(object, old, "status");
        }
    }

    /// Called before an update through `status`: keeps the stored spec. Labels, annotations and finalizers
    /// stay writable for built-in types, as upstream has it.
    fn prepare_for_status_update(&self, _cx: StrategyContext<'_>, object: &mut Value, old: &Value) {
        copy_field(object, old, "spec");
    }

    /// Validates a new object without its metadata, which the server validates itself.
    fn validate_create(&self, _cx: StrategyContext<'_>, _object: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    /// Validates an update without the metadata, including the rules of `validate_create` that hold for
    /// updates.
    fn validate_update(&self, _cx: StrategyContext<'_>, _object: &Value, _old: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    fn validate_status_update(
        &self,
        _cx: StrategyContext<'_>,
        _object: &Value,
        _old: &Value,
    ) -> Vec<FieldError> {
        Vec::new()
    }

    /// The `Warning` headers of a write (`old` is `None` on create).
    fn warnings(&self, _cx: StrategyContext<'_>, _object: &Value, _old: Option<&Value>) -> Vec<String> {
        Vec::new()
    }

    /// Validates the name of an object, or a `generateName` if `prefix` is set. Returns the error messages.
    fn validate_name(&self, name: &str, prefix: bool) -> Vec<String> {
        crate::name_validation::dns1123_subdomain(name, prefix)
    }

    /// Whether the type's own validation repeats that of immutable metadata, as most do: its errors are
    /// listed twice.
    fn checks_metadata_twice(&self) -> bool {
        true
    }

    /// Removes what the stored form does not keep: the difference between an empty list and an absent one.
    fn seal(&self, _object: &mut Value) {}

    /// [`Self::default`] and [`Self::seal`] in one step.
    fn default_and_seal(&self, object: &mut Value) {
        self.default(object);
        self.seal(object);
    }

    /// Whether the type has a version, served or not.
    fn has_version(&self, _api_version: &str) -> bool {
        true
    }

    /// Whether the type's own validation of updates repeats all of the metadata validation.
    fn repeats_metadata(&self) -> bool {
        false
    }

    /// JSON pointer of the metadata field whose change increments the generation.
    fn metadata_moves_generation(&self) -> Option<&'static str> {
        None
    }

    /// Why objects cannot be created at the moment, if so.
    fn refuses_creation(&self) -> Option<String> {
        None
    }

    /// The `Warning` header of every request for the type.
    fn request_warning(&self) -> Option<&str> {
        None
    }

    /// Whether `metadata.generation` is set, and incremented by every change outside metadata and status.
    fn has_generation(&self) -> bool {
        true
    }

    /// Whether changes increment `metadata.generation`; some types only set it on create.
    fn moves_generation(&self) -> bool {
        self.has_generation()
    }

    /// Whether PUT to a name that does not exist creates it.
    fn allow_create_on_update(&self) -> bool {
        false
    }

    /// Whether PUT without a resourceVersion overwrites.
    fn allow_unconditional_update(&self) -> bool {
        true
    }

    /// The default grace period in seconds; `None` deletes at once (all but Pods).
    fn default_grace_seconds(&self, _object: &Value) -> Option<i64> {
        None
    }

    /// The fields of the `scale` subresource; `None` if the type has none.
    fn scale_paths(&self) -> Option<ScalePaths> {
        None
    }

    /// Whether the response to an immediate deletion is the object instead of a Status.
    fn returns_deleted_object(&self) -> bool {
        false
    }

    /// The default propagation policy: `Background`, or `Orphan` for legacy types.
    fn default_propagation(&self) -> &'static str {
        "Background"
    }

    /// Fields and values of an object for field selectors, besides `metadata.name` and `metadata.namespace`.
    fn selectable_fields(&self, _object: &Value) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Fields accepted in a field selector, besides `metadata.name` and `metadata.namespace`.
    fn selectable_labels(&self) -> Vec<String> {
        Vec::new()
    }

    /// Columns of Table output.
    fn columns(&self) -> Vec<Column> {
        vec![
            Column {
                name: "Name".into(),
                kind: "string".into(),
                format: "name".into(),
                description: String::new(),
                priority: 0,
            },
            Column {
                name: "Created At".into(),
                kind: "date".into(),
                format: String::new(),
                description: String::new(),
                priority: 0,
            },
        ]
    }

    /// The cells of one row, as many as there are columns. `now` is Unix seconds, for ages.
    fn cells(&self, object: &Value, _now: i64) -> Vec<Value> {
        let text = |pointer: &str| object.pointer(pointer).cloned().unwrap_or(Value::Null);
        vec![text("/metadata/name"), text("/metadata/creationTimestamp")]
    }

    /// Converts the stored form to the served version.
    fn read_from_storage(&self, object: Value) -> Value {
        object
    }

    /// Converts the served version to the stored form.
    fn to_storage(&self, object: Value) -> Value {
        object
    }

    /// Whether `read_from_storage` is the identity, so that stored bytes can be sent without decoding.
    fn stored_as_served(&self) -> bool {
        true
    }
}

/// The strategy of a type without rules of its own.
#[derive(Debug, Clone, Copy, Default)]
pub struct DefaultStrategy;

impl Strategy for DefaultStrategy {}

/// Removes `status` from an object.
pub fn remove_status(object: &mut Value) {
    if let Some(map) = object.as_object_mut() {
        map.remove("status");
    }
}

/// Copies `field` from `old`; removes it if `old` has none.
pub fn copy_field(object: &mut Value, old: &Value, field: &str) {
    let Some(map) = object.as_object_mut() else { return };
    match old.get(field) {
        Some(value) => {
            map.insert(field.to_owned(), value.clone());
        }
        None => {
            map.remove(field);
        }
    }
}
