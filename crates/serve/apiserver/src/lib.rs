//! An embedded Kubernetes API server with a persistent store.

pub mod builtin;
pub mod names;
pub mod resource;
