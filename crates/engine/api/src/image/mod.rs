//! `image.toolkit.fluxcd.io`: images that are watched, chosen and written back.

pub mod image_policy;
pub mod image_reference;
pub mod image_repository;
pub mod image_update_automation;

pub use image_policy::{ImagePolicy, ImagePolicySpec, ImagePolicyStatus};
pub use image_repository::{ImageRepository, ImageRepositorySpec, ImageRepositoryStatus};
pub use image_update_automation::{
    ImageUpdateAutomation, ImageUpdateAutomationSpec, ImageUpdateAutomationStatus,
};
