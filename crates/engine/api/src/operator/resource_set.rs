//! `ResourceSet`

use std::collections::BTreeMap;

use fl_types::{Duration, LabelSelector};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::{Column, DURATION_PATTERN, Definition};
use crate::meta::condition::Condition;
use crate::meta::history::Snapshot;
use crate::meta::inventory::ResourceInventory;
use crate::meta::metadata::CommonMetadata;
use crate::meta::{AnyObject, AnyValue};
use crate::resource::{Object, Resource, Scope};

/// Objects rendered from templates and inputs.
pub type ResourceSet = Object<ResourceSetSpec, ResourceSetStatus>;

impl Resource for ResourceSet {
    const GROUP: &'static str = "fluxcd.controlplane.io";
    const KIND: &'static str = "ResourceSet";
    const PLURAL: &'static str = "resourcesets";
    const VERSIONS: &'static [&'static str] = &["v1"];
    const SCOPE: Scope = Scope::Namespaced;
}

/// The CRD of [`ResourceSet`].
pub(crate) fn definition() -> Definition {
    Definition::of::<ResourceSet>()
        .short_names(&["rset"])
        .categories(&["all", "fluxcd", "fluxcd-appliers"])
        .column(Column::new("Age", "date", ".metadata.creationTimestamp"))
        .column(Column::new("Ready", "string", r#".status.conditions[?(@.type=="Ready")].status"#))
        .column(Column::new("Status", "string", r#".status.conditions[?(@.type=="Ready")].message"#))
        .status_subresource()
}

/// Templates and the inputs they are rendered with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"message": "steps is mutually exclusive with resources and resourcesTemplate", "rule": "!has(self.steps) || (!has(self.resources) && !has(self.resourcesTemplate))"},
    {"message": "at least one of steps, resources or resourcesTemplate must be set", "rule": "has(self.steps) || has(self.resources) || has(self.resourcesTemplate)"},
]))]
pub struct ResourceSetSpec {
    /// Labels and annotations for every object that is applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub common_metadata: Option<CommonMetadata>,
    /// Objects that must be ready first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depends_on: Option<Vec<ResourceSetDependency>>,
    /// How inputs of several providers are put together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_strategy: Option<InputStrategy>,
    /// Input sets; the templates are rendered once for each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Vec<BTreeMap<String, AnyValue>>>,
    /// Providers of further input sets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inputs_from: Option<Vec<InputProviderReference>>,
    /// Objects to apply, as templates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Vec<AnyObject>>,
    /// Objects to apply, as one template of several YAML documents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources_template: Option<String>,
    /// ServiceAccount in whose name this is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// Objects that are applied one group after the other.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 20), extend("x-kubernetes-validations" = [{"message": "step names must be unique", "rule": "self.all(s, self.exists_one(t, t.name == s.name))"}]))]
    pub steps: Option<Vec<Step>>,
    /// Wait until all applied objects are ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<bool>,
}

/// An object of any kind that must be there first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSetDependency {
    /// API group and version of the object.
    pub api_version: String,
    /// Kind of the object.
    pub kind: String,
    /// The name.
    pub name: String,
    /// Namespace of the object; the own one when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Whether the object must be ready; it must only exist otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,
    /// CEL expression that decides whether the object is ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_expr: Option<String>,
}

/// How inputs are put together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"message": "includeEmptyProviders only applies when name is Permute", "rule": "!has(self.includeEmptyProviders) || self.name == 'Permute'"},
]))]
pub struct InputStrategy {
    /// Keep providers without inputs, so that the product is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_empty_providers: Option<bool>,
    /// How: side by side, or every combination.
    pub name: InputStrategyName,
}

/// Ways to put inputs together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum InputStrategyName {
    Flatten,
    Permute,
}

/// Providers of inputs, by name or label.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"message": "at least one of name or selector must be set for input provider references", "rule": "has(self.name) || has(self.selector)"},
    {"message": "cannot set both name and selector for input provider references", "rule": "!has(self.name) || !has(self.selector)"},
]))]
pub struct InputProviderReference {
    /// API group and version of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<InputProviderApiVersion>,
    /// Kind of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<InputProviderKind>,
    /// The name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Which ones, by label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
}

/// API versions of input providers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum InputProviderApiVersion {
    #[serde(rename = "fluxcd.controlplane.io/v1")]
    FluxcdControlplaneIoV1,
}

/// Kinds of input providers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum InputProviderKind {
    ResourceSetInputProvider,
}

/// A group of objects that is applied together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"message": "at least one of resources or resourcesTemplate must be set", "rule": "has(self.resources) || has(self.resourcesTemplate)"},
]))]
pub struct Step {
    /// The name.
    #[schemars(length(max = 63), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// Objects of this step, as templates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Vec<AnyObject>>,
    /// Objects to apply, as one template of several YAML documents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources_template: Option<String>,
    /// How long it may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DURATION_PATTERN))]
    pub timeout: Option<Duration>,
}

/// What was applied.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSetStatus {
    /// The conditions of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    /// Objects outside the set whose checksum is tracked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_checksum_refs: Option<Vec<String>>,
    /// What was applied, newest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<Vec<Snapshot>>,
    /// The objects that are managed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inventory: Option<ResourceInventory>,
    /// Revision applied last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_applied_revision: Option<String>,
    /// The last reconcile request that was handled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
}
