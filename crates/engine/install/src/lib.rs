//! The manifests that install Fluorite.
//!
//! Names, ports, labels and roles are Flux's, because other things depend on them: artifact URLs name the Service
//! `source-controller`, webhook senders call `webhook-receiver`, tenants' bindings name the roles. Behind those names
//! runs one Deployment ([`Layout::Single`]) or one per controller ([`Layout::Split`]).
//!
//! [`Options`] say what to install, [`manifests`] builds the objects in the order they should be applied, and
//! [`to_yaml`] writes them.

mod component;
mod error;
mod metadata;
mod network;
mod options;
mod rbac;
mod render;
mod workload;

pub use component::Component;
pub use error::Error;
pub use options::{Layout, LogLevel, NetworkPolicy, Options, Watch};
pub use render::{accounts, crds, labelled_crds, manifests, to_yaml};
