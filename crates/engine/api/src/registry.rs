//! CRDs by component.

use crate::crd::Definition;
use crate::{
    flagger, helm, image, kustomize, notification, openflux, openmcp, operator, source, source_extensions,
};

/// The CRDs of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CrdSet {
    /// Sources.
    Source,
    /// Kustomizations.
    Kustomize,
    /// Helm releases.
    Helm,
    /// Alerts, providers, receivers.
    Notification,
    /// Image repositories and policies.
    ImageReflector,
    /// Image update automations.
    ImageAutomation,
    /// Artifact generators.
    SourceWatcher,
    /// Flux instances, reports, resource sets.
    Operator,
    /// Open Flux artifacts and sources.
    OpenFlux,
    /// Open Control Plane.
    OpenMcp,
    /// Canaries.
    Flagger,
}

impl CrdSet {
    /// All sets.
    pub const ALL: [CrdSet; 11] = [
        CrdSet::Source,
        CrdSet::Kustomize,
        CrdSet::Helm,
        CrdSet::Notification,
        CrdSet::ImageReflector,
        CrdSet::ImageAutomation,
        CrdSet::SourceWatcher,
        CrdSet::Operator,
        CrdSet::OpenFlux,
        CrdSet::OpenMcp,
        CrdSet::Flagger,
    ];
}

/// The definitions of one set, in a fixed order.
#[must_use]
pub fn definitions(set: CrdSet) -> Vec<Definition> {
    match set {
        CrdSet::Source => vec![
            source::bucket::definition(),
            source::external_artifact::definition(),
            source::git_repository::definition(),
            source::helm_chart::definition(),
            source::helm_repository::definition(),
            source::oci_repository::definition(),
        ],
        CrdSet::Kustomize => vec![kustomize::kustomization::definition()],
        CrdSet::Helm => vec![helm::helm_release::definition()],
        CrdSet::Notification => vec![
            notification::alert::definition(),
            notification::provider::definition(),
            notification::receiver::definition(),
        ],
        CrdSet::ImageReflector => {
            vec![image::image_policy::definition(), image::image_repository::definition()]
        }
        CrdSet::ImageAutomation => vec![image::image_update_automation::definition()],
        CrdSet::SourceWatcher => vec![source_extensions::artifact_generator::definition()],
        CrdSet::Operator => vec![
            operator::flux_instance::definition(),
            operator::flux_report::definition(),
            operator::resource_set::definition(),
            operator::resource_set_input_provider::definition(),
        ],
        CrdSet::OpenFlux => vec![openflux::artifact::definition(), openflux::http::definition()],
        CrdSet::OpenMcp => vec![
            openmcp::access_request::definition(),
            openmcp::cluster::definition(),
            openmcp::cluster_profile::definition(),
            openmcp::cluster_provider::definition(),
            openmcp::cluster_request::definition(),
            openmcp::control_plane::definition(),
            openmcp::flux::definition(),
            openmcp::helm_deployer_config::definition(),
            openmcp::helm_deployment::definition(),
            openmcp::platform_service::definition(),
            openmcp::provider_config::definition(),
            openmcp::service_provider::definition(),
        ],
        CrdSet::Flagger => vec![
            flagger::alert_provider::definition(),
            flagger::canary::definition(),
            flagger::metric_template::definition(),
        ],
    }
}
