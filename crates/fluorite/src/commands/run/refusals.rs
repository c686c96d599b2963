//! Flags of Flux's controllers that ask for something this engine does not have: refused when that would matter, told when
//! nothing depends on it.

use fl_runtime::FeatureGates;
use fl_runtime::log::Log;

use super::Args;

/// Refuses to start with settings that cannot be kept.
pub(super) fn check(args: &Args) -> anyhow::Result<()> {
    if !args.sops_vault_configmap.is_empty() {
        anyhow::bail!(
            "--sops-vault-configmap cannot be used: this engine logs in to a Vault with a token only (`sops.vault-token` of the decryption Secret)"
        );
    }
    if !args.default_decryption_service_account.is_empty() {
        anyhow::bail!(
            "--default-decryption-service-account cannot be used: this engine logs in to no cloud with an account of the cluster; put keys or credentials into the decryption Secret"
        );
    }
    if args.snapshot_digest_algo != "sha256" {
        anyhow::bail!(
            "--snapshot-digest-algo={} cannot be used: snapshots of releases are digested with sha256",
            args.snapshot_digest_algo
        );
    }
    Ok(())
}

/// Says which settings change nothing.
pub(super) fn tell(args: &Args, gates: &FeatureGates, log: &Log) {
    for gate in gates.without_effect() {
        log.with([("gate", gate.into())]).info("this feature gate changes nothing in this engine");
    }
    if args.receiver_addr.is_some() {
        // One set of flags for all components is a habit of installations; those of an absent one hurt nobody.
        log.info("--receiverAddr is not listened on: the component notification is not part of this build");
    }
    if args.helm_cache_max_size > 0 {
        log.info("--helm-cache-max-size changes nothing: indexes are read where they are stored");
    }
}
