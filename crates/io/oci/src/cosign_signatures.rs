//! Signatures of a manifest: its referrers, or the tag that cosign derives from its digest.

use fl_verify::PublicKey;
use fl_verify::cosign::{SimpleSignature, verify_bundle, verify_simple};
use fl_verify::keyless::{self, Identities, TrustRoot};

use crate::{Error, Registry, Repository};

/// Signatures of one manifest that are fetched.
const MAX_SIGNATURES: usize = 50;
/// Bytes of one signature.
const MAX_SIGNATURE_BYTES: u64 = 1 << 20;
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle";
const SIGNATURE: &str = "dev.cosignproject.cosign/signature";
const CERTIFICATE: &str = "dev.sigstore.cosign/certificate";
const LOG_ENTRY: &str = "dev.sigstore.cosign/bundle";

/// Why a public key cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CosignKeyError {
    #[error("PEM decoding failed")]
    NotText,
    #[error("{0}")]
    Key(String),
}

/// Why no signature of an identity is accepted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    #[error("no signatures found")]
    NoSignatures,
    #[error("no matching signatures: {}", .0.join("\n "))]
    NoMatch(Vec<String>),
}

/// Public keys of signers.
#[derive(Clone, Debug)]
pub struct CosignKeys(Vec<PublicKey>);

impl CosignKeys {
    /// From PEM texts. One that cannot be parsed is an error: it may be the key of the signer.
    pub fn from_pem<'a>(texts: impl IntoIterator<Item = &'a [u8]>) -> Result<Self, CosignKeyError> {
        let read = |text: &[u8]| {
            let text = std::str::from_utf8(text).map_err(|_| CosignKeyError::NotText)?;
            PublicKey::from_pem(text).map_err(|e| CosignKeyError::Key(e.to_string()))
        };
        Ok(Self(texts.into_iter().map(read).collect::<Result<_, _>>()?))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The signatures of a manifest.
#[derive(Clone, Debug, Default)]
pub struct Signatures {
    /// The digest of the manifest.
    pub digest: String,
    /// The newer format.
    pub bundles: Vec<Vec<u8>>,
    /// The older format; ignored when there are bundles.
    pub simple: Vec<SimpleSignature>,
}

impl Signatures {
    /// Whether one of the keys made one of them.
    pub fn by_keys(&self, keys: &CosignKeys) -> bool {
        let bundle =
            |bundle: &Vec<u8>| keys.0.iter().any(|key| verify_bundle(bundle, &self.digest, key).is_ok());
        let simple = |signed: &SimpleSignature| {
            keys.0.iter().any(|key| verify_simple(signed, &self.digest, key).is_ok())
        };
        if self.bundles.is_empty() { self.simple.iter().any(simple) } else { self.bundles.iter().any(bundle) }
    }

    /// Whether one of the identities made one of them, going by a root of trust.
    ///
    /// # Errors
    /// Why none of them counts.
    pub fn by_identities(&self, root: &TrustRoot, identities: &Identities) -> Result<(), IdentityError> {
        let bundle = |bundle: &Vec<u8>| keyless::verify_bundle(bundle, &self.digest, root, identities);
        let simple =
            |signed: &SimpleSignature| keyless::verify_simple(signed, &self.digest, root, identities);
        let verdicts: Vec<_> = if self.bundles.is_empty() {
            self.simple.iter().map(simple).collect()
        } else {
            self.bundles.iter().map(bundle).collect()
        };
        if verdicts.iter().any(Result::is_ok) {
            return Ok(());
        }
        let reasons: Vec<String> = verdicts.into_iter().filter_map(|v| Some(v.err()?.to_string())).collect();
        Err(if reasons.is_empty() { IdentityError::NoSignatures } else { IdentityError::NoMatch(reasons) })
    }
}

impl Registry {
    /// The signatures of the manifest with this digest. An error says nothing about them.
    pub async fn signatures(&self, repository: &Repository, digest: &str) -> Result<Signatures, Error> {
        let mut found = Signatures { digest: digest.to_owned(), ..Signatures::default() };
        found.bundles = self.bundles(repository, digest).await?;
        if found.bundles.is_empty() {
            found.simple = self.simple_signatures(repository, digest).await?;
        }
        Ok(found)
    }

    /// The newer format: artifacts that refer to the manifest.
    async fn bundles(&self, repository: &Repository, digest: &str) -> Result<Vec<Vec<u8>>, Error> {
        let referrers = self.referrers(repository, digest, None).await?;
        let mut found = Vec::new();
        let ours = |t: &Option<String>| t.as_deref().is_some_and(|t| t.starts_with(BUNDLE));
        for referrer in referrers.iter().filter(|r| ours(&r.artifact_type)).take(MAX_SIGNATURES) {
            let (manifest, _) = self.image(&repository.digest(&referrer.digest)?).await?;
            for layer in manifest.layers.iter().filter(|l| l.media_type.starts_with(BUNDLE)).take(1) {
                found.push(self.blob_bytes(repository, layer, MAX_SIGNATURE_BYTES).await?);
            }
        }
        Ok(found)
    }

    /// The older format: layers of a manifest under a tag made of the digest.
    async fn simple_signatures(
        &self,
        repository: &Repository,
        digest: &str,
    ) -> Result<Vec<SimpleSignature>, Error> {
        let tag = repository.tag(&format!("{}.sig", digest.replace(':', "-")))?;
        let manifest = match self.image(&tag).await {
            Ok((manifest, _)) => manifest,
            Err(error) if error.is_not_found() => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut found = Vec::new();
        for layer in manifest.layers.iter().take(MAX_SIGNATURES) {
            let Some(signature) = layer.annotations.get(SIGNATURE) else { continue };
            let payload = self.blob_bytes(repository, layer, MAX_SIGNATURE_BYTES).await?;
            let text = |name: &str| layer.annotations.get(name).cloned();
            let (certificate, bundle) = (text(CERTIFICATE), text(LOG_ENTRY));
            found.push(SimpleSignature { payload, signature: signature.clone(), certificate, bundle });
        }
        Ok(found)
    }
}
