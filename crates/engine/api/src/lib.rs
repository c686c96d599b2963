//! The API types of Fluorite, and the CRDs generated from them.
//!
//! One folder per API group, one file per kind: its group, its CRD's names and columns, its spec and status.
//! Types shared by several kinds are in [`meta`]; types of Kubernetes itself in [`core`].
//!
//! The schema of a CRD is derived from the Rust type, so the two cannot disagree; [`crd`] converts what
//! `schemars` derives to a structural schema. Older versions of a kind are served with the same fields,
//! including fields that only they had, so that old objects are not changed and no conversion webhook is
//! needed.
//!
//! [`CrdSet`] lists the CRDs of a component; [`Resource`] has the group, version and kind of a type.

pub mod condition;
pub mod core;
pub mod crd;
pub mod flagger;
pub mod helm;
pub mod image;
pub mod kustomize;
pub mod meta;
pub mod notification;
pub mod openflux;
pub mod openmcp;
pub mod operator;
mod registry;
mod resource;
pub mod source;
pub mod source_extensions;

pub use registry::{CrdSet, definitions};
pub use resource::{
    EmptyStatus, NoStatus, Object, ObjectMeta, ObjectSchema, OwnerReference, Resource, Scope, StatusSchema,
};
