//! `Canary`

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::{Column, Definition};
use crate::flagger::canary_analysis::CanaryAnalysis;
use crate::flagger::canary_service::CanaryService;
use crate::resource::{Object, Resource, Scope};

/// A workload that is rolled out step by step.
pub type Canary = Object<CanarySpec, CanaryStatus>;

impl Resource for Canary {
    const GROUP: &'static str = "flagger.app";
    const KIND: &'static str = "Canary";
    const PLURAL: &'static str = "canaries";
    const VERSIONS: &'static [&'static str] = &["v1beta1"];
    const SCOPE: Scope = Scope::Namespaced;
}

/// The CRD of [`Canary`].
pub(crate) fn definition() -> Definition {
    Definition::of::<Canary>()
        .categories(&["all"])
        .column(Column::new("Status", "string", ".status.phase"))
        .column(Column::new("Weight", "string", ".status.canaryWeight"))
        .column(Column::new("Suspended", "boolean", ".spec.suspend").priority(1))
        .column(Column::new("FailedChecks", "string", ".status.failedChecks").priority(1))
        .column(Column::new("Interval", "string", ".spec.analysis.interval").priority(1))
        .column(Column::new("Mirror", "boolean", ".spec.analysis.mirror").priority(1))
        .column(Column::new("StepWeight", "string", ".spec.analysis.stepWeight").priority(1))
        .column(Column::new("StepWeights", "string", ".spec.analysis.stepWeights").priority(1))
        .column(Column::new("MaxWeight", "string", ".spec.analysis.maxWeight").priority(1))
        .column(Column::new("LastTransitionTime", "string", ".status.lastTransitionTime"))
        .status_subresource()
}

/// How a workload is rolled out step by step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CanarySpec {
    /// Which mesh or ingress shifts the traffic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<MeshProvider>,
    /// Address of the Prometheus server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics_server: Option<String>,
    /// How long the target may take to become ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress_deadline_seconds: Option<f64>,
    /// The workload that is rolled out.
    pub target_ref: TargetRef,
    /// The autoscaler of the target, copied for the primary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub autoscaler_ref: Option<AutoscalerRef>,
    /// The Ingress of the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingress_ref: Option<IngressRef>,
    /// The route of the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route_ref: Option<RouteRef>,
    /// The Gloo upstream to copy settings from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream_ref: Option<UpstreamRef>,
    /// The Services that are made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<CanaryService>,
    /// Promote without analysis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_analysis: Option<bool>,
    /// Restore the target when the Canary is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revert_on_deletion: Option<bool>,
    /// Stop reconciling, keep everything as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// How the canary is judged before it is promoted.
    pub analysis: CanaryAnalysis,
}

/// What shifts the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum MeshProvider {
    #[serde(rename = "apisix")]
    Apisix,
    #[serde(rename = "appmesh")]
    Appmesh,
    #[serde(rename = "appmesh:v1beta2")]
    AppmeshV1beta2,
    #[serde(rename = "contour")]
    Contour,
    #[serde(rename = "gatewayapi:v1")]
    GatewayapiV1,
    #[serde(rename = "gatewayapi:v1beta1")]
    GatewayapiV1beta1,
    #[serde(rename = "gloo")]
    Gloo,
    #[serde(rename = "istio")]
    Istio,
    #[serde(rename = "knative")]
    Knative,
    #[serde(rename = "kubernetes")]
    Kubernetes,
    #[serde(rename = "kuma")]
    Kuma,
    #[serde(rename = "linkerd")]
    Linkerd,
    #[serde(rename = "nginx")]
    Nginx,
    #[serde(rename = "osm")]
    Osm,
    #[serde(rename = "skipper")]
    Skipper,
    #[serde(rename = "smi:v1alpha1")]
    SmiV1alpha1,
    #[serde(rename = "smi:v1alpha2")]
    SmiV1alpha2,
    #[serde(rename = "smi:v1alpha3")]
    SmiV1alpha3,
    #[serde(rename = "traefik")]
    Traefik,
}

/// The workload that is rolled out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetRef {
    /// API group and version of the object.
    pub api_version: String,
    /// Kind of the object.
    pub kind: TargetKind,
    /// The name.
    pub name: String,
}

/// Kinds that can be rolled out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum TargetKind {
    DaemonSet,
    Deployment,
    Service,
}

/// The autoscaler of the target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AutoscalerRef {
    /// API group and version of the object.
    pub api_version: String,
    /// Kind of the object.
    pub kind: AutoscalerKind,
    /// The name.
    pub name: String,
    /// Queries of the primary's scaler.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primary_scaler_queries: Option<BTreeMap<String, String>>,
    /// Replica bounds of the primary's scaler.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primary_scaler_replicas: Option<PrimaryScalerReplica>,
}

/// Kinds of autoscalers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum AutoscalerKind {
    HorizontalPodAutoscaler,
    ScaledObject,
}

/// Replica bounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PrimaryScalerReplica {
    /// Lower bound of replicas.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub min_replicas: Option<isize>,
    /// Upper bound of replicas.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_replicas: Option<isize>,
}

/// The Ingress of the target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IngressRef {
    /// API group and version of the object.
    pub api_version: String,
    /// Kind of the object.
    pub kind: IngressKind,
    /// The name.
    pub name: String,
}

/// Kinds of ingresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum IngressKind {
    Ingress,
}

/// The route of the target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RouteRef {
    /// API group and version of the object.
    pub api_version: String,
    /// Kind of the object.
    pub kind: RouteKind,
    /// The name.
    pub name: String,
}

/// Kinds of routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum RouteKind {
    ApisixRoute,
}

/// A Gloo upstream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpstreamRef {
    /// API group and version of the object.
    pub api_version: String,
    /// Kind of the object.
    pub kind: UpstreamKind,
    /// The name.
    pub name: String,
    /// Namespace of the object; the own one when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// Kinds of upstreams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum UpstreamKind {
    Upstream,
}

/// The state of a rollout.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CanaryStatus {
    /// The phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<CanaryPhase>,
    /// How many checks have failed so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_checks: Option<f64>,
    /// Share of the traffic the canary gets now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canary_weight: Option<f64>,
    /// How many steps were done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterations: Option<f64>,
    /// Checksums of the ConfigMaps and Secrets the target uses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tracked_configs: Option<BTreeMap<String, String>>,
    /// Hash of the target when it was last applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_applied_spec: Option<String>,
    /// Hash of the target when it was last promoted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_promoted_spec: Option<String>,
    /// When the phase last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Timestamp>,
    /// The cookie of this run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_affinity_cookie: Option<String>,
    /// The cookie of the primary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primary_session_affinity_cookie: Option<String>,
    /// The cookie of the previous run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_session_affinity_cookie: Option<String>,
    /// The conditions of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<CanaryCondition>>,
}

/// Phases of a rollout; empty before the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum CanaryPhase {
    #[serde(rename = "")]
    Empty,
    Initializing,
    Initialized,
    Waiting,
    Progressing,
    WaitingPromotion,
    Promoting,
    Finalising,
    Succeeded,
    Failed,
    Terminating,
    Terminated,
}

/// One observed fact about a rollout.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CanaryCondition {
    /// When the condition last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Timestamp>,
    /// When it was last updated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<Timestamp>,
    /// Human-readable message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Reason in one CamelCase word.
    pub reason: String,
    /// The status.
    pub status: String,
    /// The type.
    pub r#type: String,
}
