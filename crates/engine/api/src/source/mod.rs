//! `source.toolkit.fluxcd.io`: where manifests and charts come from.

pub mod bucket;
pub mod external_artifact;
pub mod git_repository;
pub mod helm_chart;
pub mod helm_repository;
pub mod oci_repository;
pub mod verification;

pub use bucket::{Bucket, BucketSpec, BucketStatus};
pub use external_artifact::{ExternalArtifact, ExternalArtifactSpec, ExternalArtifactStatus};
pub use git_repository::{GitRepository, GitRepositorySpec, GitRepositoryStatus};
pub use helm_chart::{HelmChart, HelmChartSpec, HelmChartStatus};
pub use helm_repository::{HelmRepository, HelmRepositorySpec, HelmRepositoryStatus};
pub use oci_repository::{OCIRepository, OCIRepositorySpec, OCIRepositoryStatus};
