//! The controller runtime.
//!
//! One [`Runtime`] per process holds what all controllers share:
//!
//! - [`Informers`]: one list and watch per kind, shared by all controllers;
//! - the [`Graph`] of references: a change enqueues the referring objects at once, across kinds. Timers are
//!   only the safety net;
//! - a [`WorkQueue`] per controller: fair between namespaces, never the same object twice at once, backoff after failures;
//! - [`Recorder`], [`Metrics`], [`Log`]: events, metrics and log lines in the format of Flux's controllers.
//!
//! A controller is a [`Reconciler`]; the driver around it handles finalizers, suspension, reconcile requests,
//! deletion and panics, and writes one status patch per reconcile (progress at most once a second). The
//! module `result` has the one table from a result to conditions, event and requeue.
//!
//! References to built-in and foreign sources are resolved by one [`Resolver`]; artifacts are read through
//! one [`ArtifactFetcher`].

mod artifact_fetcher;
mod backoff;
mod collectors;
mod concurrency;
pub mod conditions;
mod context;
mod controller;
mod events;
mod feature_gates;
mod graph;
pub mod http_server;
mod informer;
pub mod leader_election;
mod load;
mod lockdown;
pub mod log;
mod metrics;
mod options;
mod queue;
mod resource;
mod result;
mod runtime;
mod source_ref;
mod starvation;
mod status_patch;
mod triggers;

pub use artifact_fetcher::{ArtifactError, ArtifactFetcher, ArtifactFile, STATUS_FOLLOWS};
pub use backoff::Backoff;
pub use concurrency::{on_remote, without_permit};
pub use conditions::Conditions;
pub use context::Context;
pub use controller::{Names, Reconciler};
pub use events::{EventSink, HttpSink, InvolvedObject, Notification, Recorder};
pub use feature_gates::{FeatureGates, GateError};
pub use fl_client::{
    Client, ConnectError, ConnectOptions, Connection, Delete, Error as ClientError, Fence, Identity, Key,
    Kind, KnownSecrets, Lookup, MaskedText, Patch, RemoteAccounts, RemoteError, RemoteOptions,
    ServiceAccountName, Shutdown, Write,
};
pub use graph::{Edge, EnqueueFn, Graph, Trigger};
pub use informer::{CachedObject, Change, ChangeStream, Content, EventHandler, Informers, Store, WatchSpec};
pub use lockdown::{AccessDenied, Lockdown};
pub use log::Log;
pub use metrics::{Described, FAMILIES, Metrics};
pub use options::Options;
pub use queue::{Target, WorkQueue};
pub use resource::{FINALIZER, REQUESTED_AT, Reconciled, Source, StatusHead};
pub use result::{
    Completed, ConditionPolicy, ErrorCondition, ErrorLog, EventKind, ObservedGeneration, Outcome, Phase,
    ReconcileError, ReconcileResult, Requeue, Retry,
};
pub use runtime::Runtime;
pub use source_ref::{ResolveError, ResolvedSource, Resolver};
pub use status_patch::merge_patch;
