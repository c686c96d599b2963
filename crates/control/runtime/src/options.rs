//! Settings that all controllers share, with Flux's names and defaults.

use std::time::Duration;

use fl_types::Selector;

use crate::feature_gates::FeatureGates;

/// See `fluorite run --help` for what each flag means.
#[derive(Clone, Debug)]
pub struct Options {
    pub min_retry_delay: Duration,
    pub max_retry_delay: Duration,
    /// 0 to 99
    pub interval_jitter_percentage: u8,
    pub requeue_dependency: Duration,
    pub no_cross_namespace_refs: bool,
    /// The service account of objects that name none.
    pub default_service_account: String,
    pub gates: FeatureGates,
    /// Only objects with these labels are reconciled (sharding).
    pub watch_label_selector: Option<Selector>,
    /// Labels of ConfigMaps and Secrets whose changes enqueue the objects that refer to them; empty: none.
    pub watch_configs_label_selector: String,
    /// Watch this namespace only.
    pub namespace: Option<String>,
    /// The namespace the engine itself runs in (leases).
    pub runtime_namespace: String,
    pub graceful_shutdown_timeout: Duration,
    /// Attempts at downloading an artifact.
    pub http_retry: u32,
    /// Rate limit of requests to API servers of `spec.kubeConfig`: `--kube-api-qps`, `--kube-api-burst`.
    pub remote_rate: Option<(f32, u32)>,
    /// Seed of all randomness; for tests.
    pub seed: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            min_retry_delay: Duration::from_millis(750),
            max_retry_delay: Duration::from_secs(15 * 60),
            interval_jitter_percentage: 5,
            requeue_dependency: Duration::from_secs(30),
            no_cross_namespace_refs: false,
            default_service_account: String::new(),
            gates: FeatureGates::default(),
            watch_label_selector: None,
            watch_configs_label_selector: "reconcile.fluxcd.io/watch=Enabled".to_owned(),
            namespace: None,
            runtime_namespace: "flux-system".to_owned(),
            graceful_shutdown_timeout: Duration::from_secs(600),
            http_retry: 9,
            remote_rate: None,
            seed: None,
        }
    }
}
