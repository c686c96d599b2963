//! `Kustomization`

use std::collections::BTreeMap;

use fl_types::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::{Column, DURATION_PATTERN, Definition};
use crate::meta::AnyValue;
use crate::meta::condition::Condition;
use crate::meta::drift::IgnoreRule;
use crate::meta::health::{CustomHealthCheck, DependencyReference};
use crate::meta::history::Snapshot;
use crate::meta::inventory::ResourceInventory;
use crate::meta::kube_config::KubeConfigReference;
use crate::meta::kustomize::{Image, Json6902Patch, Patch};
use crate::meta::metadata::CommonMetadata;
use crate::meta::references::{LocalObjectReference, ObjectKindReference, ValuesKind};
use crate::resource::{Object, Resource, Scope};

/// Builds manifests from a source and applies them.
pub type Kustomization = Object<KustomizationSpec, KustomizationStatus>;

impl Resource for Kustomization {
    const GROUP: &'static str = "kustomize.toolkit.fluxcd.io";
    const KIND: &'static str = "Kustomization";
    const PLURAL: &'static str = "kustomizations";
    const VERSIONS: &'static [&'static str] = &["v1", "v1beta2", "v1beta1"];
    const SCOPE: Scope = Scope::Namespaced;
}

/// The CRD of [`Kustomization`].
pub(crate) fn definition() -> Definition {
    Definition::of::<Kustomization>()
        .short_names(&["ks"])
        .categories(&["all", "fluxcd", "fluxcd-appliers"])
        .annotation("kustomize.toolkit.fluxcd.io/substitute", "disabled")
        .column(Column::new("Age", "date", ".metadata.creationTimestamp"))
        .column(Column::new("Ready", "string", r#".status.conditions[?(@.type=="Ready")].status"#))
        .column(Column::new("Status", "string", r#".status.conditions[?(@.type=="Ready")].message"#))
        .status_subresource()
        .unobserved_until_reconciled()
}

/// What to build from a source and how to apply it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KustomizationSpec {
    /// Origin data that kustomize should write as annotations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build_metadata: Option<Vec<BuildMetadata>>,
    /// Labels and annotations for every object that is applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub common_metadata: Option<CommonMetadata>,
    /// Paths of kustomize components to add, relative to `path`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub components: Option<Vec<String>>,
    /// How encrypted files are read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decryption: Option<Decryption>,
    /// What happens to the applied objects when this object is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<DeletionPolicy>,
    /// Objects that must be ready first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depends_on: Option<Vec<DependencyReference>>,
    /// Delete and create again objects that cannot be changed in place.
    #[serde(default)]
    pub force: bool,
    /// CEL expressions that judge the health of custom resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health_check_exprs: Option<Vec<CustomHealthCheck>>,
    /// Objects whose health counts. All applied objects when `wait` is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health_checks: Option<Vec<ObjectKindReference>>,
    /// Fields that are left as they are in the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignore: Option<Vec<IgnoreRule>>,
    /// Skip components whose path does not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignore_missing_components: Option<bool>,
    /// Names, tags and digests of images to replace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<Vec<Image>>,
    /// How often to reconcile.
    #[schemars(regex(pattern = DURATION_PATTERN))]
    pub interval: Duration,
    /// How to reach another cluster; the own one when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kube_config: Option<KubeConfigReference>,
    /// Put before every name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200))]
    pub name_prefix: Option<String>,
    /// Put after every name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200))]
    pub name_suffix: Option<String>,
    /// Patches for matching objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patches: Option<Vec<Patch>>,
    /// Directory in the source; its root when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Variables to substitute after the build.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub post_build: Option<PostBuild>,
    /// Delete objects that are no longer in the source.
    pub prune: bool,
    /// Time until the next try after a failure. Defaults to `interval`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DURATION_PATTERN))]
    pub retry_interval: Option<Duration>,
    /// ServiceAccount in whose name this is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// The source.
    pub source_ref: KustomizationSourceReference,
    /// Stop reconciling, keep everything as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// Namespace to put objects into.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub target_namespace: Option<String>,
    /// How long it may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DURATION_PATTERN))]
    pub timeout: Option<Duration>,
    /// Wait until all applied objects are ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<bool>,
    /// JSON 6902 patches of older versions. Use `patches`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patches_json6902: Option<Vec<Json6902Patch>>,
    /// Strategic merge patches of older versions. Use `patches`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patches_strategic_merge: Option<Vec<AnyValue>>,
    /// Validation of older versions. Ignored: every apply is validated by the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation: Option<Validation>,
    /// ServiceAccount of older versions. Use `serviceAccountName`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account: Option<LegacyServiceAccount>,
}

/// Origin data kustomize can write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum BuildMetadata {
    #[serde(rename = "originAnnotations")]
    OriginAnnotations,
    #[serde(rename = "transformerAnnotations")]
    TransformerAnnotations,
}

/// How encrypted files are read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Decryption {
    /// What the files are encrypted with.
    pub provider: DecryptionProvider,
    /// Secret with the private keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
    /// ServiceAccount whose cloud identity reads the keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
}

/// Encryption formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum DecryptionProvider {
    #[serde(rename = "sops")]
    Sops,
}

