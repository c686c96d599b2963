//! The flags, with the names and defaults of Flux's controllers.

use std::path::PathBuf;

use fl_http::Network;
use fl_runtime::log::{Encoding, Level};
use fl_types::Algorithm;

/// A duration as Go writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span(fl_types::Duration);

impl std::str::FromStr for Span {
    type Err = fl_types::DurationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Span)
    }
}

impl Span {
    pub(super) fn into_std(self) -> anyhow::Result<std::time::Duration> {
        self.0.to_std().ok_or_else(|| anyhow::anyhow!("the duration {} is negative", self.0))
    }
}

/// The digest algorithm of artifacts.
#[derive(Clone, Debug)]
pub(super) struct DigestName(String);

impl std::str::FromStr for DigestName {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(DigestName(text.to_owned()))
    }
}

impl DigestName {
    pub(super) fn parse_algorithm(&self) -> anyhow::Result<Algorithm> {
        Ok(match self.0.as_str() {
            "sha1" => Algorithm::Sha1,
            "sha256" => Algorithm::Sha256,
            "sha384" => Algorithm::Sha384,
            "sha512" => Algorithm::Sha512,
            "blake3" => Algorithm::Blake3,
            other => {
                anyhow::bail!("`{other}` is no digest algorithm; use sha256, sha384, sha512, sha1 or blake3")
            }
        })
    }
}

