//! Starts and stops real control planes on loopback for end-to-end tests.
//!
//! ```no_run
//! let plane = fl_testkit::ControlPlane::start()?;
//! let namespaces = plane.client().get("/api/v1/namespaces")?;
//! assert!(namespaces.is_success());
//! # Ok::<(), anyhow::Error>(())
//! ```
//!
//! The real tools are looked up in `FLUORITE_ORACLES`, or in `.cache/fluorite-oracles/bin` under the home directory,
//! where `cargo xtask oracles` puts them. Everything a control plane writes is in a temporary folder; its processes end
//! with it.

mod certificates;
mod client;
mod control_plane;
mod http;
mod oracle;
mod process;

pub use client::Client;
pub use control_plane::{ControlPlane, Controllers};
pub use http::Response;
pub use oracle::oracle;
