//! Verification of commits and tags.

use fl_api::condition::{reasons, types};
use fl_api::source::GitRepository;
use fl_git_client::Commit;
use fl_runtime::{Conditions, Context, EventKind, ReconcileError, Reconciled};

use super::verification_mode;
use crate::secrets;
use crate::signature::{self, Keys};

/// Checks what the spec demands. Nothing is archived unless it holds.
pub(super) async fn check(cx: &mut Context<GitRepository>, commit: &Commit) -> Result<(), ReconcileError> {
    let Some(verify) = cx.object.spec.verify.clone() else {
        cx.object.status.get_or_insert_default().source_verification_mode = None;
        cx.object.remove_condition(types::SOURCE_VERIFIED);
        return Ok(());
    };
    let result = check_signatures(cx, commit, &verify.secret_ref.name, verification_mode(verify.mode)).await;
    match result {
        Ok(message) => {
            let mode = verification_mode(verify.mode).to_owned();
            cx.object.status.get_or_insert_default().source_verification_mode = Some(mode);
            cx.object.mark_true(types::SOURCE_VERIFIED, reasons::SUCCEEDED, &message);
            cx.log.info(&message);
            cx.event(EventKind::Trace, reasons::SUCCEEDED, &message);
            Ok(())
        }
        Err(failure) => {
            cx.object.mark_false(types::SOURCE_VERIFIED, &failure.reason, &failure.message);
            Err(failure)
        }
    }
}

async fn check_signatures(
    cx: &Context<GitRepository>,
    commit: &Commit,
    secret: &str,
    mode: &str,
) -> Result<String, ReconcileError> {
    let secret = secrets::read(cx.cluster(), cx.object.namespace(), secret).await.map_err(|e| {
        ReconcileError::backoff(reasons::source::VERIFICATION_ERROR, format!("public keys secret error: {e}"))
    })?;
    let keys = Keys::from_secret(&secret.data);
    let mut verified = Vec::new();
    if mode != "HEAD" {
        let Some(tag) = &commit.tag else {
            return Err(ReconcileError::stalled(
                reasons::source::INVALID_VERIFICATION_MODE,
                "cannot verify tag object's signature if a tag reference is not specified",
            ));
        };
        let Some(signature) = tag.signature.as_deref().filter(|s| !s.is_empty()) else {
            let message = format!("cannot verify signature of tag '{tag}' since it is not signed");
            return Err(ReconcileError::backoff(reasons::source::INVALID_GIT_OBJECT, message));
        };
        let key = signature::verify("tag", &tag.signed_payload, signature, &keys).map_err(|e| {
            let message = format!("signature verification of tag '{tag}' failed: {e}");
            ReconcileError::backoff(reasons::source::INVALID_TAG_SIGNATURE, message)
        })?;
        verified.push(format!("tag '{tag}' with key '{key}'"));
    }
    if mode != "Tag" {
        let signature = commit.signature.as_deref().unwrap_or_default();
        let key = signature::verify("commit", &commit.signed_payload, signature, &keys).map_err(|e| {
            let message = format!("signature verification of commit '{}' failed: {e}", commit.id);
            ReconcileError::backoff(reasons::source::INVALID_COMMIT_SIGNATURE, message)
        })?;
        verified.push(format!("commit '{}' with key '{key}'", commit.id));
    }
    Ok(format!("verified signature of\n\t- {}", verified.join("\n\t- ")))
}
