//! Cosign signatures: a small signed document that names an image by its digest ("simple signing"), or a
//! bundle with a statement about it.
//!
//! This module verifies signatures made with a key. Without a key, the public key comes from a certificate;
//! see [`crate::keyless`].

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::PublicKey;

/// Error of verifying a signature.
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

/// A "simple signing" signature: the document and its annotations.
#[derive(Clone, Debug)]
pub struct SimpleSignature {
    pub payload: Vec<u8>,
    /// The annotation `dev.cosignproject.cosign/signature`.
    pub signature: String,
    /// The annotation `dev.sigstore.cosign/certificate`.
    pub certificate: Option<String>,
    /// The annotation `dev.sigstore.cosign/bundle`: the entry in a transparency log.
    pub bundle: Option<String>,
}

/// Verifies a simple signing signature for the image with this digest.
pub fn verify_simple(signed: &SimpleSignature, digest: &str, key: &PublicKey) -> Result<(), CosignError> {
    let signature = STANDARD.decode(signed.signature.trim()).map_err(|_| CosignError::Encoding)?;
    if !key.verify(&signed.payload, &signature) {
        return Err(CosignError::WrongKey);
    }
    names_image(&signed.payload, digest)
}

/// Checks that a document names the image with this digest.
pub(crate) fn names_image(payload: &[u8], digest: &str) -> Result<(), CosignError> {
    let document: Value =
        serde_json::from_slice(payload).map_err(|_| CosignError::Document("it is not JSON"))?;
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

/// Verifies a bundle (`application/vnd.dev.sigstore.bundle.v0.3+json`) that was made with a key.
pub fn verify_bundle(bundle: &[u8], digest: &str, key: &PublicKey) -> Result<(), CosignError> {
    let envelope = Envelope::read(&read_bundle(bundle)?["dsseEnvelope"])?;
    envelope.signed_by(key)?;
    envelope.names_image(digest)
}

pub(crate) fn read_bundle(bundle: &[u8]) -> Result<Value, CosignError> {
    let bundle: Value = serde_json::from_slice(bundle).map_err(|_| CosignError::Bundle("it is not JSON"))?;
    let kind = bundle["mediaType"].as_str().unwrap_or_default();
    if !kind.starts_with("application/vnd.dev.sigstore.bundle") {
        return Err(CosignError::Bundle("its media type is another"));
    }
    Ok(bundle)
}

fn decode(value: &Value) -> Option<Vec<u8>> {
    STANDARD.decode(value.as_str()?).ok()
}

/// A DSSE envelope: type and payload are signed together.
pub(crate) struct Envelope {
    kind: String,
    pub(crate) payload: Vec<u8>,
    signatures: Vec<Vec<u8>>,
}

impl Envelope {
    pub(crate) fn read(envelope: &Value) -> Result<Self, CosignError> {
        if !envelope.is_object() {
            // A bare signature covers the bytes of the manifest, which are not in the bundle.
            return Err(CosignError::Bundle("it has no statement about the image"));
        }
        let payload = decode(&envelope["payload"]).ok_or(CosignError::Bundle("its payload is not base64"))?;
        let signatures = envelope["signatures"].as_array().map(Vec::as_slice).unwrap_or_default();
        Ok(Self {
            kind: envelope["payloadType"].as_str().unwrap_or_default().to_owned(),
            payload,
            signatures: signatures.iter().take(20).filter_map(|s| decode(&s["sig"])).collect(),
        })
    }

    /// Returns the signature made by this key.
    pub(crate) fn signed_by(&self, key: &PublicKey) -> Result<Vec<u8>, CosignError> {
        let kind = &self.kind;
        let mut message = format!("DSSEv1 {} {kind} {} ", kind.len(), self.payload.len()).into_bytes();
        message.extend_from_slice(&self.payload);
        let ours = self.signatures.iter().find(|signature| key.verify(&message, signature));
        ours.cloned().ok_or(CosignError::WrongKey)
    }

    /// Checks that the statement names the image with this digest.
    pub(crate) fn names_image(&self, digest: &str) -> Result<(), CosignError> {
        let statement: Value = serde_json::from_slice(&self.payload)
            .map_err(|_| CosignError::Document("the statement is not JSON"))?;
        if self.kind != "application/vnd.in-toto+json" {
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
}
