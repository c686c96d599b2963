//! Helm sources: repositories of charts, and charts.

mod auth;
mod build;
mod chart;
mod chart_source;
mod charts;
mod dependencies;
mod local;
mod oci;
mod remote;
mod repository;
mod verify;

pub use chart::HelmCharts;
pub use charts::{ChartError, fetch_chart};
pub use repository::HelmRepositories;

/// Limits of what is fetched; the defaults are Flux's.
#[derive(Clone, Copy, Debug)]
pub struct HelmLimits {
    /// `--helm-index-max-size`
    pub index: u64,
    /// `--helm-chart-max-size`
    pub chart: u64,
    /// `--helm-chart-file-max-size`
    pub chart_file: u64,
}

impl Default for HelmLimits {
    fn default() -> Self {
        Self { index: 50 << 20, chart: 10 << 20, chart_file: 5 << 20 }
    }
}
