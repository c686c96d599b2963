//! `AlertProvider`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::{Column, Definition};
use crate::meta::references::LocalObjectReference;
use crate::resource::{NoStatus, Object, Resource, Scope};

/// A service that canary alerts are sent to.
pub type AlertProvider = Object<AlertProviderSpec, NoStatus>;

impl Resource for AlertProvider {
    const GROUP: &'static str = "flagger.app";
    const KIND: &'static str = "AlertProvider";
    const PLURAL: &'static str = "alertproviders";
    const VERSIONS: &'static [&'static str] = &["v1beta1"];
    const SCOPE: Scope = Scope::Namespaced;
}

/// The CRD of [`AlertProvider`].
pub(crate) fn definition() -> Definition {
    Definition::of::<AlertProvider>()
        .categories(&["all"])
        .column(Column::new("Type", "string", ".spec.type"))
        .status_subresource()
}

/// Where alerts are sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("oneOf" = [{"required": ["type", "address"]}, {"required": ["type", "secretRef"]}]))]
pub struct AlertProviderSpec {
    /// The type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#type: Option<AlertProviderType>,
    /// The channel to post to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// Name to post under.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// Where to send or ask.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Address of the proxy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// Secret with the credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
}

/// Services alerts can be sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum AlertProviderType {
    #[serde(rename = "slack")]
    Slack,
    #[serde(rename = "msteams")]
    Msteams,
    #[serde(rename = "discord")]
    Discord,
    #[serde(rename = "rocket")]
    Rocket,
    #[serde(rename = "gchat")]
    Gchat,
}
