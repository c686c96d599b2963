//! The manifests that install Fluorite.
//!
//! Names, ports, labels and roles are Flux's, since others depend on them: artifact URLs name the Service
//! `source-controller`, webhook senders call `webhook-receiver`, tenants' bindings name the roles. The engine
//! runs as one Deployment ([`Layout::Single`]) or as one per controller ([`Layout::Split`]).
//!
//! [`Options`] select what to install, [`manifests`] builds the objects in the order they should be applied,
//! and [`to_yaml`] writes them.

mod component;
mod error;
mod metadata;
mod network;
mod options;
mod rbac;
mod render;
mod workload;

/// Field manager and `app.kubernetes.io/managed-by` label of the objects that `fluorite up` creates.
pub const UP_MANAGER: &str = "fluorite-up";

pub use component::Component;
pub use error::Error;
pub use options::{Layout, LogLevel, NetworkPolicy, Options, Watch};
pub use render::{accounts, crds, labelled_crds, manifests, to_yaml};
