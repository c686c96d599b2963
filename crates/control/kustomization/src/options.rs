//! Settings of the controller, with the names of Flux's flags.

use std::collections::HashSet;
use std::time::Duration;

use fl_http::AddressPolicy;

use crate::EngineKeyServices;

/// See `fluorite run --help` for what each flag means.
#[derive(Clone, Debug)]
pub struct Options {
    /// Kustomizations at once.
    pub concurrent: usize,
    /// Requests at once for one Kustomization.
    pub concurrent_ssa: usize,
    /// Builds may not fetch anything from elsewhere.
    pub no_remote_bases: bool,
    /// Where builds may fetch from.
    pub remote_addresses: AddressPolicy,
    /// `(group, kind)` applied before the rest.
    pub custom_apply_stage_kinds: HashSet<(String, String)>,
    /// Field managers whose fields are taken over.
    pub override_managers: Vec<String>,
    /// A Secret in the engine's namespace with age keys for Kustomizations that name none.
    pub sops_age_secret: String,
    /// The engine's own credentials for key services; each knows which addresses it may be sent to.
    pub key_services: EngineKeyServices,
    /// The account for remote clusters where a ConfigMap names none.
    pub default_kubeconfig_service_account: String,
    /// Skip the check of certificates of remote clusters where their kubeconfig asks for it.
    pub insecure_kubeconfig_tls: bool,
    /// Run programs named by kubeconfigs; refused by this engine.
    pub insecure_kubeconfig_exec: bool,
    /// How often everything is read and compared again although watches say that nothing changed.
    pub full_pass: Duration,
    /// Correct drift as soon as a watch shows it.
    pub watch_drift: bool,
    /// At most so many objects are deleted by one revision without approval; none: no limit.
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
