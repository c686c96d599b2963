//! `FluxInstance`

use fl_types::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::{Column, DURATION_PATTERN, Definition};
use crate::meta::condition::Condition;
use crate::meta::history::Snapshot;
use crate::meta::inventory::ResourceInventory;
use crate::meta::kustomize::Patch;
use crate::meta::metadata::CommonMetadata;
use crate::meta::range::VersionRange;
use crate::meta::yes;
use crate::resource::{Object, Resource, Scope};

/// An installation of Flux.
pub type FluxInstance = Object<FluxInstanceSpec, FluxInstanceStatus>;

impl Resource for FluxInstance {
    const GROUP: &'static str = "fluxcd.controlplane.io";
    const KIND: &'static str = "FluxInstance";
    const PLURAL: &'static str = "fluxinstances";
    const VERSIONS: &'static [&'static str] = &["v1", "v1alpha1"];
    const SCOPE: Scope = Scope::Namespaced;
}

/// The CRD of [`FluxInstance`].
pub(crate) fn definition() -> Definition {
    Definition::of::<FluxInstance>()
        .categories(&["fluxcd", "fluxcd-appliers"])
        .column(Column::new("Age", "date", ".metadata.creationTimestamp"))
        .column(Column::new("Ready", "string", r#".status.conditions[?(@.type=="Ready")].status"#))
        .column(Column::new("Status", "string", r#".status.conditions[?(@.type=="Ready")].message"#))
        .column(Column::new("Revision", "string", ".status.lastAttemptedRevision"))
        .status_subresource()
        .rule("self.metadata.name == 'flux'", "the only accepted name for a FluxInstance is 'flux'")
}

/// The wanted installation of Flux.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"message": ".spec.storage must be set when .spec.sharding.storage is 'persistent'", "rule": "!has(self.sharding) || !has(self.sharding.storage) || self.sharding.storage != 'persistent' || has(self.storage)"},
]))]
pub struct FluxInstanceSpec {
    /// What the cluster is like and how Flux should behave in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<Cluster>,
    /// Labels and annotations for every object that is applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub common_metadata: Option<CommonMetadata>,
    /// The controllers to install.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub components: Option<Vec<FluxComponent>>,
    /// Which Flux to install and from where.
    pub distribution: Distribution,
    /// Patches for the manifests of the controllers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kustomize: Option<Kustomize>,
    /// Rewrite stored objects to the newest API version after an upgrade.
    #[serde(default = "yes")]
    pub migrate_resources: bool,
    /// Spreads the controllers over several copies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sharding: Option<Sharding>,
    /// A persistent volume for artifacts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<Storage>,
    /// What the cluster is synced from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync: Option<Sync>,
    /// Wait until all applied objects are ready.
    #[serde(default = "yes")]
    pub wait: bool,
    /// Names of the shards, as the first version of the operator had them. Use `sharding`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shards: Option<Vec<String>>,
}

/// What the cluster is like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"message": ".objectLevelWorkloadIdentity must be set to true when .multitenantWorkloadIdentity is set to true", "rule": "(has(self.objectLevelWorkloadIdentity) && self.objectLevelWorkloadIdentity) || !has(self.multitenantWorkloadIdentity) || !self.multitenantWorkloadIdentity"},
]))]
pub struct Cluster {
    /// Internal domain of the cluster.
    #[serde(default = "default_domain")]
    pub domain: String,
    /// Lock tenants into their namespaces.
    #[serde(default)]
    pub multitenant: bool,
    /// Lock tenants into their own cloud identities too.
    #[serde(default)]
    pub multitenant_workload_identity: bool,
    /// Install network policies for Flux's namespace.
    #[serde(default = "yes")]
    pub network_policy: bool,
    /// Let objects name a ServiceAccount for cloud access.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_level_workload_identity: Option<bool>,
    /// Size profile; sets resources and concurrency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<ClusterSize>,
    /// ServiceAccount tenants decrypt with by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant_default_decryption_service_account: Option<String>,
    /// ServiceAccount tenants reach other clusters with by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant_default_kube_config_service_account: Option<String>,
    /// ServiceAccount tenants apply with by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant_default_service_account: Option<String>,
    /// The type.
    #[serde(default)]
    pub r#type: ClusterType,
}

/// Size profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ClusterSize {
    #[serde(rename = "small")]
    Small,
    #[serde(rename = "medium")]
    Medium,
    #[serde(rename = "large")]
    Large,
}

/// Kinds of clusters. The last three are the words of the first version for azure, aws and gcp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ClusterType {
    #[default]
    #[serde(rename = "kubernetes")]
    Kubernetes,
    #[serde(rename = "openshift")]
    Openshift,
    #[serde(rename = "aws")]
    Aws,
    #[serde(rename = "azure")]
    Azure,
    #[serde(rename = "gcp")]
    Gcp,
    #[serde(rename = "aks")]
    Aks,
    #[serde(rename = "eks")]
    Eks,
    #[serde(rename = "gke")]
    Gke,
}

