//! How a canary is judged.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::flagger::text::Text;
use crate::image::image_policy::ImageRepositoryReference;

/// How the canary is judged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("oneOf" = [{"required": ["interval", "threshold", "iterations"]}, {"required": ["interval", "threshold", "stepWeight"]}, {"required": ["interval", "threshold", "stepWeights"]}]))]
pub struct CanaryAnalysis {
    /// Time between two steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[0-9]+(m|s)"))]
    pub interval: Option<String>,
    /// How many steps, without weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterations: Option<f64>,
    /// How many failed checks roll the canary back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// Share of traffic at which the canary is promoted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_weight: Option<f64>,
    /// How much traffic each step adds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_weight: Option<f64>,
    /// Share of traffic of each step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_weights: Option<Vec<f64>>,
    /// How much traffic each step of the promotion adds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_weight_promotion: Option<f64>,
    /// Mirror requests to the canary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mirror: Option<bool>,
    /// Share of requests to mirror.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mirror_weight: Option<f64>,
    /// Percentage of primary pods that must be ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primary_ready_threshold: Option<f64>,
    /// Percentage of canary pods that must be ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canary_ready_threshold: Option<f64>,
    /// Which requests go to the canary, for A/B tests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#match: Option<Vec<AnalysisMatch>>,
    /// Metrics that decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Vec<CanaryMetric>>,
    /// Alerts to send while the analysis runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alerts: Option<Vec<CanaryAlert>>,
    /// HTTP calls made during the analysis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhooks: Option<Vec<CanaryWebhook>>,
    /// Keeps a visitor on the version first seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_affinity: Option<SessionAffinity>,
}

/// Which requests go to the canary.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnalysisMatch {
    /// By header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<BTreeMap<String, HeaderMatch>>,
    /// By query parameter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query_params: Option<BTreeMap<String, QueryParamMatch>>,
    /// Labels of the calling pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_labels: Option<BTreeMap<String, Text>>,
}

/// Matches a header. Exactly one of the fields is set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("oneOf" = [{"required": ["exact"]}, {"required": ["prefix"]}, {"required": ["suffix"]}, {"required": ["regex"]}]))]
pub struct HeaderMatch {
    /// The whole text must be equal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exact: Option<Text>,
    /// The text must start so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Text>,
    /// The text must end so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suffix: Option<Text>,
    /// Regular expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regex: Option<Text>,
}

/// Matches a query parameter. At most one of the fields is set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("oneOf" = [{"not": {"anyOf": [{"required": ["exact"]}, {"required": ["prefix"]}, {"required": ["regex"]}]}}, {"required": ["exact"]}, {"required": ["prefix"]}, {"required": ["regex"]}]))]
pub struct QueryParamMatch {
    /// The whole text must be equal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exact: Option<String>,
    /// The text must start so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Regular expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
}

/// A metric that decides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CanaryMetric {
    /// The name.
    pub name: String,
    /// Time range the query looks at.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[0-9]+(m|s)"))]
    pub interval: Option<String>,
    /// Bound of the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// Range the value must stay in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold_range: Option<ThresholdRange>,
    /// The query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// A MetricTemplate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template_ref: Option<ImageRepositoryReference>,
    /// Values for the template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template_variables: Option<BTreeMap<String, String>>,
}

/// Bounds of a value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThresholdRange {
    /// Lower bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// Upper bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
}

/// An alert to send.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CanaryAlert {
    /// The name.
    pub name: String,
    /// Lowest severity that is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<AlertSeverity>,
    /// The provider.
    pub provider_ref: ImageRepositoryReference,
}

/// Severities of alerts; empty means info.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum AlertSeverity {
    #[serde(rename = "")]
    Empty,
    #[serde(rename = "info")]
    Info,
    #[serde(rename = "warn")]
    Warn,
    #[serde(rename = "error")]
    Error,
}

/// An HTTP call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CanaryWebhook {
    /// The name.
    pub name: String,
    /// The type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#type: Option<WebhookType>,
    /// Send no alert for this webhook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mute_alert: Option<bool>,
    /// The address.
    #[schemars(extend("format" = "url"))]
    pub url: String,
    /// How long it may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[0-9]+(m|s)"))]
    pub timeout: Option<String>,
    /// How often to try again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<f64>,
    /// Skip verification of the certificate.
    #[serde(rename = "disableTLS", skip_serializing_if = "Option::is_none")]
    pub disable_tls: Option<bool>,
    /// Data sent with the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<BTreeMap<String, String>>,
}

/// When a webhook is called; empty means during the rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum WebhookType {
    #[serde(rename = "")]
    Empty,
    #[serde(rename = "confirm-rollout")]
    ConfirmRollout,
    #[serde(rename = "pre-rollout")]
    PreRollout,
    #[serde(rename = "rollout")]
    Rollout,
    #[serde(rename = "confirm-promotion")]
    ConfirmPromotion,
    #[serde(rename = "post-rollout")]
    PostRollout,
    #[serde(rename = "event")]
    Event,
    #[serde(rename = "rollback")]
    Rollback,
    #[serde(rename = "confirm-traffic-increase")]
    ConfirmTrafficIncrease,
}

/// How a visitor is kept on a version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionAffinity {
    /// Name of the cookie.
    pub cookie_name: String,
    /// Name of the cookie for the primary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primary_cookie_name: Option<String>,
    /// The domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// Hide the cookie from scripts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_only: Option<bool>,
    /// How long it is kept.
    #[serde(default = "default_max_age")]
    pub max_age: f64,
    /// Keep the cookie per site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partitioned: Option<bool>,
    /// The path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Whether other sites may send the cookie.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_site: Option<SameSite>,
    /// Send the cookie over HTTPS only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secure: Option<bool>,
}

/// Whether other sites may send a cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum SameSite {
    Strict,
    Lax,
    None,
}

fn default_max_age() -> f64 {
    86400.0
}
