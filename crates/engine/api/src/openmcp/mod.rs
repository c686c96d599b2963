//! Open Control Plane: the kinds of the platform that Fluorite serves or reads.

pub mod access_request;
pub mod cluster;
pub mod cluster_profile;
pub mod cluster_provider;
pub mod cluster_request;
pub mod control_plane;
pub mod flux;
pub mod helm_deployer_config;
pub mod helm_deployment;
pub mod permissions;
pub mod platform_service;
pub mod provider_config;
pub mod provider_deployment;
pub mod selector;
pub mod service_provider;

pub use access_request::AccessRequest;
pub use cluster::Cluster;
pub use cluster_profile::ClusterProfile;
pub use cluster_provider::ClusterProvider;
pub use cluster_request::ClusterRequest;
pub use control_plane::ControlPlane;
pub use flux::Flux;
pub use helm_deployer_config::HelmDeployerConfig;
pub use helm_deployment::HelmDeployment;
pub use platform_service::PlatformService;
pub use provider_config::ProviderConfig;
pub use service_provider::ServiceProvider;
