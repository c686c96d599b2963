//! Cosign: what was signed is a small document that names an image by its digest ("simple signing"), or a bundle with a statement
//! about it.
//!
//! With a key everything needed is here. Without one ("keyless") the key is in a certificate of an authority, and a log proves when
//! it was used; that needs a root of trust and is refused as long as it cannot be checked in full.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::PublicKey;

/// Why a signature is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CosignError {
    #[error("the signed document is malformed: {0}")]
    Document(&'static str),
    #[error("the signature is about {found}, not {wanted}")]
    OtherImage { found: String, wanted: String },
    #[error("the signature is not base64")]
    Encoding,
    #[error("the signature was not made by this key")]
    WrongKey,
    #[error("the bundle is malformed: {0}")]
    Bundle(&'static str),
}

/// A signature in the older form: a document and what signs it.
#[derive(Clone, Debug)]
pub struct SimpleSignature {
    pub payload: Vec<u8>,
    /// The annotation `dev.cosignproject.cosign/signature`.
    pub signature: String,
}

/// Checks an older signature over the image with this digest.
pub fn verify_simple(signed: &SimpleSignature, digest: &str, key: &PublicKey) -> Result<(), CosignError> {
    let signature = STANDARD.decode(signed.signature.trim()).map_err(|_| CosignError::Encoding)?;
    if !key.verify(&signed.payload, &signature) {
        return Err(CosignError::WrongKey);
    }
    let document: Value =
        serde_json::from_slice(&signed.payload).map_err(|_| CosignError::Document("it is not JSON"))?;
    let named = document["critical"]["image"]["docker-manifest-digest"].as_str().unwrap_or_default();
    if document["critical"]["type"].as_str() != Some("cosign container image signature") {
        return Err(CosignError::Document("it is not a signature of an image"));
    }
    same_image(named, digest)
}

fn same_image(found: &str, wanted: &str) -> Result<(), CosignError> {
    if found == wanted {
        Ok(())
    } else {
        Err(CosignError::OtherImage { found: found.chars().take(100).collect(), wanted: wanted.to_owned() })
    }
}

/// Checks a bundle (`application/vnd.dev.sigstore.bundle.v0.3+json`) that was made with a key.
pub fn verify_bundle(bundle: &[u8], digest: &str, key: &PublicKey) -> Result<(), CosignError> {
    let bundle: Value = serde_json::from_slice(bundle).map_err(|_| CosignError::Bundle("it is not JSON"))?;
    let kind = bundle["mediaType"].as_str().unwrap_or_default();
    if !kind.starts_with("application/vnd.dev.sigstore.bundle") {
        return Err(CosignError::Bundle("its media type is another"));
    }
    let envelope = &bundle["dsseEnvelope"];
    if envelope.is_object() {
        return verify_envelope(envelope, digest, key);
    }
    // A bare signature is over the bytes of the manifest, which are not in the bundle.
    Err(CosignError::Bundle("it has no statement about the image"))
}

fn decode(value: &Value) -> Option<Vec<u8>> {
    STANDARD.decode(value.as_str()?).ok()
}

/// A statement in an envelope: type and content are signed together.
fn verify_envelope(envelope: &Value, digest: &str, key: &PublicKey) -> Result<(), CosignError> {
    let kind = envelope["payloadType"].as_str().unwrap_or_default();
    let payload = decode(&envelope["payload"]).ok_or(CosignError::Bundle("its payload is not base64"))?;
    let mut message = format!("DSSEv1 {} {kind} {} ", kind.len(), payload.len()).into_bytes();
    message.extend_from_slice(&payload);
    let signatures = envelope["signatures"].as_array().map(Vec::as_slice).unwrap_or_default();
    let ours = |s: &Value| decode(&s["sig"]).is_some_and(|sig| key.verify(&message, &sig));
    if !signatures.iter().take(20).any(ours) {
        return Err(CosignError::WrongKey);
    }
    let statement: Value =
        serde_json::from_slice(&payload).map_err(|_| CosignError::Document("the statement is not JSON"))?;
    if kind != "application/vnd.in-toto+json" {
        return Err(CosignError::Document("the statement is of another type"));
    }
    let subjects = statement["subject"].as_array().map(Vec::as_slice).unwrap_or_default();
    let (algorithm, hex) = digest.split_once(':').unwrap_or(("sha256", digest));
    let named = |s: &Value| s["digest"][algorithm].as_str() == Some(hex);
    if subjects.iter().any(named) {
        return Ok(());
    }
    let found = subjects.first().and_then(|s| s["digest"][algorithm].as_str()).unwrap_or("nothing");
    Err(CosignError::OtherImage { found: found.chars().take(100).collect(), wanted: digest.to_owned() })
}
