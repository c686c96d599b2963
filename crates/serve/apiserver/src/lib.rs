//! An embedded Kubernetes API server with a persistent store.
//!
//! [`ApiServer`] answers requests: over a socket ([`Listener`]), or without one ([`ApiServer::service`], a tower
//! service to build a client on). [`store`] holds the objects; [`resource_type`] describes a served type;
//! `fl-builtin` holds the strategies of the built-in kinds.
//!
//! A client in the same process needs no socket and no credentials; layers (faults, delays, counters) can be
//! placed in between:
//!
//! ```
//! use fl_apiserver::{ApiServer, User};
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube::api::{Api, PostParams};
//!
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let server = ApiServer::in_memory().await?;
//! let client = kube::Client::new(server.service(User::superuser("test")), "default");
//!
//! let maps: Api<ConfigMap> = Api::default_namespaced(client);
//! let map = serde_json::from_value(serde_json::json!({"metadata": {"name": "a"}, "data": {"k": "v"}}))?;
//! maps.create(&PostParams::default(), &map).await?;
//! assert_eq!(maps.get("a").await?.data.expect("data")["k"], "v");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`ApiServer::new`] takes [`Options`] (clock, simulated workloads, tokens) and a [`store::Store`] on disk
//! or in memory. The server's own controllers (garbage collection, namespaces, CRDs, simulation) run as tasks
//! of the current tokio runtime and use its timer, so that a paused runtime clock drives them as well.

mod admission;
mod allocator;
mod auth;
mod body;
mod controllers;
mod crd;
mod discovery;
mod negotiate;
mod object;
mod openapi;
mod protobuf;
mod registry;
mod request_info;
pub mod resource_type;
mod response;
mod reviews;
mod selector;
mod server;
mod simulate;
mod status;
pub mod store;
mod verbs;
mod webhook;
mod yaml;

pub use auth::User;
pub use auth::token::{generate_signing_key, random_token};
pub use body::Body;
pub use crd::ProvisionalKind;
pub use registry::Registry;
pub use request_info::{Query, RequestPath, ResourcePath, parse_path};
pub use selector::{FieldSelector, LabelSelector};
pub use server::{
    ApiServer, ConnectionInfo, Identity, InProcess, Limits, ListenError, Listener, Options, Pki, PkiError,
    Renewal, ServingCertificate, SimulateOptions, StartError, create_private_files, kubeconfig, private_dir,
    write_private,
};
pub use status::ApiError;
