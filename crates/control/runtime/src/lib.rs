//! The ground every controller stands on.
//!
//! One [`Runtime`] per process holds what all controllers share:
//!
//! - the [`Hub`]: one watch per kind, whatever the number of controllers that look at it;
//! - the [`Graph`]: who refers to whom; a change wakes the referrers at once, across kinds. Timers are only the safety net;
//! - a [`WorkQueue`] per controller: fair between namespaces, never the same object twice at once, backoff after failures;
//! - [`Recorder`], [`Metrics`], [`Log`]: events, numbers and lines as Flux's controllers give them.
//!
//! A controller is a [`Reconciler`]; the driver around it does finalizers, suspension, reconcile requests, deletion, panics,
//! and one status patch per pass (progress in between at most once a second). What an error means for the next try is in one
//! table, [`Outcome::of_failure`].
//!
//! References to sources, of our own and of foreign kinds, are followed by one [`Resolver`]; artifacts are read through one
//! [`ArtifactFetcher`].

mod artifact;
mod backoff;
mod cluster;
pub mod conditions;
mod controller;
pub mod election;
mod events;
mod failure;
mod gates;
mod graph;
mod hub;
mod kind;
pub mod log;
mod metrics;
mod object;
mod options;
mod pass;
mod patch;
mod pressure;
mod queue;
mod resolve;
mod runtime;
mod scrape;
pub mod serve;
mod slot;
mod stop;
mod wake;

pub use artifact::{ArtifactError, ArtifactFetcher, ArtifactFile, STATUS_FOLLOWS};
pub use backoff::Backoff;
pub use cluster::{
    ApiError, Cluster, ConnectError, ConnectOptions, Connection, Delete, Fence, Identity, Known, Patch,
    ProxyError, RemoteAccounts, RemoteError, RemoteOptions, Write, client,
};
pub use conditions::Conditions;
pub use controller::{End, Names, Reconciler};
pub use events::{About, EventSink, HttpSink, Notification, Recorder};
pub use failure::{EventKind, Failure, FailureKind, Next, Outcome};
pub use gates::{FeatureGates, GateError};
pub use graph::{Edge, Graph, On, Waker};
pub use hub::{Change, Content, Hub, Listener, Live, News, Store, WatchSpec};
pub use kind::{Key, Kind};
pub use log::Log;
pub use metrics::{Described, FAMILIES, Metrics};
pub use object::{FINALIZER, REQUESTED_AT, Reconciled, Source, StatusHead};
pub use options::Options;
pub use pass::Pass;
pub use patch::merge_patch;
pub use queue::WorkQueue;
pub use resolve::{ResolveError, ResolvedSource, Resolver};
pub use runtime::Runtime;
pub use slot::idle;
pub use stop::Stop;
