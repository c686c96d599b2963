//! Finding the signatures of a manifest: what refers to it, or the tag that cosign puts beside it.

use fl_verify::PublicKey;
use fl_verify::cosign::{SimpleSignature, verify_bundle, verify_simple};
use fl_verify::keyless::{self, Identities, TrustRoot};

use crate::{Error, Registry, Repository};

/// Signatures of one manifest that are looked at.
const SIGNATURES: usize = 50;
/// Bytes of one signature.
const BYTES: u64 = 1 << 20;
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle";
const SIGNATURE: &str = "dev.cosignproject.cosign/signature";
const CERTIFICATE: &str = "dev.sigstore.cosign/certificate";
const LOG_ENTRY: &str = "dev.sigstore.cosign/bundle";

/// Who may have signed.
#[derive(Clone, Debug)]
pub struct CosignKeys(Vec<PublicKey>);

impl CosignKeys {
    /// From PEM texts. One that cannot be read is an error: it may be the one that counts.
    pub fn from_pem<'a>(texts: impl IntoIterator<Item = &'a [u8]>) -> Result<Self, String> {
        let read = |text: &[u8]| {
            let text = std::str::from_utf8(text).map_err(|_| "PEM decoding failed".to_owned())?;
            PublicKey::from_pem(text).map_err(|e| e.to_string())
        };
        Ok(Self(texts.into_iter().map(read).collect::<Result<_, _>>()?))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Registry {
    /// Whether one of the keys signed the manifest with this digest. `false` is a verdict, an error is none.
    pub async fn verify_cosign(
        &self,
        repository: &Repository,
        digest: &str,
        keys: &CosignKeys,
    ) -> Result<bool, Error> {
        let bundles = self.bundles(repository, digest).await?;
        if !bundles.is_empty() {
            let good = |bundle: &Vec<u8>| keys.0.iter().any(|key| verify_bundle(bundle, digest, key).is_ok());
            return Ok(bundles.iter().any(good));
        }
        let signatures = self.simple_signatures(repository, digest).await?;
        let good =
            |signed: &SimpleSignature| keys.0.iter().any(|key| verify_simple(signed, digest, key).is_ok());
        Ok(signatures.iter().any(good))
    }

    /// Whether one of the identities signed the manifest with this digest, going by a root of trust. The inner error is a
    /// verdict and says why not, the outer one is none.
    pub async fn verify_keyless(
        &self,
        repository: &Repository,
        digest: &str,
        root: &TrustRoot,
        identities: &Identities,
    ) -> Result<Result<(), String>, Error> {
        let bundles = self.bundles(repository, digest).await?;
        let mut verdicts: Vec<_> =
            bundles.iter().map(|bundle| keyless::verify_bundle(bundle, digest, root, identities)).collect();
        if bundles.is_empty() {
            let signatures = self.simple_signatures(repository, digest).await?;
            let check = |signed: &SimpleSignature| keyless::verify_simple(signed, digest, root, identities);
            verdicts = signatures.iter().map(check).collect();
        }
        if verdicts.iter().any(Result::is_ok) {
            return Ok(Ok(()));
        }
        let reasons: Vec<String> = verdicts.into_iter().filter_map(|v| Some(v.err()?.to_string())).collect();
        Ok(Err(match reasons.as_slice() {
            [] => "no signatures found".to_owned(),
            reasons => format!("no matching signatures: {}", reasons.join("\n ")),
        }))
    }

    /// The newer form: artifacts that refer to the manifest.
    async fn bundles(&self, repository: &Repository, digest: &str) -> Result<Vec<Vec<u8>>, Error> {
        let referrers = self.referrers(repository, digest, None).await?;
        let mut found = Vec::new();
        let ours = |t: &Option<String>| t.as_deref().is_some_and(|t| t.starts_with(BUNDLE));
        for referrer in referrers.iter().filter(|r| ours(&r.artifact_type)).take(SIGNATURES) {
            let (manifest, _) = self.image(&repository.digest(&referrer.digest)?).await?;
            for layer in manifest.layers.iter().filter(|l| l.media_type.starts_with(BUNDLE)).take(1) {
                found.push(self.blob_bytes(repository, layer, BYTES).await?);
            }
        }
        Ok(found)
    }

    /// The older form: layers of a manifest under a tag made of the digest.
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
        for layer in manifest.layers.iter().take(SIGNATURES) {
            let Some(signature) = layer.annotations.get(SIGNATURE) else { continue };
            let payload = self.blob_bytes(repository, layer, BYTES).await?;
            let text = |name: &str| layer.annotations.get(name).cloned();
            let (certificate, bundle) = (text(CERTIFICATE), text(LOG_ENTRY));
            found.push(SimpleSignature { payload, signature: signature.clone(), certificate, bundle });
        }
        Ok(found)
    }
}
