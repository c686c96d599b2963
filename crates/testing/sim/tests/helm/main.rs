//! Helm in a simulated world: sources under trouble, releases killed at every request (K01, K08), woken by events, and the graph
//! of a whole platform.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod crash;
mod ends;
mod graph;
mod lab;
mod own;
mod sources;
mod wake;
