//! The HelmRelease controller: releases that never get stuck.
//!
//! - [`HelmReleaseController`] is the [`Reconciler`](fl_runtime::Reconciler): prerequisites (dependencies, source, values,
//!   chart), then the state machine.
//! - `release` decides: which state a release is in, which action follows, what its end means for conditions and retries.
//! - `action` does: install, upgrade, rollback, uninstall, test, with hooks, CRDs, post-renderers and records as Helm 4 has
//!   them in Flux's hands.
//! - `drift` compares a release with the cluster and puts it right.
//!
//! State is what the cluster holds: the records in Helm's own format and the history in the status. A process that is
//! killed leaves a release that the next pass understands: `pending-*` records are unlocked, a release whose status was
//! not written any more is recognised by its labels, chart and values and taken over without a second effect.

mod action;
mod chart;
mod controller;
mod dependencies;
mod drift;
mod json_diff;
mod release;
mod requests;
mod snapshots;
mod source;
mod spec;
mod target;
mod values;
mod watch;

pub use controller::{HelmReleaseController, Settings};
