//! `flagger.app`: rollouts step by step.

pub mod alert_provider;
pub mod canary;
pub mod canary_analysis;
pub mod canary_service;
pub mod metric_template;
pub mod text;
pub mod traffic_policy;

pub use alert_provider::AlertProvider;
pub use canary::Canary;
pub use metric_template::MetricTemplate;
