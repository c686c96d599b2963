//! `MetricTemplate`

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::{Column, Definition};
use crate::meta::references::LocalObjectReference;
use crate::resource::{NoStatus, Object, Resource, Scope};

/// A query that canaries can use.
pub type MetricTemplate = Object<MetricTemplateSpec, NoStatus>;

impl Resource for MetricTemplate {
    const GROUP: &'static str = "flagger.app";
    const KIND: &'static str = "MetricTemplate";
    const PLURAL: &'static str = "metrictemplates";
    const VERSIONS: &'static [&'static str] = &["v1beta1"];
    const SCOPE: Scope = Scope::Namespaced;
}

/// The CRD of [`MetricTemplate`].
pub(crate) fn definition() -> Definition {
    Definition::of::<MetricTemplate>()
        .categories(&["all"])
        .column(Column::new("Provider", "string", ".spec.provider.type"))
        .status_subresource()
}

/// A query and its metrics provider.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetricTemplateSpec {
    /// Metrics provider of the query.
    pub provider: MetricProvider,
    /// The query.
    pub query: String,
}

/// A metrics provider.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetricProvider {
    /// The type.
    pub r#type: MetricProviderType,
    /// Where to send or ask.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Headers to send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<BTreeMap<String, Vec<String>>>,
    /// Secret with the credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
    /// The region.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Skip verification of the certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub insecure_skip_verify: Option<bool>,
}

/// Types of metrics providers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum MetricProviderType {
    #[serde(rename = "prometheus")]
    Prometheus,
    #[serde(rename = "influxdb")]
    Influxdb,
    #[serde(rename = "datadog")]
    Datadog,
    #[serde(rename = "externalmetrics")]
    Externalmetrics,
    #[serde(rename = "stackdriver")]
    Stackdriver,
    #[serde(rename = "cloudwatch")]
    Cloudwatch,
    #[serde(rename = "newrelic")]
    Newrelic,
    #[serde(rename = "graphite")]
    Graphite,
    #[serde(rename = "dynatrace")]
    Dynatrace,
    #[serde(rename = "keptn")]
    Keptn,
    #[serde(rename = "splunk")]
    Splunk,
}
