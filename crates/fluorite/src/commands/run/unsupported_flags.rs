//! Flags of Flux's controllers for features that this engine does not have. Values other than the default are rejected, or logged if
//! they are harmless.

use fl_runtime::FeatureGates;
use fl_runtime::log::Log;

use super::Args;
use super::args::Span;

/// Rejects unsupported values.
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
    let span = |text: &str| text.parse::<Span>().ok();
    if args.helm_cache_max_size > 0
        || Some(args.helm_cache_ttl) != span("15m")
        || Some(args.helm_cache_purge_interval) != span("1m")
    {
        anyhow::bail!(
            "--helm-cache-max-size, --helm-cache-ttl and --helm-cache-purge-interval cannot be used: indexes of Helm repositories are not kept in memory, they are read where they are stored; leave the flags out"
        );
    }
    if args.token_cache_max_size != 100 || Some(args.token_cache_max_duration) != span("1h") {
        anyhow::bail!(
            "--token-cache-max-size and --token-cache-max-duration cannot be used: this engine logs in to no cloud with an account of the cluster, so there are no tokens to keep; leave the flags out"
        );
    }
    Ok(())
}

/// Logs settings without effect.
pub(super) fn log_ignored(args: &Args, gates: &FeatureGates, log: &Log) {
    for gate in gates.without_effect() {
        log.with([("gate", gate.into())]).info("this feature gate changes nothing in this engine");
    }
    if args.receiver_addr.is_some() {
        // Installations pass one set of flags to all components.
        log.info("--receiverAddr is not listened on: the component notification is not part of this build");
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, FromArgMatches as _};

    use super::*;

    fn checked(flags: &[&str]) -> anyhow::Result<()> {
        let command = Args::augment_args(clap::Command::new("run"));
        let matches = command.try_get_matches_from(["run"].iter().chain(flags))?;
        check(&Args::from_arg_matches(&matches)?)
    }

    /// Flags that are only read here, each with a value that is rejected.
    const REJECTED: &[&str] = &[
        "default-decryption-service-account=x",
        "helm-cache-max-size=10",
        "helm-cache-purge-interval=2m",
        "helm-cache-ttl=1h",
        "snapshot-digest-algo=blake3",
        "sops-vault-configmap=x",
        "token-cache-max-duration=2h",
        "token-cache-max-size=5",
    ];

    /// Flags that are only logged.
    const LOGGED: &[&str] = &["receiverAddr"];

    #[test]
    fn unsupported_values_are_rejected() {
        checked(&[]).expect("the defaults");
        checked(&["--helm-cache-max-size=0", "--helm-cache-ttl=15m0s", "--token-cache-max-size=100"])
            .expect("the defaults by name");
        for flag in REJECTED {
            let name = flag.split('=').next().unwrap_or_default();
            let refused = checked(&[&format!("--{flag}")]).expect_err(flag).to_string();
            assert!(
                refused.contains(&format!("--{name}")) && refused.contains("cannot be used"),
                "{refused}"
            );
        }
    }

    /// Every field of the arguments is read outside of its declaration, or its flag is rejected.
    #[test]
    fn every_flag_is_read_or_rejected() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/commands/run");
        let mut code = String::new();
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if !path.ends_with("args.rs") && !path.ends_with("unsupported_flags.rs") {
                code.push_str(&std::fs::read_to_string(path).expect("a source file"));
            }
        }
        let command = Args::augment_args(clap::Command::new("run"));
        for argument in command.get_arguments() {
            let field = argument.get_id().as_str();
            let flag = argument.get_long().unwrap_or_default();
            let is_rejected = REJECTED.iter().any(|r| r.split('=').next() == Some(flag));
            let is_read = [format!("self.{field}"), format!("args.{field}")].iter().any(|read| {
                code.match_indices(read.as_str()).any(|(at, _)| {
                    !code[at + read.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_')
                })
            });
            assert!(is_read || is_rejected || LOGGED.contains(&flag), "--{flag} is accepted and ignored");
        }
    }
}
