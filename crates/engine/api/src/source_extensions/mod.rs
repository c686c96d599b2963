//! `source.extensions.fluxcd.io`: artifacts made from artifacts.

pub mod artifact_generator;

pub use artifact_generator::{ArtifactGenerator, ArtifactGeneratorSpec, ArtifactGeneratorStatus};
