//! The components of the engine, one row each.

use std::sync::Arc;

use fl_runtime::{ArtifactFetcher, Resolver, Runtime};
use fl_source::git::{GitRepositories, NetworkGit};
use fl_source::oci::{NetworkOci, OciRepositories};
use fl_store::Store;

use super::Args;

/// What a component is made from.
pub(super) struct Setup<'a> {
    pub(super) runtime: Runtime,
    /// The artifact store of this process.
    pub(super) store: Store,
    /// Follows references to sources.
    #[expect(dead_code, reason = "for the components that consume artifacts")]
    pub(super) resolver: Resolver,
    /// Reads artifacts of this process and of others.
    #[expect(dead_code, reason = "for the components that consume artifacts")]
    pub(super) artifacts: ArtifactFetcher,
    pub(super) args: &'a Args,
}

/// A part of the engine that can be run alone.
pub(super) struct Component {
    /// As in `--components`.
    pub(super) name: &'static str,
    /// Flux's controller it stands in for; names the lease.
    pub(super) controller: &'static str,
    /// Adds its controllers to the runtime.
    pub(super) add: fn(&Setup<'_>) -> anyhow::Result<()>,
}

/// Everything this build can run.
pub(super) const COMPONENTS: &[Component] =
    &[Component { name: "source", controller: "source-controller", add: source }];

/// Flux's other components; told at start, so that nobody waits for them.
pub(super) const ABSENT: &[&str] =
    &["kustomize", "helm", "notification", "image-reflector", "image-automation", "source-watcher"];

fn source(setup: &Setup<'_>) -> anyhow::Result<()> {
    let concurrent = setup.args.concurrent.unwrap_or(2);
    let git = Arc::new(NetworkGit { scratch: std::env::temp_dir() });
    setup.runtime.add(GitRepositories::new(setup.store.clone(), git), concurrent);
    setup.runtime.add(OciRepositories::new(setup.store.clone(), Arc::new(NetworkOci)), concurrent);
    Ok(())
}
