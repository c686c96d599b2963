//! A whole world for the controller: embedded API server, sources, faults, a paused clock.
#![allow(dead_code)] // each test file uses its own part

use fl_runtime::ArtifactFetcher;
use fl_sim::{NAMESPACE, World, condition};
use serde_json::{Value, json};

pub(crate) const URL: &str = "https://git.example/app";

pub(crate) fn map(name: &str, value: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  namespace: {NAMESPACE}\ndata:\n  key: '{value}'\n"
    )
}

pub(crate) fn add(world: &World) {
    let artifacts = ArtifactFetcher::new(Some(world.store.clone()), 0, None).expect("a client");
    fl_kustomization::add(&world.runtime, artifacts, fl_kustomization::Options::default());
}

pub(crate) async fn world(seed: u64, files: &[(&str, String)]) -> World {
    world_with(seed, files, fl_kustomization::Options::default(), fl_runtime::Options::default()).await
}

pub(crate) async fn world_with(
    seed: u64,
    files: &[(&str, String)],
    options: fl_kustomization::Options,
    runtime: fl_runtime::Options,
) -> World {
    let add = |world: &World| {
        let artifacts = ArtifactFetcher::new(Some(world.store.clone()), 0, None).expect("a client");
        fl_kustomization::add(&world.runtime, artifacts, options);
    };
    let world = World::with(seed, runtime, add).await;
    push(&world, files);
    world
        .source("GitRepository", "app", json!({"url": URL, "interval": "1h", "ref": {"branch": "main"}}))
        .await;
    world
}

pub(crate) fn push(world: &World, files: &[(&str, String)]) {
    world.git.push(URL, "main", files.iter().map(|(p, c)| (*p, c.as_str())));
}

pub(crate) async fn kustomization(world: &World, name: &str, path: &str) {
    world
        .source(
            "Kustomization",
            name,
            json!({"interval": "10m", "prune": true, "path": path,
            "sourceRef": {"kind": "GitRepository", "name": "app"}}),
        )
        .await;
}

pub(crate) async fn revision(world: &World, token: &str) -> String {
    world.request("GitRepository", "app", token).await;
    let source =
        world.until("GitRepository", "app", |o| o["status"]["lastHandledReconcileAt"] == token).await;
    source["status"]["artifact"]["revision"].as_str().expect("a revision").to_owned()
}

pub(crate) async fn applied(world: &World, name: &str, revision: &str) -> Value {
    world
        .until("Kustomization", name, |o| {
            o["status"]["lastAppliedRevision"] == revision && condition(o, "Ready")["status"] == "True"
        })
        .await
}

pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("a runtime").block_on(test)
}
