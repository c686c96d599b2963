//! Open Flux's `Artifact`

use std::collections::BTreeMap;

use fl_types::Digest;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::Definition;
use crate::resource::{EmptyStatus, Object, Resource, Scope};

/// An artifact of any producer, found by the object that owns it.
pub type Artifact = Object<ArtifactSpec, EmptyStatus>;

impl Resource for Artifact {
    const GROUP: &'static str = "openfluxcd.ocm.software";
    const KIND: &'static str = "Artifact";
    const PLURAL: &'static str = "artifacts";
    const VERSIONS: &'static [&'static str] = &["v1alpha1"];
    const SCOPE: Scope = Scope::Namespaced;
}

/// The CRD of [`Artifact`].
pub(crate) fn definition() -> Definition {
    Definition::of::<Artifact>().status_subresource()
}

/// The artifact, set by its producer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactSpec {
    /// Digest of the file behind `url`, `algorithm:hex`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[a-z0-9]+(?:[.+_-][a-z0-9]+)*:[a-zA-Z0-9=_-]+$"))]
    pub digest: Option<Digest>,
    /// When it was last updated.
    pub last_update_time: Timestamp,
    /// Further facts by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<BTreeMap<String, String>>,
    /// What it was made from, traceable in the source.
    pub revision: String,
    /// Size of the file in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<i64>,
    /// Where the file can be fetched.
    pub url: String,
}