/// Runs until it is interrupted
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Components to run, separated by commas, also by Flux's names (`source-controller`); all of this build when absent
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(super) components: Vec<String>,
    /// Kubeconfig to connect with; the usual places or the Pod's account when absent
    #[arg(long, value_name = "FILE")]
    pub(super) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    pub(super) context: Option<String>,

    /// Directory of the artifacts
    #[arg(
        long,
        value_name = "DIR",
        env = "STORAGE_PATH",
        default_value = "/data",
        help_heading = "Artifacts"
    )]
    pub(super) storage_path: PathBuf,
    /// Address artifacts are served on; `:9090` when absent, or the advertised address if that has an IP
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "STORAGE_ADDRESS",
        default_value = "",
        help_heading = "Artifacts"
    )]
    pub(super) storage_addr: String,
    /// Host and port of artifact URLs
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "STORAGE_ADV_ADDR",
        default_value = "",
        help_heading = "Artifacts"
    )]
    pub(super) storage_adv_addr: String,
    /// How long earlier artifacts are kept
    #[arg(long, value_name = "DURATION", default_value = "60s", help_heading = "Artifacts")]
    pub(super) artifact_retention_ttl: Span,
    /// How many artifacts of an object are kept
    #[arg(long, value_name = "COUNT", default_value_t = 2, help_heading = "Artifacts")]
    pub(super) artifact_retention_records: usize,
    /// Digest algorithm of artifacts: sha256, sha384, sha512, sha1 or blake3
    #[arg(long, value_name = "NAME", default_value = "sha256", help_heading = "Artifacts")]
    pub(super) artifact_digest_algo: DigestName,
    /// Largest index of a Helm repository, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 50 << 20, help_heading = "Artifacts")]
    pub(super) helm_index_max_size: u64,
    /// Largest Helm chart, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 10 << 20, help_heading = "Artifacts")]
    pub(super) helm_chart_max_size: u64,
    /// Largest file of a Helm chart, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 5 << 20, help_heading = "Artifacts")]
    pub(super) helm_chart_file_max_size: u64,
    /// Indexes of Helm repositories kept in memory; refused but for 0, as they are read where they are stored
    #[arg(long, value_name = "COUNT", default_value_t = 0, help_heading = "Artifacts")]
    pub(super) helm_cache_max_size: usize,
    /// How long such an index is kept in memory; refused but for the default
    #[arg(long, value_name = "DURATION", default_value = "15m", help_heading = "Artifacts")]
    pub(super) helm_cache_ttl: Span,
    /// How often such indexes are looked through; refused but for the default
    #[arg(long, value_name = "DURATION", default_value = "1m", help_heading = "Artifacts")]
    pub(super) helm_cache_purge_interval: Span,
    /// Retries of an artifact's download
    #[arg(long, value_name = "COUNT", default_value_t = 9, help_heading = "Artifacts")]
    pub(super) http_retry: u32,
    /// How long a download for a HelmRelease may take
    #[arg(long, value_name = "DURATION", default_value = "30s", help_heading = "Artifacts")]
    pub(super) http_timeout: Span,

    /// Key exchange algorithms of SSH, the most preferred first; a choice of the engine's when absent
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = "Git over SSH")]
    pub(super) ssh_kex_algos: Vec<String>,
    /// Algorithms of host keys, the most preferred first; those of known_hosts when absent
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = "Git over SSH")]
    pub(super) ssh_hostkey_algos: Vec<String>,

    /// Objects of a kind that are worked on at once, those that only wait for health not counted; 2 for sources, 4 for others when absent
    #[arg(long, value_name = "COUNT", help_heading = "Reconciling")]
    pub(super) concurrent: Option<usize>,
    /// How long to wait for something another object has to do first
    #[arg(long, value_name = "DURATION", default_value = "30s", help_heading = "Reconciling")]
    pub(super) requeue_dependency: Span,
    /// First delay after a failure
    #[arg(long, value_name = "DURATION", default_value = "750ms", help_heading = "Reconciling")]
    pub(super) min_retry_delay: Span,
    /// Longest delay after failures
    #[arg(long, value_name = "DURATION", default_value = "15m", help_heading = "Reconciling")]
    pub(super) max_retry_delay: Span,
    /// How much intervals vary, in per cent
    #[arg(long, value_name = "PERCENT", default_value_t = 5, help_heading = "Reconciling")]
    pub(super) interval_jitter_percentage: u8,
    /// Features to switch on or off: Name=true,…
    #[arg(long, value_name = "GATES", help_heading = "Reconciling")]
    pub(super) feature_gates: Vec<String>,
    /// How long running passes may take when the process is asked to end
    #[arg(long, value_name = "DURATION", default_value = "600s", help_heading = "Reconciling")]
    pub(super) graceful_shutdown_timeout: Span,

    /// Watch all namespaces; otherwise that of RUNTIME_NAMESPACE
    #[arg(long, num_args = 0..=1, default_value_t = true, default_missing_value = "true", action = clap::ArgAction::Set, help_heading = "Watching")]
    pub(super) watch_all_namespaces: bool,
    /// Only objects with these labels are reconciled
    #[arg(long, value_name = "SELECTOR", default_value = "", help_heading = "Watching")]
    pub(super) watch_label_selector: String,
    /// ConfigMaps and Secrets with these labels wake what refers to them
    #[arg(
        long,
        value_name = "SELECTOR",
        default_value = "reconcile.fluxcd.io/watch=Enabled",
        help_heading = "Watching"
    )]
    pub(super) watch_configs_label_selector: String,

    /// Refuse references to other namespaces
    #[arg(long, num_args = 0..=1, default_value_t = false, default_missing_value = "true", action = clap::ArgAction::Set, help_heading = "Tenancy")]
    pub(super) no_cross_namespace_refs: bool,
    /// Refuse remote bases in kustomizations (component kustomize)
    #[arg(long, num_args = 0..=1, default_value_t = false, default_missing_value = "true", action = clap::ArgAction::Set, help_heading = "Tenancy")]
    pub(super) no_remote_bases: bool,
    /// Networks that remote bases may be fetched from all the same: 127.0.0.1,10.0.0.0/8,…
    #[arg(long, value_name = "NETWORKS", value_delimiter = ',', help_heading = "Tenancy")]
    pub(super) remote_bases_allow: Vec<Network>,
    /// Networks that remote bases are not fetched from, in addition to loopback, link-local and cloud metadata addresses
    #[arg(long, value_name = "NETWORKS", value_delimiter = ',', help_heading = "Tenancy")]
    pub(super) remote_bases_deny: Vec<Network>,
    /// Account used for objects that name none (components kustomize, helm)
    #[arg(long, value_name = "NAME", default_value = "", help_heading = "Tenancy")]
    pub(super) default_service_account: String,

    /// Requests at once for the objects of one Kustomization
    #[arg(long, value_name = "COUNT", default_value_t = 4, help_heading = "Kustomizations")]
    pub(super) concurrent_ssa: usize,
    /// Kinds applied before the rest: group/Kind,…
    #[arg(long, value_name = "KINDS", default_value = "", help_heading = "Kustomizations")]
    pub(super) custom_apply_stage_kinds: String,
    /// Field managers whose fields are taken over
    #[arg(long, value_name = "NAME", help_heading = "Kustomizations")]
    pub(super) override_manager: Vec<String>,
    /// Account for decryption with a cloud's keys; refused, as this engine logs in to no cloud
    #[arg(long, value_name = "NAME", default_value = "", help_heading = "Kustomizations")]
    pub(super) default_decryption_service_account: String,
    /// ConfigMap with the Vaults trusted for decryption; refused, as this engine logs in to Vaults with a token only
    #[arg(long, value_name = "NAME", default_value = "", help_heading = "Kustomizations")]
    pub(super) sops_vault_configmap: String,
    /// Secret with age keys for Kustomizations that name none
    #[arg(long, value_name = "NAME", default_value = "", help_heading = "Kustomizations")]
    pub(super) sops_age_secret: String,
    /// Account for remote clusters whose ConfigMap names none
    #[arg(long, value_name = "NAME", default_value = "", help_heading = "Remote clusters")]
    pub(super) default_kubeconfig_service_account: String,
    /// Let kubeconfigs switch the check of certificates off
    #[arg(long, num_args = 0..=1, default_value_t = false, default_missing_value = "true", action = clap::ArgAction::Set, help_heading = "Remote clusters")]
    pub(super) insecure_kubeconfig_tls: bool,
    /// Let kubeconfigs name programs; refused, as this engine starts none
    #[arg(long, num_args = 0..=1, default_value_t = false, default_missing_value = "true", action = clap::ArgAction::Set, help_heading = "Remote clusters")]
    pub(super) insecure_kubeconfig_exec: bool,
    /// How often all objects are compared again although watches show no change
    #[arg(long, value_name = "DURATION", default_value = "1h", help_heading = "Kustomizations")]
    pub(super) full_pass_interval: Span,
    /// Hold a revision that deletes more objects of a Kustomization than this until it is approved
    #[arg(long, value_name = "COUNT", help_heading = "Kustomizations")]
    pub(super) deletion_budget: Option<usize>,

    /// Digest algorithm of the snapshots of releases; sha256 only
    #[arg(long, value_name = "NAME", default_value = "sha256", help_heading = "Helm releases")]
    pub(super) snapshot_digest_algo: String,
    /// Share of the memory limit, in per cent, at which the process ends in good order (feature gate OOMWatch)
    #[arg(long, value_name = "PERCENT", default_value_t = 95, help_heading = "Helm releases")]
    pub(super) oom_watch_memory_threshold: u8,
    /// How often memory is looked at
    #[arg(long, value_name = "DURATION", default_value = "500ms", help_heading = "Helm releases")]
    pub(super) oom_watch_interval: Span,
    /// File with the memory limit; the control group's when absent
    #[arg(long, value_name = "FILE", help_heading = "Helm releases")]
    pub(super) oom_watch_max_memory_path: Option<PathBuf>,
    /// File with the memory in use; the control group's when absent
    #[arg(long, value_name = "FILE", help_heading = "Helm releases")]
    pub(super) oom_watch_current_memory_path: Option<PathBuf>,

    /// Tokens of clouds kept in memory; refused but for the default, as this engine logs in to no cloud
    #[arg(long, value_name = "COUNT", default_value_t = 100, help_heading = "Clouds")]
    pub(super) token_cache_max_size: usize,
    /// How long such a token is kept; refused but for the default
    #[arg(long, value_name = "DURATION", default_value = "1h", help_heading = "Clouds")]
    pub(super) token_cache_max_duration: Span,

    /// Address of the notification controller that events are posted to
    #[arg(long, value_name = "URL", env = "EVENTS_ADDR", help_heading = "Endpoints")]
    pub(super) events_addr: Option<String>,
    /// Address of /metrics; 0 for none
    #[arg(long, value_name = "ADDRESS", default_value = ":8080", help_heading = "Endpoints")]
    pub(super) metrics_addr: String,
    /// Address of /healthz and /readyz; 0 for none
    #[arg(long, value_name = "ADDRESS", default_value = ":9440", help_heading = "Endpoints")]
    pub(super) health_addr: String,
    /// Address webhooks are received on; nothing listens there, as the component notification is not part of this build
    #[arg(long = "receiverAddr", value_name = "ADDRESS", help_heading = "Endpoints")]
    pub(super) receiver_addr: Option<String>,

    /// Work only while holding the components' leases
    #[arg(long, num_args = 0..=1, default_value_t = false, default_missing_value = "true", action = clap::ArgAction::Set, help_heading = "Leader election")]
    pub(super) enable_leader_election: bool,
    /// Give the lease back when the process ends
    #[arg(long, num_args = 0..=1, default_value_t = true, default_missing_value = "true", action = clap::ArgAction::Set, help_heading = "Leader election")]
    pub(super) leader_election_release_on_cancel: bool,
    /// How long others wait before they take over
    #[arg(long, value_name = "DURATION", default_value = "35s", help_heading = "Leader election")]
    pub(super) leader_election_lease_duration: Span,
    /// How long renewing may fail
    #[arg(long, value_name = "DURATION", default_value = "30s", help_heading = "Leader election")]
    pub(super) leader_election_renew_deadline: Span,
    /// How often to try
    #[arg(long, value_name = "DURATION", default_value = "5s", help_heading = "Leader election")]
    pub(super) leader_election_retry_period: Span,

    /// Requests a second to an API server without priority and fairness
    #[arg(long, value_name = "COUNT", default_value_t = 50.0, help_heading = "API server")]
    pub(super) kube_api_qps: f32,
    /// Requests at once to such a server
    #[arg(long, value_name = "COUNT", default_value_t = 300, help_heading = "API server")]
    pub(super) kube_api_burst: u32,

    /// How much is logged: trace, debug, info or error
    #[arg(long, value_name = "LEVEL", default_value = "info", help_heading = "Logging")]
    pub(super) log_level: Level,
    /// How lines look: json or console
    #[arg(long, value_name = "ENCODING", default_value = "json", help_heading = "Logging")]
    pub(super) log_encoding: Encoding,
}

