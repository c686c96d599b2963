//! Keyless signatures: a CA certifies for a few minutes that a key belongs to an identity, and a log records
//! when it was used.
//!
//! Everything is verified against a [`TrustRoot`] that the caller provides; nothing is fetched. A signature
//! is valid if
//!
//! 1. its certificate was issued by a CA of the root, was valid when it was used, and is for code signing;
//! 2. a certificate log of the root has recorded the certificate (an embedded SCT);
//! 3. a transparency log of the root has recorded this signature with its time, or a timestamp authority of
//!    the root certifies the time;
//! 4. the identity and its issuer match the expected ones;
//! 5. the certificate's key signed a document that names the image.

mod certificate;
mod identity;
mod sct;
mod timestamp;
mod tlog;
mod trust_root;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::cosign::{self, CosignError, SimpleSignature};
use certificate::Certificate;
pub use identity::{Identities, IdentityError};
use tlog::{Entry, Signed};
pub use trust_root::{TrustRoot, TrustRootError};

/// Error of verifying a signature.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeylessError {
    #[error("the signature has no certificate")]
    NoCertificate,
    #[error("the certificate cannot be read: {0}")]
    Certificate(&'static str),
    #[error("the certificate was not issued by an authority of the trusted root: {0}")]
    Untrusted(&'static str),
    #[error("the certificate has no signed timestamp of a certificate log of the trusted root: {0}")]
    Sct(&'static str),
    #[error(
        "the signature has no entry in a transparency log: logs are not asked, so it must come with its proof"
    )]
    NoEntry,
    #[error("the entry in the transparency log does not hold: {0}")]
    Entry(&'static str),
    #[error(
        "none of the expected identities matched what was in the certificate, got subjects [{subjects}] with issuer {issuer}"
    )]
    Identity { subjects: String, issuer: String },
    #[error("{0}")]
    Signature(#[from] CosignError),
}

/// Verifies a simple signing signature with certificate and log entry in annotations, for the image with this
/// digest.
pub fn verify_simple(
    signed: &SimpleSignature,
    digest: &str,
    root: &TrustRoot,
    identities: &Identities,
) -> Result<(), KeylessError> {
    let pem = signed.certificate.as_deref().ok_or(KeylessError::NoCertificate)?;
    let der = certificate::from_pem(pem).ok_or(KeylessError::Certificate("it is no PEM"))?;
    let certificate = Certificate::parse(&der)?;
    let entry = signed.bundle.as_deref().ok_or(KeylessError::NoEntry)?;
    let entry = Entry::from_annotation(entry).ok_or(KeylessError::Entry("it cannot be read"))?;
    let signature = STANDARD.decode(signed.signature.trim()).map_err(|_| CosignError::Encoding)?;
    let about = Signed::Blob { digest: Sha256::digest(&signed.payload).to_vec(), signature: &signature };
    let unsaid = KeylessError::Entry("the log has not signed when it saw the signature");
    let when = entry.verify(root, &about, &der)?.ok_or(unsaid)?;
    trust(&certificate, root, when, identities)?;
    if !certificate.key.verify(&signed.payload, &signature) {
        return Err(CosignError::WrongKey.into());
    }
    Ok(cosign::names_image(&signed.payload, digest)?)
}

/// Verifies a bundle with a statement about the image with this digest.
pub fn verify_bundle(
    bundle: &[u8],
    digest: &str,
    root: &TrustRoot,
    identities: &Identities,
) -> Result<(), KeylessError> {
    let bundle = cosign::read_bundle(bundle)?;
    let material = &bundle["verificationMaterial"];
    let der = [
        &material["certificate"]["rawBytes"],
        &material["x509CertificateChain"]["certificates"][0]["rawBytes"],
    ]
    .into_iter()
    .find_map(decode)
    .ok_or(KeylessError::NoCertificate)?;
    let certificate = Certificate::parse(&der)?;
    let envelope = cosign::Envelope::read(&bundle["dsseEnvelope"])?;
    let signature = envelope.signed_by(&certificate.key)?;
    let entries = material["tlogEntries"].as_array().map(Vec::as_slice).unwrap_or_default();
    let about =
        Signed::Envelope { payload: Sha256::digest(&envelope.payload).to_vec(), signature: &signature };
    let mut problem = KeylessError::NoEntry;
    for entry in entries.iter().take(10) {
        let when =
            Entry::from_bundle(entry).ok_or(KeylessError::Entry("it cannot be read")).and_then(|entry| {
                match entry.verify(root, &about, &der)? {
                    Some(when) => Ok(when),
                    None => stamped(&entry, material, &signature, root).map_err(KeylessError::Entry),
                }
            });
        match when {
            Ok(when) => {
                trust(&certificate, root, when, identities)?;
                return Ok(envelope.names_image(digest)?);
            }
            Err(error) => problem = error,
        }
    }
    Err(problem)
}

/// The time of a timestamp authority, for logs that do not sign the time.
fn stamped(entry: &Entry, material: &Value, signature: &[u8], root: &TrustRoot) -> Result<u64, &'static str> {
    let stamps = &material["timestampVerificationData"]["rfc3161Timestamps"];
    let stamps = stamps.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut problem = "nobody has signed when the signature was made";
    for stamp in stamps.iter().take(10) {
        let response = decode(&stamp["signedTimestamp"]).ok_or("a timestamp is malformed")?;
        match timestamp::verify(&response, signature, root) {
            Ok(when) if entry.valid_at(root, when) => return Ok(when),
            Ok(_) => problem = "the log's key was not valid then",
            Err(why) => problem = why,
        }
    }
    Err(problem)
}

/// Verifies the certificate at the time of the signature.
fn trust(
    certificate: &Certificate,
    root: &TrustRoot,
    when: u64,
    identities: &Identities,
) -> Result<(), KeylessError> {
    let issuer = root.issuer_of(certificate, when).map_err(KeylessError::Untrusted)?;
    sct::verify(certificate, issuer, root).map_err(KeylessError::Sct)?;
    identities.check(certificate)
}

fn decode(value: &Value) -> Option<Vec<u8>> {
    STANDARD.decode(value.as_str()?).ok()
}