/// What happens to applied objects on deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum DeletionPolicy {
    MirrorPrune,
    Delete,
    WaitForTermination,
    Orphan,
}

/// Variables that are substituted in the built manifests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PostBuild {
    /// Variables by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub substitute: Option<BTreeMap<String, String>>,
    /// ConfigMaps and Secrets with variables; later ones win, `substitute` wins over all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub substitute_from: Option<Vec<SubstituteReference>>,
    /// Whether to substitute when no variable is given at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub substitute_strategy: Option<SubstituteStrategy>,
}

/// A ConfigMap or Secret whose data are variables.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubstituteReference {
    /// Kind of the object.
    pub kind: ValuesKind,
    /// Name of the ConfigMap or Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Do without when it is missing.
    #[serde(default)]
    pub optional: bool,
}

/// When variables are substituted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum SubstituteStrategy {
    WithVariables,
    Always,
}

/// The source of a Kustomization.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"message": "a kind that is not one of Flux's own needs an apiVersion", "rule": "self.kind in ['OCIRepository', 'GitRepository', 'Bucket', 'ExternalArtifact'] || has(self.apiVersion)"},
]))]
pub struct KustomizationSourceReference {
    /// API group and version of the source. Needed for kinds outside Flux's source group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Kind of the source: a Flux kind, or any kind that owns an artifact when `apiVersion` is given.
    pub kind: String,
    /// The name.
    pub name: String,
    /// Namespace of the object; the own one when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// Validation modes of older versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Validation {
    #[serde(rename = "none")]
    None,
    #[serde(rename = "client")]
    Client,
    #[serde(rename = "server")]
    Server,
}

/// A ServiceAccount as older versions named it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LegacyServiceAccount {
    /// The name.
    pub name: String,
    /// Namespace of the object; the own one when absent.
    pub namespace: String,
}

/// What was applied.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KustomizationStatus {
    /// The conditions of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    /// What was applied, newest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<Vec<Snapshot>>,
    /// The objects that are managed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inventory: Option<ResourceInventory>,
    /// Origin revision of what was applied last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_applied_origin_revision: Option<String>,
    /// Revision applied last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_applied_revision: Option<String>,
    /// Last attempted revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_attempted_revision: Option<String>,
    /// The last reconcile request that was handled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// The generation this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What was applied, as older versions wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<LegacySnapshot>,
}

/// What was applied, as older versions wrote it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LegacySnapshot {
    /// Sum over the manifests of that time.
    pub checksum: String,
    /// The entries.
    pub entries: Vec<LegacySnapshotEntry>,
}

/// The kinds that were applied in one namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LegacySnapshotEntry {
    /// Kinds by API group and version.
    pub kinds: BTreeMap<String, String>,
    /// Namespace of the object; the own one when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}
