//! The one Kubernetes client.
//!
//! - [`Connection`]: how an API server is reached (kubeconfig, in-cluster, a tenant's Secret or ConfigMap) and as whom;
//! - [`Client`]: requests as JSON, under one identity, with discovery and a limit on parallel requests;
//! - [`layer`]: what every request passes through, whoever sends it: user agent, metrics, the fence of the lease, the rate limit,
//!   a deadline and a limit on the size of the answer;
//! - [`Error`]: one error type, with one notion of what is transient; [`Lookup`]: a failed read is unknown, never absent.
//!
//! No other crate names `kube::Client` outside of tests (`cargo xtask layers` checks it), so no request can go around the layers.

mod client;
mod connect;
mod deadline;
mod discovery;
mod error;
mod identity;
mod kind;
mod known_secrets;
pub mod layer;
mod lookup;
mod path;
mod request;
mod shutdown;
mod write;

pub use client::Client;
pub use connect::{
    ConfigOverrides, ConnectError, ConnectOptions, Connection, Kubeconfig, KubeconfigError, RemoteAccounts,
    RemoteError, RemoteOptions,
};
pub use deadline::{Deadline, remaining, within};
pub use error::{ApiError, Error};
pub use identity::{Identity, ServiceAccountName};
pub use kind::{Key, Kind};
pub use known_secrets::{KnownSecrets, MaskedText};
pub use layer::{Fence, Limits, Observer, Settings};
pub use lookup::Lookup;
pub use path::{push_segment, query};
pub use request::{Answer, Event, EventType, Events, Raw, Request};
pub use shutdown::Shutdown;
pub use write::{Delete, Patch, Write};
