//! What the server knows about one resource type, built-in or custom, and the hooks a type may fill in.

use std::fmt;
use std::sync::Arc;

use fl_schema::FieldError;
use serde_json::Value;

/// The static description of one served resource (one group, version and plural).
#[derive(Debug, Clone)]
pub struct ResourceType {
    /// Empty for the core group.
    pub group: String,
    pub version: String,
    pub kind: String,
    pub list_kind: String,
    pub plural: String,
    pub singular: String,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
    pub namespaced: bool,
    /// Verbs in discovery order; a verb not listed answers 405.
    pub verbs: Vec<String>,
    /// `status`, `scale`, and the ones with a meaning of their own (`token`, `eviction`, `binding`, …).
    pub subresources: Vec<Subresource>,
    /// Version objects are stored in; all versions of a resource share one place in the store.
    pub storage: StorageKey,
    pub strategy: Arc<dyn Strategy>,
    /// Who converts between the versions, where it takes more than changing `apiVersion`.
    pub(crate) conversion: Option<Arc<crate::crd::convert::Webhook>>,
}

/// Where the objects of a resource live and in which form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageKey {
    /// `group/plural`: the prefix of the keys.
    pub prefix: String,
    /// apiVersion of the stored form.
    pub api_version: String,
    /// kind of the stored form (differs from the served kind for `Scale`-like views only).
    pub kind: String,
}

/// A subresource and the kind it answers with.
#[derive(Debug, Clone)]
pub struct Subresource {
    pub name: String,
    pub group: String,
    pub version: String,
    pub kind: String,
    pub verbs: Vec<String>,
}

impl ResourceType {
    /// `v1` or `apps/v1`.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// `deployments.apps`, or `pods` in the core group: how messages name the resource.
    #[must_use]
    pub fn group_resource(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// `Deployment.apps`, or `Pod` in the core group: how messages name the kind.
    #[must_use]
    pub fn group_kind(&self) -> String {
        if self.group.is_empty() { self.kind.clone() } else { format!("{}.{}", self.kind, self.group) }
    }

    /// True for types of CustomResourceDefinitions.
    #[must_use]
    pub fn is_custom(&self) -> bool {
        self.strategy.is_custom()
    }

    #[must_use]
    pub fn has_verb(&self, verb: &str) -> bool {
        self.verbs.iter().any(|v| v == verb)
    }

    #[must_use]
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|s| s.name == name)
    }

    /// True where `status` is a subresource: the main endpoint then keeps the stored status.
    #[must_use]
    pub fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }
}

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

/// What goes into a decision beside the object itself.
#[derive(Debug, Clone, Copy)]
pub struct StrategyContext<'a> {
    /// The served type the request came in through.
    pub resource: &'a ResourceType,
    /// The subresource written through, empty for the main endpoint.
    pub subresource: &'a str,
    /// RFC 3339 time of the request, seconds precision.
    pub now: &'a str,
}

