//! Workloads without containers.

use std::sync::Arc;

use crate::server::{Inner, SimulateOptions};

pub(crate) fn start(_inner: &Arc<Inner>, _options: SimulateOptions) -> Vec<tokio::task::JoinHandle<()>> {
    Vec::new()
}
