//! Helm in a simulation: sources with failures, releases killed at every request (K01, K08), triggers, API servers that do not
//! answer (N09), and the dependency graph of a whole platform.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod crash;
mod fixture;
mod graph;
mod self_managed;
mod silent_servers;
mod sources;
mod triggers;
mod uninstall;
