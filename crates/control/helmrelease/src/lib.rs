//! The HelmRelease controller: releases that never get stuck.
//!
//! A reconcile validates the spec, dereferences it, runs actions and reports the result:
//!
//! - [`HelmReleaseController`] is the [`Reconciler`](fl_runtime::Reconciler).
//! - `validate` checks the spec; `dereference` resolves dependencies, source, values, chart and target cluster.
//! - `release` is the loop of helm-controller's `AtomicRelease`: the state of a release, the action that follows from it, and
//!   its conditions and events.
//! - `action` are Helm's actions: install, upgrade, rollback, uninstall, test, with hooks, CRDs, post-renderers and storage.
//! - `drift` compares a release with the cluster and corrects it.
//! - `error` turns the error of a step into the result of the reconcile.
//!
//! State is in the cluster only: Helm's storage and the history in the status. A process that is killed leaves a release that
//! the next reconcile can handle: `pending-*` revisions are unlocked, and a release that is not in the status is recognised by
//! its labels, chart and values and recorded without a second action.

mod action;
mod annotations;
mod chart_cache;
mod chart_template;
mod controller;
mod delete;
mod dependencies;
mod dereference;
mod drift;
mod error;
mod history;
mod json_diff;
mod release;
mod source;
mod spec;
mod target;
mod uninstall;
mod validate;
mod values;

pub use controller::{HelmReleaseController, Settings};
