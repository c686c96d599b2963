//! Open Flux's `Http`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::Definition;
use crate::meta::condition::Condition;
use crate::resource::{Object, Resource, Scope};

/// An archive behind an HTTP address.
pub type Http = Object<HttpSpec, HttpStatus>;

impl Resource for Http {
    const GROUP: &'static str = "openfluxcd.openfluxcd";
    const KIND: &'static str = "Http";
    const PLURAL: &'static str = "https";
    const VERSIONS: &'static [&'static str] = &["v1alpha1"];
    const SCOPE: Scope = Scope::Namespaced;
}

/// The CRD of [`Http`].
pub(crate) fn definition() -> Definition {
    Definition::of::<Http>().status_subresource()
}

/// What to fetch over HTTP.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpSpec {
    /// Address of the archive to fetch.
    pub url: String,
}

/// What was fetched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpStatus {
    /// Name of the Artifact object that this source owns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact_name: Option<String>,
    /// The conditions of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    /// Revision applied last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_applied_revision: Option<String>,
    /// Last attempted revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_attempted_revision: Option<String>,
    /// The generation this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}
