//! Istio's traffic policy.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::flagger::text::Text;

/// Istio's traffic policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrafficPolicy {
    /// Limits of connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection_pool: Option<ConnectionPool>,
    /// How hosts are chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_balancer: Option<LoadBalancer>,
    /// When hosts are put aside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outlier_detection: Option<OutlierDetection>,
    /// How TLS is spoken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
}

/// Limits of connections.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionPool {
    /// Limits for HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpConnectionPool>,
}

/// Limits for HTTP.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpConnectionPool {
    /// Whether HTTP/1.1 is upgraded to HTTP/2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub h2_upgrade_policy: Option<H2UpgradePolicy>,
    /// How many requests may wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http1_max_pending_requests: Option<i32>,
    /// How many requests may be under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http2_max_requests: Option<i32>,
    /// When an idle connection is closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<String>,
    /// How many requests one connection serves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_requests_per_connection: Option<i32>,
    /// How many retries may be under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<i32>,
}

/// Whether HTTP/1.1 is upgraded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum H2UpgradePolicy {
    #[serde(rename = "DEFAULT")]
    Default,
    #[serde(rename = "DO_NOT_UPGRADE")]
    Donotupgrade,
    #[serde(rename = "UPGRADE")]
    Upgrade,
}

/// How hosts are chosen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("oneOf" = [{"required": ["simple"]}, {"properties": {"consistentHash": {"oneOf": [{"required": ["httpHeaderName"]}, {"required": ["httpCookie"]}, {"required": ["useSourceIp"]}, {"required": ["httpQueryParameterName"]}]}}, "required": ["consistentHash"]}]))]
pub struct LoadBalancer {
    /// Keeps callers on the same host by a hash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consistent_hash: Option<ConsistentHash>,
    /// How localities are chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locality_lb_setting: Option<LocalityLbSetting>,
    /// A plain algorithm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simple: Option<LoadBalancerAlgorithm>,
    /// How long new hosts are warmed up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warmup_duration_secs: Option<String>,
}

/// What the hash is computed from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConsistentHash {
    /// By a cookie.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_cookie: Option<HttpCookie>,
    /// By a header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_header_name: Option<Text>,
    /// By a query parameter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_query_parameter_name: Option<Text>,
    /// Size of the hash ring.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum_ring_size: Option<isize>,
    /// By the caller's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub use_source_ip: Option<bool>,
}

/// A cookie.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpCookie {
    /// The name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Text>,
    /// The path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<Text>,
    /// Lifetime of the cookie.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl: Option<String>,
}

/// How localities are chosen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalityLbSetting {
    /// How traffic is spread over localities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distribute: Option<Vec<Distribute>>,
    /// Turns it on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Where traffic goes when a locality fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failover: Option<Vec<Failover>>,
}

/// How one locality's traffic is spread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Distribute {
    /// Where from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Text>,
    /// Where to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<BTreeMap<String, isize>>,
}

/// Where one locality's traffic goes when it fails.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Failover {
    /// Where from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Text>,
    /// Where to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Text>,
}

/// Plain algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum LoadBalancerAlgorithm {
    #[serde(rename = "ROUND_ROBIN")]
    Roundrobin,
    #[serde(rename = "LEAST_CONN")]
    Leastconn,
    #[serde(rename = "RANDOM")]
    Random,
    #[serde(rename = "PASSTHROUGH")]
    Passthrough,
    #[serde(rename = "LEAST_REQUEST")]
    Leastrequest,
}

/// When hosts are put aside.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutlierDetection {
    /// How long a host is put aside at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_ejection_time: Option<String>,
    /// Number of consecutive 5xx responses that eject a host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consecutive5xx_errors: Option<isize>,
    /// How many errors in a row put a host aside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consecutive_errors: Option<i32>,
    /// How many gateway errors in a row put a host aside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consecutive_gateway_errors: Option<i32>,
    /// How many local failures in a row put a host aside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consecutive_local_origin_failures: Option<i32>,
    /// Time between two looks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<String>,
    /// At most this share of hosts is put aside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_ejection_percent: Option<i32>,
    /// Minimum percentage of healthy hosts below which no host is ejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_health_percent: Option<i32>,
    /// Count local and remote errors apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split_external_local_origin_errors: Option<bool>,
}

/// How TLS is spoken.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tls {
    /// Path of the certificate authorities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_certificates: Option<Text>,
    /// Path of the client certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_certificate: Option<Text>,
    /// Which mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<TlsMode>,
    /// Path of the private key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub private_key: Option<Text>,
    /// Server name to present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sni: Option<Text>,
    /// Names the server may present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject_alt_names: Option<Vec<Text>>,
}

/// How TLS is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum TlsMode {
    #[serde(rename = "DISABLE")]
    Disable,
    #[serde(rename = "SIMPLE")]
    Simple,
    #[serde(rename = "MUTUAL")]
    Mutual,
    #[serde(rename = "ISTIO_MUTUAL")]
    Istiomutual,
}