/// Flux's controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum FluxComponent {
    #[serde(rename = "source-controller")]
    SourceController,
    #[serde(rename = "kustomize-controller")]
    KustomizeController,
    #[serde(rename = "helm-controller")]
    HelmController,
    #[serde(rename = "notification-controller")]
    NotificationController,
    #[serde(rename = "image-reflector-controller")]
    ImageReflectorController,
    #[serde(rename = "image-automation-controller")]
    ImageAutomationController,
    #[serde(rename = "source-watcher")]
    SourceWatcher,
}

/// Which Flux, from where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Distribution {
    /// OCI artifact that carries the distribution's manifests; `oci://` address.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^oci://.*$"))]
    pub artifact: Option<String>,
    /// Secret with registry credentials for the distribution artifact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact_pull_secret: Option<String>,
    /// Secret with registry credentials for the controllers' images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_pull_secret: Option<String>,
    /// Registry of the controllers' images.
    pub registry: String,
    /// Variant of the images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<ImageVariant>,
    /// Semver range of Flux; the newest in it is installed.
    pub version: VersionRange,
    /// Name of `imagePullSecret` in the first version of the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pull_secret: Option<String>,
}

/// Variants of the controllers' images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ImageVariant {
    #[serde(rename = "upstream-alpine")]
    UpstreamAlpine,
    #[serde(rename = "enterprise-alpine")]
    EnterpriseAlpine,
    #[serde(rename = "enterprise-distroless")]
    EnterpriseDistroless,
    #[serde(rename = "enterprise-distroless-fips")]
    EnterpriseDistrolessFips,
}

/// Changes made by kustomize.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Kustomize {
    /// Patches for matching objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patches: Option<Vec<Patch>>,
}

/// How controllers are spread over shards.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sharding {
    /// Label that names the shard.
    #[serde(default = "default_key")]
    pub key: String,
    /// Names of the shards.
    #[schemars(length(min = 1))]
    pub shards: Vec<String>,
    /// Whether shards keep their artifacts on a volume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<ShardStorage>,
}

/// Where shards keep artifacts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ShardStorage {
    #[serde(rename = "ephemeral")]
    Ephemeral,
    #[serde(rename = "persistent")]
    Persistent,
}

/// A persistent volume.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    /// The storage class.
    pub class: String,
    /// Size of the volume.
    pub size: String,
}

/// What the cluster is synced from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"message": "sync.provider 'gcp' is only supported for OCIRepository and Bucket", "rule": "!has(self.provider) || self.provider != 'gcp' || self.kind == 'OCIRepository' || self.kind == 'Bucket'"},
    {"message": "sync.provider 'github' is only supported for GitRepository", "rule": "!has(self.provider) || self.provider != 'github' || self.kind == 'GitRepository'"},
]))]
pub struct Sync {
    /// How often the sync source is checked.
    #[serde(default = "default_interval")]
    #[schemars(regex(pattern = DURATION_PATTERN), extend("default" = "1m"))]
    pub interval: Duration,
    /// Kind of the object.
    pub kind: SyncKind,
    /// Name of the source and the Kustomization; the instance's namespace when absent. Fixed once set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), extend("x-kubernetes-validations" = [{"message": "Sync name is immutable", "rule": "self == oldSelf"}]))]
    pub name: Option<String>,
    /// Directory to sync.
    pub path: String,
    /// Which cloud gives the credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<SyncProvider>,
    /// Secret with credentials for the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pull_secret: Option<String>,
    /// Reference to sync: branch or full name for Git, tag for OCI.
    pub r#ref: String,
    /// The address.
    pub url: String,
}

/// Kinds of sources to sync from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum SyncKind {
    OCIRepository,
    GitRepository,
    Bucket,
}

/// How access to the sync source is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum SyncProvider {
    #[serde(rename = "generic")]
    Generic,
    #[serde(rename = "aws")]
    Aws,
    #[serde(rename = "azure")]
    Azure,
    #[serde(rename = "gcp")]
    Gcp,
    #[serde(rename = "github")]
    Github,
}

/// The installation of Flux.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FluxInstanceStatus {
    /// The images in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub components: Option<Vec<ComponentImage>>,
    /// The conditions of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    /// What was applied, newest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<Vec<Snapshot>>,
    /// The objects that are managed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inventory: Option<ResourceInventory>,
    /// Revision applied last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_applied_revision: Option<String>,
    /// Digest of the distribution artifact applied last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_artifact_revision: Option<String>,
    /// Last attempted revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_attempted_revision: Option<String>,
    /// The last force request that was handled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_force_at: Option<String>,
    /// The last reconcile request that was handled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// The generation this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Newest version known, as the first version of the operator wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest_version: Option<String>,
    /// Version applied last, as the first version of the operator wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_applied_version: Option<String>,
    /// The images applied, as the first version of the operator wrote them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_applied_images: Option<Vec<LegacyImage>>,
}

/// The image of a controller.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComponentImage {
    /// Digest of the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The name.
    pub name: String,
    /// The repository.
    pub repository: String,
    /// The tag.
    pub tag: String,
}

/// An image as the first version of the operator reported it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LegacyImage {
    /// The name.
    pub name: String,
    /// Digest of the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

fn default_domain() -> String {
    "cluster.local".to_owned()
}

fn default_key() -> String {
    "sharding.fluxcd.io/key".to_owned()
}

fn default_interval() -> Duration {
    Duration::from_mins(1)
}
