//! The Kustomization controller.
//!
//! A reconcile (`reconcile`) is a sequence of steps, each in its own module with its own error: `dereference` (source,
//! dependencies, variables, keys), `validate` (the spec, compiled and checked), `build` (files in, objects out; no client),
//! `apply` (apply, prune, health) and `status` (progress, history, events). `error` maps the error of a step to the result of
//! the reconcile. `delete` handles deletion; `drift` watches applied objects and enqueues a Kustomization when another field
//! manager changed one of them.
//!
//! Builds and applies are cached: with the same files, variables and spec nothing is built, and objects whose metadata is
//! watched and unchanged cost no request. A build that fetched remote bases is repeated at every interval, because no watch
//! reports their changes.

mod annotations;
mod apply;
mod build;
mod controller;
mod delete;
mod dereference;
mod drift;
mod error;
mod options;
mod reconcile;
mod status;
mod target;
mod validate;

pub use build::EngineKeyServices;
pub use controller::KustomizationController;
pub use options::Options;

use fl_runtime::{ArtifactFetcher, Runtime};

/// Adds the controller to a runtime.
pub fn add(runtime: &Runtime, artifacts: ArtifactFetcher, options: Options) {
    let concurrent = options.concurrent;
    let controller = KustomizationController::new(runtime, artifacts, options);
    runtime.add(controller, concurrent);
}
