//! The Kustomization controller.
//!
//! A pass reads as five named steps, each in its own file: `dereference` (source, dependencies, variables, keys, cluster), `validate`
//! (what the spec asks for, compiled and checked), `build` (files in, objects out; no client), `apply` (apply, prune, health) and
//! `status` (conditions, history, events). `delete` lets a Kustomization go; `drift` watches what was applied and wakes a
//! Kustomization when somebody else changed it.
//!
//! What a build does to a kustomization file and to the objects ([`add_overrides`], [`drop_unknown`], [`substitute_object`]) is
//! open to the command line, whose `build` must not come to other results.
//!
//! Builds and applies are remembered: with the same files, variables and spec nothing is built, and objects whose metadata is watched
//! and unchanged cost no request. A build that fetched remote bases is made anew on every interval, as nobody else tells when they
//! change.

mod annotations;
mod apply;
mod build;
mod controller;
mod delete;
mod dereference;
mod drift;
mod options;
mod status;
mod target;
mod validate;

pub use build::{
    EngineKeyServices, KUSTOMIZATION_FILES, SubstituteSettings, add_overrides, drop_unknown,
    substitute_object,
};
pub use controller::KustomizationController;
pub use options::Options;

use fl_runtime::{ArtifactFetcher, Runtime};

/// Adds the controller to a runtime.
pub fn add(runtime: &Runtime, artifacts: ArtifactFetcher, options: Options) {
    let concurrent = options.concurrent;
    let controller = KustomizationController::new(runtime, artifacts, options);
    runtime.add(controller, concurrent);
}
