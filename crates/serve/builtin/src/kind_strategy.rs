//! The [`Strategy`] of one built-in kind, made from its row of rules.

use fl_kubeschema::TypeDef;
use fl_schema::FieldError;
use serde_json::Value;

use crate::defaults;
use crate::field::{Errors, map_mut};
use crate::name_validation;
use crate::strategy::{Column, ScalePaths, Strategy, StrategyContext, copy_field, remove_status};
use crate::table::Printer;

/// How the names of a kind are validated.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NameRule {
    Subdomain,
    Label,
    /// A label that starts with a letter (Services).
    Label1035,
    PathSegment,
    /// Not checked (core events).
    Any,
    /// Labels of at most 52 characters, so that a suffix fits (CronJobs).
    CronJob,
}

/// The rules of one kind. Functions get objects as their Go type encodes them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) group: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) name: NameRule,
    /// Whether `metadata.generation` is set.
    pub(crate) generation: bool,
    pub(crate) unconditional_update: bool,
    pub(crate) create_on_update: bool,
    pub(crate) prepare_create: fn(StrategyContext<'_>, &mut Value),
    /// `None` keeps the stored status.
    pub(crate) prepare_update: Option<fn(StrategyContext<'_>, &mut Value, &Value)>,
    pub(crate) prepare_status: fn(StrategyContext<'_>, &mut Value, &Value),
    /// Validates a new object, and an update unless `update_alone` is set.
    pub(crate) validate: fn(&mut Errors, &Value),
    /// Validates an update, after `validate`.
    pub(crate) validate_update: fn(&mut Errors, &Value, &Value),
    /// Whether updates skip `validate`, because not all rules of create hold for updates.
    pub(crate) update_alone: bool,
    pub(crate) validate_status: fn(&mut Errors, &Value, &Value),
    pub(crate) warnings: fn(&Value, Option<&Value>) -> Vec<String>,
    /// Field selectors: field name and the JSON pointer of its value, in the form that [`field_text`] reads.
    pub(crate) fields: &'static [(&'static str, &'static str)],
    pub(crate) printer: Option<&'static Printer>,
}

fn drop_status(cx: StrategyContext<'_>, object: &mut Value) {
    if cx.has_status {
        remove_status(object);
    }
}

fn set_managed_fields(object: &mut Value, managed: Value) {
    if let Some(metadata) = map_mut(object, "metadata") {
        metadata.insert("managedFields".to_owned(), managed);
    }
}

fn remove_managed_fields(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}

fn keep_spec(_cx: StrategyContext<'_>, object: &mut Value, old: &Value) {
    copy_field(object, old, "spec");
}

/// Takes only the status and the managed fields from the request.
pub(crate) fn keep_all_but_status(_cx: StrategyContext<'_>, object: &mut Value, old: &Value) {
    copy_field(object, old, "spec");
    let managed = object.pointer("/metadata/managedFields").cloned();
    copy_field(object, old, "metadata");
    match managed {
        Some(managed) => set_managed_fields(object, managed),
        None => remove_managed_fields(object),
    }
}

impl Rules {
    pub(crate) const DEFAULT: Rules = Rules {
        group: "",
        kind: "",
        name: NameRule::Subdomain,
        generation: true,
        unconditional_update: true,
        create_on_update: false,
        prepare_create: drop_status,
        prepare_update: None,
        prepare_status: keep_spec,
        validate: |_, _| {},
        validate_update: |_, _, _| {},
        update_alone: false,
        validate_status: |_, _, _| {},
        warnings: |_, _| Vec::new(),
        fields: &[],
        printer: None,
    };
}

/// The strategy of a built-in kind: its Go type and its rules.
#[derive(Debug)]
pub(crate) struct KindStrategy {
    pub(crate) def: &'static TypeDef,
    pub(crate) version: &'static str,
    pub(crate) rules: Rules,
}

impl KindStrategy {
    /// Whether updates run the rules of create twice, once as validation of the object and once as part of
    /// the update rules, so that every error is listed twice.
    fn repeats_rules(&self) -> bool {
        matches!(
            (self.rules.group, self.rules.kind),
            ("", "PersistentVolume" | "PersistentVolumeClaim" | "ReplicationController")
                | ("rbac.authorization.k8s.io", _)
                | ("networking.k8s.io", "NetworkPolicy")
        )
    }

    /// Sets defaults, without normalizing the result.
    fn set_defaults(&self, object: &mut Value) {
        if self.rules.kind == "Secret" {
            crate::prepare::secret_string_data(object);
        }
        defaults::apply(self.def, object);
    }
}

/// Runs `convert` and keeps an empty `managedFields`, with which clients reset field managers: Go's form does
/// not distinguish it from an absent one.
fn keeping_empty_managed_fields(object: &mut Value, convert: impl FnOnce(&mut Value)) {
    let managers = object.get("metadata").and_then(|metadata| metadata.get("managedFields"));
    let emptied = managers.and_then(Value::as_array).is_some_and(Vec::is_empty);
    convert(object);
    if emptied {
        set_managed_fields(object, Value::Array(Vec::new()));
    }
}

impl Strategy for KindStrategy {
    fn schema(&self) -> Option<std::sync::Arc<fl_schema::Schema>> {
        fl_kubeschema::schema_of(self.def)
    }

    fn normalize(&self, object: &mut Value) {
        keeping_empty_managed_fields(object, |object| fl_kubeschema::normalize(self.def, object));
    }

    fn seal(&self, object: &mut Value) {
        fl_kubeschema::normalize_stored(self.def, object);
        if self.rules.kind == "CertificateSigningRequest" {
            // Upstream stores no managed fields of these.
            remove_managed_fields(object);
        }
    }

    fn scale_paths(&self) -> Option<ScalePaths> {
        let scales = matches!(
            (self.rules.group, self.rules.kind),
            ("apps", "Deployment" | "ReplicaSet" | "StatefulSet") | ("", "ReplicationController")
        );
        scales.then(|| ScalePaths {
            spec: ".spec.replicas".to_owned(),
            status: ".status.replicas".to_owned(),
            selector: Some(".spec.selector".to_owned()),
        })
    }

    fn shares_labels(&self, object: &Value) -> bool {
        // Upstream's default shares the map: labels that the server adds to the template appear on the job.
        let of = |metadata: &Value| metadata["labels"].as_object().is_some_and(|labels| !labels.is_empty());
        self.rules.kind == "Job" && !of(&object["metadata"]) && of(&object["spec"]["template"]["metadata"])
    }

    fn returns_deleted_object(&self) -> bool {
        matches!(
            (self.rules.group, self.rules.kind),
            (
                "",
                "Service"
                    | "ServiceAccount"
                    | "Pod"
                    | "PodTemplate"
                    | "PersistentVolume"
                    | "PersistentVolumeClaim"
                    | "ResourceQuota"
            ) | ("storage.k8s.io", "StorageClass" | "CSIDriver" | "CSINode" | "VolumeAttachment")
        )
    }

    fn default(&self, object: &mut Value) {
        keeping_empty_managed_fields(object, |object| {
            self.set_defaults(object);
            fl_kubeschema::normalize(self.def, object);
        });
    }

    fn default_and_seal(&self, object: &mut Value) {
        self.set_defaults(object);
        self.seal(object);
    }

    fn prepare_for_create(&self, cx: StrategyContext<'_>, object: &mut Value) {
        (self.rules.prepare_create)(cx, object);
        crate::prepare::drop_disabled_fields(self.rules.kind, object);
        // A removed status gets its defaults (phases), as from upstream's storage decoding.
        defaults::apply(self.def, object);
        self.normalize(object);
    }

    fn prepare_for_update(&self, cx: StrategyContext<'_>, object: &mut Value, old: &Value) {
        match self.rules.prepare_update {
            Some(prepare) => prepare(cx, object, old),
            None if cx.has_status => copy_field(object, old, "status"),
            // Nothing was changed: no need to normalize.
            None if !crate::prepare::has_disabled_fields(self.rules.kind) => return,
            None => {}
        }
        crate::prepare::drop_disabled_fields(self.rules.kind, object);
        self.normalize(object);
    }

    fn prepare_for_status_update(&self, cx: StrategyContext<'_>, object: &mut Value, old: &Value) {
        (self.rules.prepare_status)(cx, object, old);
        self.normalize(object);
    }

    fn validate_create(&self, _cx: StrategyContext<'_>, object: &Value) -> Vec<FieldError> {
        let mut errors = Errors::default();
        (self.rules.validate)(&mut errors, object);
        errors.0
    }

    fn validate_update(&self, cx: StrategyContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        let mut errors = Errors::default();
        match cx.subresource {
            "ephemeralcontainers" => {
                crate::validate::ephemeral_containers(&mut errors, object, old);
                return errors.0;
            }
            "resize" => {
                crate::validate::pod_resize(&mut errors, object, old);
                return errors.0;
            }
            "approval" => crate::validate::signing_request_approval(&mut errors, object, old),
            _ => {}
        }
        if !self.rules.update_alone {
            (self.rules.validate)(&mut errors, object);
        }
        if self.repeats_rules() {
            (self.rules.validate)(&mut errors, object);
        }
        (self.rules.validate_update)(&mut errors, object, old);
        errors.0
    }

    fn validate_status_update(
        &self,
        _cx: StrategyContext<'_>,
        object: &Value,
        old: &Value,
    ) -> Vec<FieldError> {
        let mut errors = Errors::default();
        (self.rules.validate_status)(&mut errors, object, old);
        errors.0
    }

    fn warnings(&self, cx: StrategyContext<'_>, object: &Value, old: Option<&Value>) -> Vec<String> {
        match cx.subresource {
            "" | "scale" => (self.rules.warnings)(object, old),
            "status" => crate::warnings::status(object),
            _ => Vec::new(),
        }
    }

    fn request_warning(&self) -> Option<&str> {
        match (self.rules.group, self.rules.kind) {
            ("", "Endpoints") => {
                Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice")
            }
            ("", "ComponentStatus") => Some("v1 ComponentStatus is deprecated in v1.19+"),
            _ => None,
        }
    }

    fn validate_name(&self, name: &str, prefix: bool) -> Vec<String> {
        match self.rules.name {
            NameRule::Subdomain => name_validation::dns1123_subdomain(name, prefix),
            NameRule::Label => name_validation::dns1123_label(name, prefix),
            NameRule::Any => Vec::new(),
            NameRule::PathSegment => name_validation::path_segment(name, prefix),
            NameRule::Label1035 => crate::validate::common_rules::messages(fl_types::check_dns1035_label(
                &name_validation::mask_trailing_dash(name, prefix),
            )),
            NameRule::CronJob => {
                let mut found = name_validation::dns1123_subdomain(name, prefix);
                if name.len() > 52 && !prefix {
                    found.push("must be no more than 52 characters".to_owned());
                }
                found
            }
        }
    }

    fn has_generation(&self) -> bool {
        self.rules.generation
    }

    fn moves_generation(&self) -> bool {
        match self.rules.kind {
            "PriorityClass" => false,
            // Set by the first change, not on create.
            "CSIDriver" => true,
            _ => self.rules.generation,
        }
    }

    fn repeats_metadata(&self) -> bool {
        matches!(
            (self.rules.group, self.rules.kind),
            ("", "ConfigMap" | "Secret" | "Service" | "ServiceAccount" | "Endpoints")
                | ("rbac.authorization.k8s.io", _)
                | ("networking.k8s.io", "Ingress" | "IngressClass")
        )
    }

    fn metadata_moves_generation(&self) -> Option<&'static str> {
        match self.rules.kind {
            "Deployment" => Some("/metadata/annotations"),
            "EndpointSlice" => Some("/metadata/labels"),
            _ => None,
        }
    }

    fn allow_create_on_update(&self) -> bool {
        self.rules.create_on_update
    }

    fn allow_unconditional_update(&self) -> bool {
        self.rules.unconditional_update
    }

    fn default_grace_seconds(&self, object: &Value) -> Option<i64> {
        if self.rules.kind != "Pod" {
            return None;
        }
        crate::pod_strategy::grace_seconds(object)
    }

    fn default_propagation(&self) -> &'static str {
        // Compatibility with clients from before propagation policies.
        if matches!(self.rules.kind, "Job" | "ReplicationController") { "Orphan" } else { "Background" }
    }

    fn selectable_fields(&self, object: &Value) -> Vec<(String, String)> {
        self.rules
            .fields
            .iter()
            .map(|(label, pointer)| ((*label).to_owned(), field_text(object, pointer)))
            .collect()
    }

    fn selectable_labels(&self) -> Vec<String> {
        self.rules.fields.iter().map(|(label, _)| (*label).to_owned()).collect()
    }

    fn columns(&self) -> Vec<Column> {
        crate::table::columns(self.rules.printer)
    }

    fn cells(&self, object: &Value, now: i64) -> Vec<Value> {
        crate::table::cells(self.rules.printer, object, now)
    }

    fn read_from_storage(&self, object: Value) -> Value {
        crate::versions::read_from_storage(self.rules.group, self.version, self.rules.kind, object)
    }

    fn to_storage(&self, object: Value) -> Value {
        crate::versions::to_storage(self.rules.group, self.version, self.rules.kind, object)
    }

    fn stored_as_served(&self) -> bool {
        crate::versions::stored_as_served(self.rules.group, self.version, self.rules.kind)
    }
}

/// The value of a selectable field as Go prints it. `pointer` is a JSON pointer, or two separated by `|` of
/// which the second is used if the first is empty. `?` before it marks a boolean, `#` a number: both have a
/// value when unset.
fn field_text(object: &Value, pointer: &str) -> String {
    if let Some(switch) = pointer.strip_prefix('?') {
        return object.pointer(switch).and_then(Value::as_bool).unwrap_or(false).to_string();
    }
    if let Some(number) = pointer.strip_prefix('#') {
        return object.pointer(number).and_then(Value::as_i64).unwrap_or(0).to_string();
    }
    for one in pointer.split('|') {
        let found = match object.pointer(one) {
            Some(Value::String(s)) => s.clone(),
            Some(Value::Bool(b)) => b.to_string(),
            Some(Value::Number(n)) => n.to_string(),
            _ => String::new(),
        };
        if !found.is_empty() {
            return found;
        }
    }
    String::new()
}