/// The rules of one type. Every method has the rule that most types follow as its default, so that a type
/// only states where it differs. Objects are in the served version of [`ResourceType`] everywhere except in
/// [`Strategy::to_storage`] (out) and [`Strategy::read_from_storage`] (in).
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

    /// The schema apply and field tracking use: [`Strategy::schema`] with the metadata every object has.
    fn merge_schema(&self) -> Option<Arc<fl_schema::Schema>> {
        self.schema()
    }

    /// The schema as a definition wrote it, for OpenAPI documents.
    fn openapi(&self) -> Option<Value> {
        None
    }

    /// Brings an object into the form its Go type would be written in: no empty optional fields, no missing
    /// mandatory ones. Called after decoding and again before storing.
    fn normalize(&self, _object: &mut Value) {}

    /// Fills in the defaults of the served version.
    fn default(&self, _object: &mut Value) {}

    /// Whether a new object has the labels of its template for its own, also those the server adds to them later.
    fn shares_labels(&self, _object: &Value) -> bool {
        false
    }

    /// Before the first write: drop what a client may not set (status), set what the server sets.
    fn prepare_for_create(&self, cx: StrategyContext<'_>, object: &mut Value) {
        if cx.resource.has_status() {
            remove_status(object);
        }
    }

    /// Before a later write through the main endpoint: keep the stored status.
    fn prepare_for_update(&self, cx: StrategyContext<'_>, object: &mut Value, old: &Value) {
        if cx.resource.has_status() {
            copy_field(object, old, "status");
        }
    }

    /// Before a write through `status`: keep everything but the status (metadata's labels, annotations and
    /// finalizers stay writable for built-in types as upstream has it).
    fn prepare_for_status_update(&self, _cx: StrategyContext<'_>, object: &mut Value, old: &Value) {
        copy_field(object, old, "spec");
    }

    /// Rules on a new object, metadata excluded (the server checks metadata itself).
    fn validate_create(&self, _cx: StrategyContext<'_>, _object: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    /// Rules on a change, metadata excluded. Must include those of `validate_create` that hold for updates.
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

    /// Texts of `Warning` headers for a write (`old` is `None` on create).
    fn warnings(&self, _cx: StrategyContext<'_>, _object: &Value, _old: Option<&Value>) -> Vec<String> {
        Vec::new()
    }

    /// How names of objects are checked: `dns1123subdomain` for most. Returns the texts of what is wrong.
    fn validate_name(&self, name: &str, prefix: bool) -> Vec<String> {
        crate::names::dns1123_subdomain(name, prefix)
    }

    /// Whether the type's own validation repeats the checks on immutable metadata (most do): their errors show twice.
    fn checks_metadata_twice(&self) -> bool {
        true
    }

    /// Forgets what storage does not keep: the difference between an empty list and none.
    fn seal(&self, _object: &mut Value) {}

    /// [`Self::default`] and [`Self::seal`] for an object that nobody looks at in between.
    fn default_and_seal(&self, object: &mut Value) {
        self.default(object);
        self.seal(object);
    }

    /// Whether the type exists in a version at all, served or not.
    fn has_version(&self, _api_version: &str) -> bool {
        true
    }

    /// Whether the type's own validation of a change repeats all rules on metadata.
    fn repeats_metadata(&self) -> bool {
        false
    }

    /// The part of the metadata whose change is a new generation, as a JSON pointer.
    fn metadata_moves_generation(&self) -> Option<&'static str> {
        None
    }

    /// Why no new objects can be made, if so.
    fn refuses_creation(&self) -> Option<String> {
        None
    }

    /// A warning every request on the type gets.
    fn request_warning(&self) -> Option<&str> {
        None
    }

    /// Whether `metadata.generation` is kept, and grows with every change outside metadata and status.
    fn has_generation(&self) -> bool {
        true
    }

    /// Whether a change moves `metadata.generation`; some types set it once and leave it.
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

    /// Seconds of grace when the caller names none; `None` deletes at once (all but Pods).
    fn default_grace_seconds(&self, _object: &Value) -> Option<i64> {
        None
    }

    /// Where `scale` reads and writes; `None` where the type has no such subresource.
    fn scale_paths(&self) -> Option<ScalePaths> {
        None
    }

    /// Whether a deletion that is done at once answers with the object instead of a Status.
    fn returns_deleted_object(&self) -> bool {
        false
    }

    /// Propagation when the caller names none: `Background`, or `Orphan` for legacy types.
    fn default_propagation(&self) -> &'static str {
        "Background"
    }

    /// Field selectors beyond `metadata.name` and `metadata.namespace`: label and value of this object.
    fn selectable_fields(&self, _object: &Value) -> Vec<(String, String)> {
        Vec::new()
    }

    /// The labels accepted in a field selector beyond `metadata.name` and `metadata.namespace`.
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

    /// The stored form as the served version shows it.
    fn read_from_storage(&self, object: Value) -> Value {
        object
    }

    /// The served form as it is stored.
    fn to_storage(&self, object: Value) -> Value {
        object
    }

    /// True where `read_from_storage` changes nothing, so that stored bytes can be sent as they are.
    fn stored_as_served(&self) -> bool {
        true
    }
}

/// A type with no rules of its own.
#[derive(Debug, Clone, Copy, Default)]
pub struct Plain;

impl Strategy for Plain {}

/// Removes `status` from an object.
pub fn remove_status(object: &mut Value) {
    if let Some(map) = object.as_object_mut() {
        map.remove("status");
    }
}

/// Makes `field` of `object` what it is in `old`, absent where it is absent there.
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
