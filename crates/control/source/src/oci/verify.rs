//! Verification of OCI artifacts.

use std::time::Duration;

use fl_api::condition::{reasons, types};
use fl_api::source::OCIRepository;
use fl_api::source::verification::{OCIRepositoryVerification, VerificationProvider};
use fl_oci::Reference;
use fl_runtime::{ClientError, Conditions, Context, ReconcileError, Reconciled, Source};

use super::client::OciRegistry;
use crate::secrets::{self, SecretData};
use crate::signature::{self, SignatureError};
use crate::storage::{DEADLINE_EXCEEDED, has_revision};

const TRUSTED_ROOT: &str = "trusted_root.json";

/// Why an artifact is not verified.
#[derive(Debug, thiserror::Error)]
enum VerifyError {
    #[error("{0}")]
    Signature(#[from] SignatureError),
    #[error("{0}")]
    Secret(#[from] ClientError),
    #[error("failed to read trusted root from secret '{secret}': {error}")]
    ReadRoot { secret: String, error: ClientError },
    #[error("failed to read trusted root from secret '{0}': '{TRUSTED_ROOT}' not found in secret '{0}'")]
    NoRoot(String),
    #[error("verification secret cannot be empty: '{0}'")]
    NoSecret(String),
    #[error("{DEADLINE_EXCEEDED}")]
    Deadline,
}

/// Verifies the artifact as the spec requires, when the revision or the spec is new or the last verification failed. Nothing
/// is pulled unless it succeeds.
pub(super) async fn check(
    cx: &mut Context<OCIRepository>,
    registry: &dyn OciRegistry,
    at: &Reference,
    revision: &str,
    timeout: Duration,
) -> Result<(), ReconcileError> {
    let Some(verify) = cx.object.spec.verify.clone() else {
        cx.object.remove_condition(types::SOURCE_VERIFIED);
        return Ok(());
    };
    let verified = cx.object.condition(types::SOURCE_VERIFIED);
    let current = verified.is_some_and(|c| c.observed_generation == Some(cx.object.generation()));
    if current && has_revision(cx.object.artifact(), revision) && !cx.object.is_false(types::SOURCE_VERIFIED)
    {
        return Ok(());
    }
    let verified = tokio::time::timeout(timeout, verify_signatures(cx, registry, at, &verify)).await;
    match verified.unwrap_or(Err(VerifyError::Deadline)) {
        Ok(()) => {
            let message = format!("verified signature of revision {revision}");
            cx.object.mark_true(types::SOURCE_VERIFIED, reasons::SUCCEEDED, &message);
            Ok(())
        }
        Err(problem) => {
            let provider = match verify.provider {
                VerificationProvider::Cosign if verify.secret_ref.is_none() => "cosign keyless",
                VerificationProvider::Cosign => "cosign",
                VerificationProvider::Notation => "notation",
            };
            let message = format!("failed to verify the signature using provider '{provider}': {problem}");
            let failure = ReconcileError::backoff(reasons::source::VERIFICATION_ERROR, message);
            cx.object.mark_false(types::SOURCE_VERIFIED, &failure.reason, &failure.message);
            Err(failure)
        }
    }
}

/// Succeeds only when a signature was verified.
async fn verify_signatures(
    cx: &Context<OCIRepository>,
    registry: &dyn OciRegistry,
    at: &Reference,
    verify: &OCIRepositoryVerification,
) -> Result<(), VerifyError> {
    let namespace = cx.object.namespace();
    match verify.provider {
        VerificationProvider::Cosign => {
            let mut root = None;
            if let Some(reference) = &verify.trusted_root_secret_ref {
                let place = format!("{namespace}/{}", reference.name);
                let secret = read(cx, &reference.name)
                    .await
                    .map_err(|error| VerifyError::ReadRoot { secret: place.clone(), error })?;
                let missing = || VerifyError::NoRoot(place);
                root = Some(secret.data.get(TRUSTED_ROOT).cloned().ok_or_else(missing)?);
            }
            if let Some(reference) = &verify.secret_ref {
                let secret = read(cx, &reference.name).await?;
                let keys = signature::cosign_keys(&secret.data)?;
                if keys.is_empty() {
                    return Err(SignatureError::NoMatch(at.to_string()).into());
                }
                let found = registry.signatures(at).await;
                return Ok(signature::check_cosign(found, &keys, &at.to_string())?);
            }
            let root = root.ok_or(SignatureError::Keyless)?;
            let matchers = verify.match_oidc_identity.as_deref().unwrap_or_default();
            let policy = signature::Keyless::new(&root, matchers)?;
            Ok(policy.check(registry.signatures(at).await)?)
        }
        VerificationProvider::Notation => {
            let Some(reference) = &verify.secret_ref else {
                return Err(VerifyError::NoSecret(at.to_string()));
            };
            Err(signature::notation_error(&read(cx, &reference.name).await?).into())
        }
    }
}

async fn read(cx: &Context<OCIRepository>, name: &str) -> Result<SecretData, ClientError> {
    secrets::read(cx.cluster(), cx.object.namespace(), name).await
}
