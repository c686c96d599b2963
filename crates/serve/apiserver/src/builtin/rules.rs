//! The rules of one built-in kind as a row of a table, and the [`Strategy`] made from it.

use fl_kubeschema::TypeDef;
use fl_schema::FieldError;
use serde_json::Value;

use super::defaults;
use super::field::Errors;
use super::table::Printer;
use crate::names;
use crate::resource::{Column, ScalePaths, Strategy, StrategyContext, copy_field, remove_status};

/// How names of a kind are checked.
#[derive(Debug, Clone, Copy)]
pub(super) enum NameRule {
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

/// What a kind does differently from most. Functions get objects in Go's normal form.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub(super) group: &'static str,
    pub(super) kind: &'static str,
    pub(super) name: NameRule,
    /// Whether `metadata.generation` is kept.
    pub(super) generation: bool,
    pub(super) unconditional_update: bool,
    pub(super) create_on_update: bool,
    pub(super) prepare_create: fn(StrategyContext<'_>, &mut Value),
    /// Where not only the status is kept.
    pub(super) prepare_update: Option<fn(StrategyContext<'_>, &mut Value, &Value)>,
    pub(super) prepare_status: fn(StrategyContext<'_>, &mut Value, &Value),
    /// Rules of a new object; also run on updates unless `update_only` takes over.
    pub(super) validate: fn(&mut Errors, &Value),
    /// Further rules of a change, run after `validate`.
    pub(super) validate_update: fn(&mut Errors, &Value, &Value),
    /// True where `validate_update` decides alone, because the rules of creation do not all hold for updates.
    pub(super) update_alone: bool,
    pub(super) validate_status: fn(&mut Errors, &Value, &Value),
    pub(super) warnings: fn(&Value, Option<&Value>) -> Vec<String>,
    /// Field selectors: label and the JSON pointer of its value.
    pub(super) fields: &'static [(&'static str, &'static str)],
    pub(super) printer: Option<&'static Printer>,
}

fn drop_status(cx: StrategyContext<'_>, object: &mut Value) {
    if cx.resource.has_status() {
        remove_status(object);
    }
}

fn keep_spec(_cx: StrategyContext<'_>, object: &mut Value, old: &Value) {
    copy_field(object, old, "spec");
}

/// Kinds whose status is written without a look at anything else that was sent.
pub(super) fn keep_all_but_status(_cx: StrategyContext<'_>, object: &mut Value, old: &Value) {
    copy_field(object, old, "spec");
    let managed = object.pointer("/metadata/managedFields").cloned();
    copy_field(object, old, "metadata");
    match managed {
        Some(managed) => crate::object::set_meta(object, "managedFields", managed),
        None => {
            crate::object::remove_meta(object, "managedFields");
        }
    }
}

impl Rules {
    pub(super) const DEFAULT: Rules = Rules {
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

/// A built-in kind: its type and its rules.
#[derive(Debug)]
pub(super) struct Kind {
    pub(super) def: &'static TypeDef,
    pub(super) version: &'static str,
    pub(super) rules: Rules,
}

impl Kind {
    /// Whether the rules of creation are held against a change twice, so that every cause of a refusal is named twice: by
    /// whoever stores the kind, and by the kind's own rules of changes.
    fn repeats_rules(&self) -> bool {
        matches!(
            (self.rules.group, self.rules.kind),
            ("", "PersistentVolume" | "PersistentVolumeClaim" | "ReplicationController")
                | ("rbac.authorization.k8s.io", _)
                | ("networking.k8s.io", "NetworkPolicy")
        )
    }
}

impl Kind {
    /// Fills in defaults; the outcome is still to be brought into its form.
    fn fill(&self, object: &mut Value) {
        if self.rules.kind == "Secret" {
            super::strategy::secret_string_data(object);
        }
        defaults::apply(self.def, object);
    }
}

/// Managers that are emptied on purpose are forgotten; the Go form does not tell that from none.
fn keeping_emptied_managers(object: &mut Value, bring: impl FnOnce(&mut Value)) {
    let managers = object.get("metadata").and_then(|metadata| metadata.get("managedFields"));
    let emptied = managers.and_then(Value::as_array).is_some_and(Vec::is_empty);
    bring(object);
    if emptied {
        crate::object::set_meta(object, "managedFields", Value::Array(Vec::new()));
    }
}

impl Strategy for Kind {
    fn schema(&self) -> Option<std::sync::Arc<fl_schema::Schema>> {
        fl_kubeschema::schema_of(self.def)
    }

    fn normalize(&self, object: &mut Value) {
        keeping_emptied_managers(object, |object| fl_kubeschema::normalize(self.def, object));
    }

    fn seal(&self, object: &mut Value) {
        fl_kubeschema::seal(self.def, object);
        if self.rules.kind == "CertificateSigningRequest" {
            // Upstream keeps no managers of these.
            crate::object::remove_meta(object, "managedFields");
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
        // Upstream's default is not a copy: what the server adds to the template shows on the job.
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
        keeping_emptied_managers(object, |object| {
            self.fill(object);
            fl_kubeschema::normalize(self.def, object);
        });
    }

    fn default_and_seal(&self, object: &mut Value) {
        self.fill(object);
        self.seal(object);
    }

    fn prepare_for_create(&self, cx: StrategyContext<'_>, object: &mut Value) {
        (self.rules.prepare_create)(cx, object);
        super::strategy::drop_disabled(self.rules.kind, object);
        // A status that was dropped comes back with its defaults (phases), as upstream's storage decoding gives it.
        defaults::apply(self.def, object);
        self.normalize(object);
    }

    fn prepare_for_update(&self, cx: StrategyContext<'_>, object: &mut Value, old: &Value) {
        match self.rules.prepare_update {
            Some(prepare) => prepare(cx, object, old),
            None if cx.resource.has_status() => copy_field(object, old, "status"),
            // Nothing is kept and nothing dropped: the object is as it was.
            None if !super::strategy::has_disabled(self.rules.kind) => return,
            None => {}
        }
        super::strategy::drop_disabled(self.rules.kind, object);
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
                super::validate::ephemeral_containers(&mut errors, object, old);
                return errors.0;
            }
            "resize" => {
                super::validate::pod_resize(&mut errors, object, old);
                return errors.0;
            }
            "approval" => super::validate::signing_request_approval(&mut errors, object, old),
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
            "status" => super::warnings::status(object),
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
            NameRule::Subdomain => names::dns1123_subdomain(name, prefix),
            NameRule::Label => names::dns1123_label(name, prefix),
            NameRule::Any => Vec::new(),
            NameRule::PathSegment => names::path_segment(name, prefix),
            NameRule::Label1035 => super::checks::messages(fl_types::check_dns1035_label(
                &crate::names::unmask_prefix(name, prefix),
            )),
            NameRule::CronJob => {
                let mut found = names::dns1123_subdomain(name, prefix);
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
            // Counted from the first change on, not from creation.
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
        super::pod_strategy::grace_seconds(object)
    }

    fn default_propagation(&self) -> &'static str {
        // Jobs and replication controllers keep their pods unless told otherwise; a promise from before propagation.
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
        super::table::columns(self.rules.printer)
    }

    fn cells(&self, object: &Value, now: i64) -> Vec<Value> {
        super::table::cells(self.rules.printer, object, now)
    }

    fn read_from_storage(&self, object: Value) -> Value {
        super::versions::read_from_storage(self.rules.group, self.version, self.rules.kind, object)
    }

    fn to_storage(&self, object: Value) -> Value {
        super::versions::to_storage(self.rules.group, self.version, self.rules.kind, object)
    }

    fn stored_as_served(&self) -> bool {
        super::versions::stored_as_served(self.rules.group, self.version, self.rules.kind)
    }
}

/// The text of a selectable field; booleans and numbers as Go prints them.
fn field_text(object: &Value, pointer: &str) -> String {
    // `a|b`: the second where the first is empty.
    // A switch that is not written is off.
    if let Some(switch) = pointer.strip_prefix('?') {
        return object.pointer(switch).and_then(Value::as_bool).unwrap_or(false).to_string();
    }
    // A number that is not written is zero.
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
