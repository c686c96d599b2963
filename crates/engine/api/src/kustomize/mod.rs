//! `kustomize.toolkit.fluxcd.io`: manifests that are built and applied.

pub mod kustomization;

pub use kustomization::{Kustomization, KustomizationSpec, KustomizationStatus};
