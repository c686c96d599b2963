//! Simulation of controllers.
//!
//! [`TestCluster`] holds an API server in this process, the controllers on top of it, a layer of [`Faults`] between the two, and
//! in-memory fakes of what lies outside ([`FakeGit`], [`FakeOci`], [`FakeBucket`]). Time is tokio's paused clock, and all random
//! choices come from one seed, so that a whole simulation replays from a number.
//!
//! ```
//! use fl_sim::TestCluster;
//! use serde_json::json;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?.block_on(async {
//! let cluster = TestCluster::start(7).await;
//! cluster.git.push("https://git.example/app", "main", [("app.yaml", "a: 1\n")]);
//! cluster.source("GitRepository", "app", json!({"url": "https://git.example/app", "interval": "1h", "ref": {"branch": "main"}})).await;
//! let app = cluster.ready("GitRepository", "app").await;
//! assert!(app["status"]["artifact"]["revision"].as_str().unwrap().starts_with("main@sha1:"));
//! # });
//! # Ok::<(), std::io::Error>(())
//! ```

mod cluster;
mod fake_bucket;
mod fake_git;
mod fake_oci;
mod fault;

pub use cluster::{NAMESPACE, TestCluster, condition};
pub use fake_bucket::FakeBucket;
pub use fake_git::FakeGit;
pub use fake_oci::FakeOci;
pub use fault::{Action, FaultSchedule, Faults, Rule};
