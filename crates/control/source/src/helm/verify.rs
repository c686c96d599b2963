//! Verification of charts in registries.

use fl_api::condition::{reasons, types};
use fl_api::source::HelmChart;
use fl_api::source::verification::VerificationProvider;
use fl_oci::CosignKeys;
use fl_runtime::{Conditions, Context, Reconciled};

use super::build::{BuildError, Reason};
use super::charts::{ChartVersion, Charts};
use crate::secrets;
use crate::signature::{self, SignatureError};
use crate::storage::DEADLINE_EXCEEDED;

/// The verification that the spec requires.
pub(super) enum Verification {
    Nothing,
    Cosign(CosignKeys),
    /// Charts over HTTP have no signatures.
    Impossible,
}

/// Reads the keys. An error ends the reconcile: an unverified chart is never used.
pub(super) async fn prepare(
    cx: &mut Context<HelmChart>,
    charts: &Charts,
) -> Result<Verification, BuildError> {
    let Some(verify) = cx.object.spec.verify.clone() else { return Ok(Verification::Nothing) };
    if matches!(charts, Charts::Http(_)) {
        return Ok(Verification::Impossible);
    }
    let namespace = cx.object.namespace().to_owned();
    let (provider, problem) = match (verify.provider, &verify.secret_ref) {
        (VerificationProvider::Cosign, Some(reference)) => {
            let read = secrets::read(cx.cluster(), &namespace, &reference.name).await;
            let keys = read
                .map_err(|e| e.to_string())
                .and_then(|secret| signature::cosign_keys(&secret.data).map_err(|e| e.to_string()));
            match keys {
                Ok(keys) if keys.is_empty() => {
                    ("cosign", format!("no public keys found in secret '{namespace}/{}'", reference.name))
                }
                Ok(keys) => return Ok(Verification::Cosign(keys)),
                Err(problem) => ("cosign", problem),
            }
        }
        (VerificationProvider::Cosign, None) => ("cosign keyless", SignatureError::Keyless.to_string()),
        (VerificationProvider::Notation, Some(reference)) => {
            let read = secrets::read(cx.cluster(), &namespace, &reference.name).await;
            let problem =
                read.map_or_else(|e| e.to_string(), |secret| signature::notation_error(&secret).to_string());
            ("notation", problem)
        }
        (VerificationProvider::Notation, None) => ("notation", SignatureError::Notation.to_string()),
    };
    let message = format!("failed to verify the signature using provider '{provider}': {problem}");
    cx.object.mark_false(types::SOURCE_VERIFIED, reasons::source::VERIFICATION_ERROR, &message);
    Err(BuildError::before(reasons::source::VERIFICATION_ERROR, message))
}

impl Verification {
    /// Whether the chart was verified. It is an error if the spec requires it and it was not.
    pub(super) async fn check(&self, charts: &Charts, chart: &ChartVersion) -> Result<bool, BuildError> {
        let failed = |problem: String| BuildError::new(Reason::Verification, problem);
        let keys = match self {
            Verification::Nothing => return Ok(false),
            Verification::Impossible => return Err(failed("not implemented".to_owned())),
            Verification::Cosign(keys) => keys,
        };
        let Charts::Oci(charts) = charts else { return Err(failed("not implemented".to_owned())) };
        let reference =
            charts.reference(chart).map_err(|e| failed(format!("invalid chart reference: {e}")))?;
        let url = chart.url.clone().unwrap_or_default();
        let unknown = |e: fl_oci::Error| failed(format!("failed to verify {url}: {e}"));
        let shown = reference.to_string();
        let fetch = async {
            let digest = charts.registry.resolve(&reference).await.map_err(unknown)?;
            Ok::<_, BuildError>(charts.registry.signatures(reference.repository(), &digest).await)
        };
        let late = |_| failed(format!("failed to verify {url}: {DEADLINE_EXCEEDED}"));
        let found = tokio::time::timeout(charts.timeout, fetch).await.map_err(late)??;
        if found.as_ref().is_ok_and(|found| found.bundles.is_empty() && found.simple.is_empty()) {
            return Err(failed(format!("failed to verify {url}: no signatures found")));
        }
        signature::check_cosign(found, keys, &shown).map_err(|e| failed(e.to_string()))?;
        Ok(true)
    }
}
