//! The Services and routes of a canary.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::flagger::text::{Port, Text};
use crate::flagger::traffic_policy::TrafficPolicy;

/// The Services and routes that are made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CanaryService {
    /// The name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The port.
    pub port: f64,
    /// Name of the port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_name: Option<String>,
    /// Protocol hint for the Service port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_protocol: Option<String>,
    /// Preference of near endpoints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traffic_distribution: Option<TrafficDistribution>,
    /// Port of the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_port: Option<Port>,
    /// Take over the ports of the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_discovery: Option<bool>,
    /// Make headless Services.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headless: Option<bool>,
    /// How long it may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// Timeout of a request to one backend.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend_timeout: Option<String>,
    /// Name of the mesh.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mesh_name: Option<String>,
    /// Further backends, for App Mesh.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backends: Option<Vec<String>>,
    /// Host names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Vec<String>>,
    /// Make a delegate VirtualService.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delegation: Option<bool>,
    /// Which requests are meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#match: Option<Vec<HttpMatch>>,
    /// Retry policy of requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<HttpRetries>,
    /// How requests are rewritten.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rewrite: Option<HttpRewrite>,
    /// Where requests are mirrored to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mirror: Option<Vec<HttpMirror>>,
    /// Headers to change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<Headers>,
    /// Istio gateways to attach to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateways: Option<Vec<String>>,
    /// Gateways of the Gateway API to attach to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub gateway_refs: Option<Vec<GatewayRef>>,
    /// Cross-origin rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cors_policy: Option<CorsPolicy>,
    /// Istio's traffic policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traffic_policy: Option<TrafficPolicy>,
    /// Metadata of the apex Service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apex: Option<ServiceMetadata>,
    /// Metadata of the primary Service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primary: Option<ServiceMetadata>,
    /// Metadata of the canary Service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canary: Option<ServiceMetadata>,
    /// Metadata that Flagger leaves alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unmanaged_metadata: Option<UnmanagedMetadata>,
}

/// Preferences of near endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum TrafficDistribution {
    PreferClose,
    PreferSameZone,
    PreferSameNode,
}

/// Matches a request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpMatch {
    /// Match on the authority (host) of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authority: Option<StringMatch>,
    /// Istio gateways to attach to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateways: Option<Vec<Text>>,
    /// By header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<BTreeMap<String, StringMatch>>,
    /// Compare the path without regard to case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignore_uri_case: Option<bool>,
    /// Match on the HTTP method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<StringMatch>,
    /// The name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Text>,
    /// The port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<isize>,
    /// By query parameter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query_params: Option<BTreeMap<String, StringMatch>>,
    /// Match on the URI scheme.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheme: Option<StringMatch>,
    /// Labels of the calling pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_labels: Option<BTreeMap<String, Text>>,
    /// Namespace of the calling pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_namespace: Option<Text>,
    /// Match on the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<StringMatch>,
    /// Headers the request must not have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without_headers: Option<BTreeMap<String, StringMatch>>,
}

/// Matches a text. At most one of the fields is set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("oneOf" = [{"not": {"anyOf": [{"required": ["exact"]}, {"required": ["prefix"]}, {"required": ["regex"]}]}}, {"required": ["exact"]}, {"required": ["prefix"]}, {"required": ["regex"]}]))]
pub struct StringMatch {
    /// The whole text must be equal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exact: Option<Text>,
    /// The text must start so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Text>,
    /// Regular expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regex: Option<Text>,
}

/// Retry policy of requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpRetries {
    /// Number of retries of a failed request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<i32>,
    /// Timeout of each try.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_try_timeout: Option<String>,
    /// On which failures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_on: Option<Text>,
}

/// How requests are rewritten.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpRewrite {
    /// Path to put into the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<Text>,
    /// Host to put into the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authority: Option<Text>,
    /// How the path is rewritten.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#type: Option<Text>,
}

/// Where requests are mirrored to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpMirror {
    /// Where the traffic goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend_ref: Option<BackendRef>,
}

/// A backend of the Gateway API.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"message": "Must have port for Service reference", "rule": "(size(self.group) == 0 && self.kind == 'Service') ? has(self.port) : true"},
]))]
pub struct BackendRef {
    /// The API group.
    #[serde(default)]
    #[schemars(
        length(max = 253),
        regex(pattern = r"^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub group: String,
    /// Kind of the object.
    #[serde(default = "default_kind")]
    #[schemars(length(min = 1, max = 63), regex(pattern = "^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$"))]
    pub kind: String,
    /// The name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Namespace of the object; the own one when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub namespace: Option<String>,
    /// The port.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
}

/// Changes to headers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Headers {
    /// For requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<HeaderOperations>,
    /// For responses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<HeaderOperations>,
}

/// Changes to headers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeaderOperations {
    /// Headers to add, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub add: Option<BTreeMap<String, Text>>,
    /// Headers to remove.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remove: Option<Vec<Text>>,
    /// Headers to set, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<BTreeMap<String, Text>>,
}

/// A gateway of the Gateway API.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GatewayRef {
    /// The API group.
    #[serde(default = "default_group")]
    #[schemars(
        length(max = 253),
        regex(pattern = r"^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub group: String,
    /// Kind of the object.
    #[serde(default = "default_gateway_ref_kind")]
    #[schemars(length(min = 1, max = 63), regex(pattern = "^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$"))]
    pub kind: String,
    /// The name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Namespace of the object; the own one when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub namespace: Option<String>,
    /// The listener.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub section_name: Option<String>,
    /// The port.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
}

/// Cross-origin rules.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CorsPolicy {
    /// Whether the caller may send credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_credentials: Option<bool>,
    /// Request headers a browser may send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_headers: Option<Vec<Text>>,
    /// HTTP methods a browser may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_methods: Option<Vec<Text>>,
    /// Origins that may call, as plain texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_origin: Option<Vec<Text>>,
    /// Origins that may call, as matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_origins: Option<Vec<OriginMatch>>,
    /// Response headers a browser may read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expose_headers: Option<Vec<Text>>,
    /// How long it is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_age: Option<String>,
}

/// Matches an origin. Exactly one of the fields is set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("oneOf" = [{"required": ["exact"]}, {"required": ["prefix"]}, {"required": ["regex"]}]))]
pub struct OriginMatch {
    /// The whole text must be equal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exact: Option<Text>,
    /// The text must start so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Text>,
    /// Regular expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regex: Option<Text>,
}

/// Metadata of a Service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceMetadata {
    /// Labels to set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
    /// Annotations to set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
}

/// Metadata that is left alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnmanagedMetadata {
    /// Annotations to set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Vec<String>>,
    /// Labels to set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Vec<String>>,
}

fn default_kind() -> String {
    "Service".to_owned()
}

fn default_group() -> String {
    "gateway.networking.k8s.io".to_owned()
}

fn default_gateway_ref_kind() -> String {
    "Gateway".to_owned()
}
