//! An embedded Kubernetes API server with a persistent store.
//!
//! [`ApiServer`] answers requests: over a socket ([`Listener`]), or without one ([`ApiServer::service`], a tower
//! service to build a client on). [`store`] holds the objects; [`resource`] says what the server knows about a type and
//! which hooks a kind may fill in; [`builtin`] fills them in for the built-in kinds.

mod admission;
pub mod age;
mod allocate;
mod answer;
mod auth;
pub mod builtin;
mod builtin_types;
mod controllers;
mod crd;
mod discovery;
pub mod names;
mod negotiate;
mod object;
mod openapi;
mod path;
mod registry;
pub mod resource;
mod reviews;
mod selector;
mod server;
mod simulate;
mod special;
mod status;
pub mod store;
mod verbs;
mod wire;
mod yaml;

pub use answer::Body;
pub use auth::User;
pub use auth::token::{generate_signing_key, random_token};
pub use path::{Query, ResourcePath, Route, route};
pub use registry::Registry;
pub use selector::{FieldSelector, LabelSelector};
pub use server::{
    ApiServer, Identity, InProcess, ListenError, Listener, Options, Peer, Pki, PkiError, SimulateOptions,
    StartError, kubeconfig, write_private,
};
pub use status::ApiError;
