//! `helm.toolkit.fluxcd.io`: charts that are released.

pub mod actions;
pub mod helm_release;

pub use helm_release::{HelmRelease, HelmReleaseSpec, HelmReleaseStatus};
