//! A world for controller tests.
//!
//! [`World`] holds an API server in this process, the controllers on top of it, a layer of [`Faults`] between the two, and
//! in-memory twins of what lies outside ([`TwinGit`], [`TwinOci`], [`TwinBucket`]). Time is tokio's paused clock, randomness one seed, so a
//! whole world replays from a number.
//!
//! ```
//! use fl_sim::World;
//! use serde_json::json;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?.block_on(async {
//! let world = World::start(7).await;
//! world.git.push("https://git.example/app", "main", [("app.yaml", "a: 1\n")]);
//! world.source("GitRepository", "app", json!({"url": "https://git.example/app", "interval": "1h", "ref": {"branch": "main"}})).await;
//! let app = world.ready("GitRepository", "app").await;
//! assert!(app["status"]["artifact"]["revision"].as_str().unwrap().starts_with("main@sha1:"));
//! # });
//! # Ok::<(), std::io::Error>(())
//! ```

mod fault;
mod twin;
mod twin_bucket;
mod world;

pub use fault::{Action, Faults, Rule, When};
pub use twin::{TwinGit, TwinOci};
pub use twin_bucket::TwinBucket;
pub use world::{NAMESPACE, World, condition};
