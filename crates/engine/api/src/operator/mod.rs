//! `fluxcd.controlplane.io`: installations of Flux and sets of resources.

pub mod flux_instance;
pub mod flux_report;
pub mod resource_set;
pub mod resource_set_input_provider;

pub use flux_instance::{FluxInstance, FluxInstanceSpec, FluxInstanceStatus};
pub use flux_report::{FluxReport, FluxReportSpec, FluxReportStatus};
pub use resource_set::{ResourceSet, ResourceSetSpec, ResourceSetStatus};
pub use resource_set_input_provider::{
    ResourceSetInputProvider, ResourceSetInputProviderSpec, ResourceSetInputProviderStatus,
};
