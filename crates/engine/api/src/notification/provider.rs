//! `Provider`

use fl_types::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::{Column, DURATION_PATTERN, Definition, FETCH_TIMEOUT_PATTERN};
use crate::meta::references::LocalObjectReference;
use crate::resource::{NoStatus, Object, Resource, Scope};

/// A service that events are sent to.
pub type Provider = Object<ProviderSpec, NoStatus>;

impl Resource for Provider {
    const GROUP: &'static str = "notification.toolkit.fluxcd.io";
    const KIND: &'static str = "Provider";
    const PLURAL: &'static str = "providers";
    const VERSIONS: &'static [&'static str] = &["v1beta3", "v1beta2", "v1beta1"];
    const SCOPE: Scope = Scope::Namespaced;
}

/// The CRD of [`Provider`].
pub(crate) fn definition() -> Definition {
    Definition::of::<Provider>()
        .categories(&["all", "fluxcd", "fluxcd-notifications"])
        .annotation("kustomize.toolkit.fluxcd.io/substitute", "disabled")
        .column(Column::new("Age", "date", ".metadata.creationTimestamp"))
}

/// Where events are sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"message": "spec.commitStatusExpr is only supported for the 'github', 'gitlab', 'gitea', 'bitbucketserver', 'bitbucket', 'azuredevops' provider types", "rule": "self.type == 'github' || self.type == 'gitlab' || self.type == 'gitea' || self.type == 'bitbucketserver' || self.type == 'bitbucket' || self.type == 'azuredevops' || !has(self.commitStatusExpr)"},
]))]
pub struct ProviderSpec {
    /// Where events are sent: an HTTP address, or what the provider type calls its endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub address: Option<String>,
    /// Secret with a client certificate (`tls.crt`, `tls.key`) and a certificate authority (`ca.crt`), any
    /// of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cert_secret_ref: Option<LocalObjectReference>,
    /// The channel to post to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub channel: Option<String>,
    /// CEL expression that makes the identity of a commit status from `event`, `alert` and `provider`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit_status_expr: Option<String>,
    /// Kept for older objects. Not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DURATION_PATTERN))]
    pub interval: Option<Duration>,
    /// Address of the proxy. Use `proxySecretRef`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048), regex(pattern = "^(http|https)://.*$"))]
    pub proxy: Option<String>,
    /// Secret with the proxy's `address`, `username` and `password`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy_secret_ref: Option<LocalObjectReference>,
    /// Secret with the credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
    /// ServiceAccount whose cloud identity sends the events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// Stop reconciling, keep everything as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// How long it may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = FETCH_TIMEOUT_PATTERN))]
    pub timeout: Option<Duration>,
    /// The type.
    pub r#type: ProviderType,
    /// Name to post under.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub username: Option<String>,
}

/// Services events can be sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ProviderType {
    #[serde(rename = "slack")]
    Slack,
    #[serde(rename = "discord")]
    Discord,
    #[serde(rename = "msteams")]
    Msteams,
    #[serde(rename = "rocket")]
    Rocket,
    #[serde(rename = "generic")]
    Generic,
    #[serde(rename = "generic-hmac")]
    GenericHmac,
    #[serde(rename = "github")]
    Github,
    #[serde(rename = "gitlab")]
    Gitlab,
    #[serde(rename = "gitea")]
    Gitea,
    #[serde(rename = "giteapullrequestcomment")]
    Giteapullrequestcomment,
    #[serde(rename = "bitbucketserver")]
    Bitbucketserver,
    #[serde(rename = "bitbucket")]
    Bitbucket,
    #[serde(rename = "azuredevops")]
    Azuredevops,
    #[serde(rename = "googlechat")]
    Googlechat,
    #[serde(rename = "googlepubsub")]
    Googlepubsub,
    #[serde(rename = "webex")]
    Webex,
    #[serde(rename = "sentry")]
    Sentry,
    #[serde(rename = "azureeventhub")]
    Azureeventhub,
    #[serde(rename = "telegram")]
    Telegram,
    #[serde(rename = "lark")]
    Lark,
    #[serde(rename = "matrix")]
    Matrix,
    #[serde(rename = "opsgenie")]
    Opsgenie,
    #[serde(rename = "alertmanager")]
    Alertmanager,
    #[serde(rename = "grafana")]
    Grafana,
    #[serde(rename = "githubdispatch")]
    Githubdispatch,
    #[serde(rename = "githubpullrequestcomment")]
    Githubpullrequestcomment,
    #[serde(rename = "gitlabmergerequestcomment")]
    Gitlabmergerequestcomment,
    #[serde(rename = "pagerduty")]
    Pagerduty,
    #[serde(rename = "datadog")]
    Datadog,
    #[serde(rename = "nats")]
    Nats,
    #[serde(rename = "zulip")]
    Zulip,
    #[serde(rename = "otel")]
    Otel,
    #[serde(rename = "zoom")]
    Zoom,
    #[serde(rename = "incident.io")]
    IncidentIo,
}