#[cfg(test)]
mod tests {
    use clap::Args as _;
    use fl_types::Duration;

    /// Every flag of source-, kustomize- and helm-controller (of Flux 2.9) with its default.
    const FLUX: &[(&str, &str)] = &[
        ("artifact-digest-algo", "sha256"),
        ("artifact-retention-records", "2"),
        ("artifact-retention-ttl", "1m0s"),
        ("concurrent-ssa", "4"),
        ("custom-apply-stage-kinds", ""),
        ("default-decryption-service-account", ""),
        ("default-kubeconfig-service-account", ""),
        ("default-service-account", ""),
        ("enable-leader-election", "false"),
        ("events-addr", ""),
        ("feature-gates", ""),
        ("graceful-shutdown-timeout", "10m0s"),
        ("health-addr", ":9440"),
        ("helm-cache-max-size", "0"),
        ("helm-cache-purge-interval", "1m"),
        ("helm-cache-ttl", "15m"),
        ("helm-chart-file-max-size", "5242880"),
        ("helm-chart-max-size", "10485760"),
        ("helm-index-max-size", "52428800"),
        ("http-retry", "9"),
        ("http-timeout", "30s"),
        ("insecure-kubeconfig-exec", "false"),
        ("insecure-kubeconfig-tls", "false"),
        ("interval-jitter-percentage", "5"),
        ("kube-api-burst", "300"),
        ("kube-api-qps", "50"),
        ("leader-election-lease-duration", "35s"),
        ("leader-election-release-on-cancel", "true"),
        ("leader-election-renew-deadline", "30s"),
        ("leader-election-retry-period", "5s"),
        ("log-encoding", "json"),
        ("log-level", "info"),
        ("max-retry-delay", "15m0s"),
        ("metrics-addr", ":8080"),
        ("min-retry-delay", "750ms"),
        ("no-cross-namespace-refs", "false"),
        ("no-remote-bases", "false"),
        ("oom-watch-current-memory-path", ""),
        ("oom-watch-interval", "500ms"),
        ("oom-watch-max-memory-path", ""),
        ("oom-watch-memory-threshold", "95"),
        ("override-manager", ""),
        ("requeue-dependency", "30s"),
        ("snapshot-digest-algo", "sha256"),
        ("sops-age-secret", ""),
        ("sops-vault-configmap", ""),
        ("ssh-hostkey-algos", ""),
        ("ssh-kex-algos", ""),
        ("storage-adv-addr", ""),
        ("storage-path", "/data"),
        ("token-cache-max-duration", "1h0m0s"),
        ("token-cache-max-size", "100"),
        ("watch-all-namespaces", "true"),
        ("watch-configs-label-selector", "reconcile.fluxcd.io/watch=Enabled"),
        ("watch-label-selector", ""),
        // Their defaults depend on something here: on the component, and on the advertised address.
        ("concurrent", ""),
        ("storage-addr", ""),
    ];

    #[test]
    fn the_defaults_can_be_read() {
        let command = super::Args::augment_args(clap::Command::new("run"));
        assert!(command.try_get_matches_from(["run"]).is_ok());
    }

    #[test]
    fn every_flag_of_flux_is_here_with_its_default() {
        let command = super::Args::augment_args(clap::Command::new("run"));
        for (name, default) in FLUX {
            let flag = command.get_arguments().find(|a| a.get_long() == Some(name));
            let flag = flag.unwrap_or_else(|| panic!("--{name} is missing"));
            let values: Vec<String> =
                flag.get_default_values().iter().map(|v| v.to_string_lossy().into_owned()).collect();
            let (ours, theirs) = (values.join(","), (*default).to_owned());
            let same_time = matches!((ours.parse::<Duration>(), theirs.parse::<Duration>()),
                (Ok(a), Ok(b)) if a == b);
            assert!(ours == theirs || same_time, "--{name}: {ours} instead of {theirs}");
        }
    }
}
