//! Every API type Fluorite knows, and the CRDs generated from them.
//!
//! One folder per API group, one file per kind: its coordinates, its CRD's names and columns, its spec and status.
//! Parts that several kinds share are in [`meta`]; types of Kubernetes itself in [`core`].
//!
//! The schema of a CRD is derived from the Rust type, so the two cannot disagree; [`crd`] turns what `schemars`
//! derives into a structural schema. Older versions of a kind are served with the same fields, those they alone had
//! included, so that an object written years ago goes through unharmed and without a conversion webhook.
//!
//! [`CrdSet`] names the CRDs of a component; [`Resource`] says where a kind lives.

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
