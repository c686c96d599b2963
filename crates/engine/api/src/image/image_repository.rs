//! `ImageRepository`

use fl_types::Duration;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::{Column, DURATION_PATTERN, Definition, FETCH_TIMEOUT_PATTERN};
use crate::meta::access::AccessFrom;
use crate::meta::condition::Condition;
use crate::meta::provider::CloudProvider;
use crate::meta::references::LocalObjectReference;
use crate::resource::{Object, Resource, Scope};

/// The tags of an image.
pub type ImageRepository = Object<ImageRepositorySpec, ImageRepositoryStatus>;

impl Resource for ImageRepository {
    const GROUP: &'static str = "image.toolkit.fluxcd.io";
    const KIND: &'static str = "ImageRepository";
    const PLURAL: &'static str = "imagerepositories";
    const VERSIONS: &'static [&'static str] = &["v1", "v1beta2", "v1beta1"];
    const SCOPE: Scope = Scope::Namespaced;
}

/// The CRD of [`ImageRepository`].
pub(crate) fn definition() -> Definition {
    Definition::of::<ImageRepository>()
        .short_names(&["imgrepo", "imagerepo"])
        .categories(&["all", "fluxcd", "fluxcd-images"])
        .column(Column::new("Image", "string", ".spec.image"))
        .column(Column::new("Tags", "string", ".status.lastScanResult.tagCount"))
        .column(Column::new("Ready", "string", r#".status.conditions[?(@.type=="Ready")].status"#))
        .column(Column::new("Status", "string", r#".status.conditions[?(@.type=="Ready")].message"#))
        .column(Column::new("Last scan", "string", ".status.lastScanResult.scanTime").priority(1))
        .column(Column::new("Age", "date", ".metadata.creationTimestamp"))
        .status_subresource()
        .unobserved_until_reconciled()
}

/// Which image's tags are listed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageRepositorySpec {
    /// Which namespaces may refer to this repository from their image policies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_from: Option<AccessFrom>,
    /// Secret with a client certificate (`tls.crt`, `tls.key`) and a certificate authority (`ca.crt`), any
    /// of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cert_secret_ref: Option<LocalObjectReference>,
    /// Regular expressions; what matches one is left out.
    #[serde(default = "default_exclusion_list")]
    #[schemars(length(max = 25))]
    pub exclusion_list: Vec<String>,
    /// The image, without tag or digest.
    pub image: String,
    /// Allow plain HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub insecure: Option<bool>,
    /// How often to reconcile.
    #[schemars(regex(pattern = DURATION_PATTERN))]
    pub interval: Duration,
    /// Which cloud gives the credentials.
    #[serde(default)]
    pub provider: CloudProvider,
    /// Secret with the proxy's `address`, `username` and `password`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy_secret_ref: Option<LocalObjectReference>,
    /// Secret with the credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
    /// ServiceAccount whose pull secrets or cloud identity list the tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub service_account_name: Option<String>,
    /// Stop reconciling, keep everything as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// How long it may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = FETCH_TIMEOUT_PATTERN))]
    pub timeout: Option<Duration>,
}

/// The state of the scan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageRepositoryStatus {
    /// The image name with every default spelled out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canonical_image_name: Option<String>,
    /// The conditions of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    /// The last reconcile request that was handled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// What the last scan found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_scan_result: Option<ScanResult>,
    /// The exclusion list used last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_exclusion_list: Option<Vec<String>>,
    /// The generation this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// What a scan found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScanResult {
    /// The first tags found, newest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest_tags: Option<Vec<String>>,
    /// Digest over the tags found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// When the scan was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scan_time: Option<Timestamp>,
    /// How many tags there are.
    pub tag_count: isize,
}

fn default_exclusion_list() -> Vec<String> {
    vec![r"^.*\.sig$".to_owned()]
}
