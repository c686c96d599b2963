//! Signatures of charts in registries.

use fl_api::condition::{reasons, types};
use fl_api::source::HelmChart;
use fl_api::source::verification::VerificationProvider;
use fl_oci::CosignKeys;
use fl_runtime::{Conditions, Pass, Reconciled};

use super::build::{BuildError, Reason};
use super::remote::{Charts, Chosen};
use crate::{secrets, signature};

/// What is demanded of a chart.
pub(super) enum Verification {
    Nothing,
    Cosign(CosignKeys),
    /// Over HTTP there is nothing that could be checked.
    Impossible,
}

/// Reads the keys. Trouble here ends the pass: nothing is taken unverified.
pub(super) async fn prepare(pass: &mut Pass<HelmChart>, charts: &Charts) -> Result<Verification, BuildError> {
    let Some(verify) = pass.object.spec.verify.clone() else { return Ok(Verification::Nothing) };
    if matches!(charts, Charts::Http(_)) {
        return Ok(Verification::Impossible);
    }
    let namespace = pass.object.namespace().to_owned();
    let (provider, problem) = match (verify.provider, &verify.secret_ref) {
        (VerificationProvider::Cosign, Some(reference)) => {
            let read = secrets::read(pass.cluster(), &namespace, &reference.name).await;
            let keys =
                read.map_err(|e| e.to_string()).and_then(|secret| signature::cosign_keys(&secret.data));
            match keys {
                Ok(keys) if keys.is_empty() => {
                    ("cosign", format!("no public keys found in secret '{namespace}/{}'", reference.name))
                }
                Ok(keys) => return Ok(Verification::Cosign(keys)),
                Err(problem) => ("cosign", problem),
            }
        }
        (VerificationProvider::Cosign, None) => ("cosign keyless", signature::KEYLESS.to_owned()),
        (VerificationProvider::Notation, Some(reference)) => {
            let read = secrets::read(pass.cluster(), &namespace, &reference.name).await;
            let problem = read.map_or_else(|e| e.to_string(), |secret| signature::notation_problem(&secret));
            ("notation", problem)
        }
        (VerificationProvider::Notation, None) => ("notation", signature::NOTATION.to_owned()),
    };
    let message = format!("failed to verify the signature using provider '{provider}': {problem}");
    pass.object.mark_false(types::SOURCE_VERIFIED, reasons::source::VERIFICATION_ERROR, &message);
    Err(BuildError::before(reasons::source::VERIFICATION_ERROR, message))
}

impl Verification {
    /// Whether the chart was verified; a chart that should have been and was not is an error.
    pub(super) async fn check(&self, charts: &Charts, chosen: &Chosen) -> Result<bool, BuildError> {
        let failed = |problem: String| BuildError::new(Reason::Verification, problem);
        let keys = match self {
            Verification::Nothing => return Ok(false),
            Verification::Impossible => return Err(failed("not implemented".to_owned())),
            Verification::Cosign(keys) => keys,
        };
        let Charts::Oci(charts) = charts else { return Err(failed("not implemented".to_owned())) };
        let reference =
            charts.reference(chosen).map_err(|e| failed(format!("invalid chart reference: {e}")))?;
        let url = chosen.url.clone().unwrap_or_default();
        let unknown = |e: fl_oci::Error| failed(format!("failed to verify {url}: {e}"));
        let digest = charts.registry.resolve(&reference).await.map_err(unknown)?;
        let shown = reference.to_string();
        let found = charts.registry.signatures(reference.repository(), &digest).await;
        if found.as_ref().is_ok_and(|found| found.bundles.is_empty() && found.simple.is_empty()) {
            return Err(failed(format!("failed to verify {url}: no signatures found")));
        }
        signature::check_cosign(found, keys, &shown).map_err(failed)?;
        Ok(true)
    }
}
