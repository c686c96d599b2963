//! Signatures of OCI artifacts.

use fl_api::condition::{reasons, types};
use fl_api::source::OCIRepository;
use fl_api::source::verification::{OCIRepositoryVerification, VerificationProvider};
use fl_oci::Reference;
use fl_runtime::{Conditions, Failure, Pass, Reconciled, Source};

use super::client::OciRegistry;
use crate::secrets::{self, SecretData};
use crate::signature;
use crate::storage::has_revision;

const TRUSTED_ROOT: &str = "trusted_root.json";

/// Checks what the spec demands, when the revision or the spec is new or the last check failed. Nothing is pulled unless it
/// holds.
pub(super) async fn check(
    pass: &mut Pass<OCIRepository>,
    registry: &dyn OciRegistry,
    at: &Reference,
    revision: &str,
) -> Result<(), Failure> {
    let Some(verify) = pass.object.spec.verify.clone() else {
        pass.object.remove_condition(types::SOURCE_VERIFIED);
        return Ok(());
    };
    let verified = pass.object.condition(types::SOURCE_VERIFIED);
    let current = verified.is_some_and(|c| c.observed_generation == Some(pass.object.generation()));
    if current
        && has_revision(pass.object.artifact(), revision)
        && !pass.object.is_false(types::SOURCE_VERIFIED)
    {
        return Ok(());
    }
    match judge(pass, registry, at, &verify).await {
        Ok(()) => {
            let message = format!("verified signature of revision {revision}");
            pass.object.mark_true(types::SOURCE_VERIFIED, reasons::SUCCEEDED, &message);
            Ok(())
        }
        Err(problem) => {
            let provider = match verify.provider {
                VerificationProvider::Cosign if verify.secret_ref.is_none() => "cosign keyless",
                VerificationProvider::Cosign => "cosign",
                VerificationProvider::Notation => "notation",
            };
            let message = format!("failed to verify the signature using provider '{provider}': {problem}");
            let failure = Failure::retry(reasons::source::VERIFICATION_ERROR, message);
            pass.object.mark_false(types::SOURCE_VERIFIED, &failure.reason, &failure.message);
            Err(failure)
        }
    }
}

/// Fails closed: what cannot be checked is not verified.
async fn judge(
    pass: &Pass<OCIRepository>,
    registry: &dyn OciRegistry,
    at: &Reference,
    verify: &OCIRepositoryVerification,
) -> Result<(), String> {
    let namespace = pass.object.namespace();
    match verify.provider {
        VerificationProvider::Cosign => {
            let mut root = None;
            if let Some(reference) = &verify.trusted_root_secret_ref {
                let place = format!("{namespace}/{}", reference.name);
                let wrong = |e: String| format!("failed to read trusted root from secret '{place}': {e}");
                let secret = read(pass, &reference.name).await.map_err(wrong)?;
                let missing = || wrong(format!("'{TRUSTED_ROOT}' not found in secret '{place}'"));
                root = Some(secret.data.get(TRUSTED_ROOT).ok_or_else(missing)?.clone());
            }
            if let Some(reference) = &verify.secret_ref {
                let secret = read(pass, &reference.name).await?;
                let keys = signature::cosign_keys(&secret.data)?;
                if keys.is_empty() {
                    return Err(format!("no matching signatures were found for '{at}'"));
                }
                return signature::check_cosign(registry.signatures(at).await, &keys, &at.to_string());
            }
            let root = root.ok_or(signature::KEYLESS)?;
            let matchers = verify.match_oidc_identity.as_deref().unwrap_or_default();
            let policy = signature::Keyless::new(&root, matchers)?;
            policy.check(registry.signatures(at).await)
        }
        VerificationProvider::Notation => {
            let Some(reference) = &verify.secret_ref else {
                return Err(format!("verification secret cannot be empty: '{at}'"));
            };
            Err(signature::notation_problem(&read(pass, &reference.name).await?))
        }
    }
}

async fn read(pass: &Pass<OCIRepository>, name: &str) -> Result<SecretData, String> {
    secrets::read(pass.cluster(), pass.object.namespace(), name).await.map_err(|e| e.to_string())
}
