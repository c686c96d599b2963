//! Parts that several kinds share.

pub mod access;
pub mod artifact;
pub mod condition;
pub mod drift;
mod free_form;
pub mod health;
pub mod history;
pub mod inventory;
pub mod kube_config;
pub mod kustomize;
pub mod metadata;
pub mod provider;
pub mod range;
pub mod references;

pub use free_form::{AnyObject, AnyValue};

/// The default of switches that are on unless turned off.
pub(crate) fn yes() -> bool {
    true
}
