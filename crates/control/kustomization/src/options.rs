//! Settings of the controller, with the names of Flux's flags.

use std::collections::HashSet;
use std::time::Duration;

use fl_http::AddressPolicy;

use crate::EngineKeyServices;

/// See `fluorite run --help` for what each flag means.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many Kustomizations are reconciled concurrently.
    pub concurrent: usize,
    /// How many requests are sent concurrently for one Kustomization.
    pub concurrent_ssa: usize,
    /// Reject remote bases.
    pub no_remote_bases: bool,
    /// Where remote bases may be fetched from.
    pub remote_addresses: AddressPolicy,
    /// `(group, kind)` of objects that are applied in a stage of their own.
    pub custom_apply_stage_kinds: HashSet<(String, String)>,
    /// Field managers whose fields are taken over.
    pub override_managers: Vec<String>,
    /// A Secret in the engine's namespace with age keys for Kustomizations that name none.
    pub sops_age_secret: String,
    /// The engine's own credentials for key services.
    pub key_services: EngineKeyServices,
    /// The service account for remote clusters where a ConfigMap names none.
    pub default_kubeconfig_service_account: String,
    /// Skip the check of certificates of remote clusters where their kubeconfig asks for it.
    pub insecure_kubeconfig_tls: bool,
    /// Run the exec plugins of kubeconfigs. Not supported: such a kubeconfig is rejected.
    pub insecure_kubeconfig_exec: bool,
    /// How often all objects are compared with the cluster although watches report no change.
    pub full_pass: Duration,
    /// Correct drift as soon as a watch shows it.
    pub watch_drift: bool,
    /// How many objects one revision may delete without approval; none is no limit.
    pub deletion_budget: Option<usize>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            concurrent: 4,
            concurrent_ssa: 4,
            no_remote_bases: false,
            remote_addresses: AddressPolicy::cluster(),
            custom_apply_stage_kinds: HashSet::new(),
            override_managers: Vec::new(),
            sops_age_secret: String::new(),
            key_services: EngineKeyServices::default(),
            default_kubeconfig_service_account: String::new(),
            insecure_kubeconfig_tls: false,
            insecure_kubeconfig_exec: false,
            full_pass: Duration::from_secs(60 * 60),
            watch_drift: true,
            deletion_budget: None,
        }
    }
}

impl Options {
    /// Reads `group/Kind,Kind,...` of `--custom-apply-stage-kinds`.
    #[must_use]
    pub fn stage_kinds(text: &str) -> HashSet<(String, String)> {
        let pair = |item: &str| match item.trim().split_once('/') {
            Some((group, kind)) => (group.to_owned(), kind.to_owned()),
            None => (String::new(), item.trim().to_owned()),
        };
        text.split(',').filter(|i| !i.trim().is_empty()).map(pair).collect()
    }
}
