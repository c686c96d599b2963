//! Public keys from Secrets, and the verification of signatures with them.

use std::collections::BTreeMap;

use fl_api::source::verification::OidcIdentity;
use fl_oci::{CosignKeys, Error, Signatures};
use fl_verify::keyless::{Identities, TrustRoot};
use fl_verify::{GitKeys, verify_git};

use crate::secrets::SecretData;

/// The key of a Secret with notation's trust policy.
const TRUST_POLICY: &str = "trustpolicy.json";

/// Why a signature is not verified.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SignatureError {
    #[error("{0}")]
    Git(#[from] fl_verify::GitError),
    #[error("{0}")]
    CosignKey(#[from] fl_oci::CosignKeyError),
    #[error("no matching signatures were found for '{0}'")]
    NoMatch(String),
    #[error("unable to parse trusted root: {0}")]
    TrustedRoot(String),
    #[error("{0}")]
    Identities(String),
    #[error("{0}")]
    Registry(#[from] Error),
    #[error("{0}")]
    Identity(#[from] fl_oci::IdentityError),
    /// There is no trusted root.
    #[error(
        "signatures without a key are checked against a given trusted root only: put Sigstore's \
         trusted_root.json into a Secret and name it in trustedRootSecretRef of an OCIRepository, or name the public keys in secretRef"
    )]
    Keyless,
    #[error("notation signatures cannot be checked by this build")]
    Notation,
    #[error("'{key}' not found in secret '{secret}'")]
    NoTrustPolicy { key: &'static str, secret: String },
    #[error("no certificates found in secret '{0}'")]
    NoCertificates(String),
}

/// Public keys of a Secret: `*.sshpub` are SSH authorized keys, everything else PGP key rings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys(GitKeys);

impl Keys {
    pub(crate) fn from_secret(data: &BTreeMap<String, Vec<u8>>) -> Self {
        let mut keys = GitKeys::default();
        for (name, value) in data {
            let text = String::from_utf8_lossy(value).into_owned();
            if name.ends_with(".sshpub") {
                keys.ssh.push(text);
            } else {
                keys.pgp.push(text);
            }
        }
        Keys(keys)
    }
}

/// The key that made a signature: PGP's long id or SSH's fingerprint. `what` is `commit` or `tag`.
pub(crate) fn verify(
    what: &str,
    payload: &[u8],
    signature: &str,
    keys: &Keys,
) -> Result<String, SignatureError> {
    let now = u64::try_from(jiff::Timestamp::now().as_second()).unwrap_or_default();
    Ok(verify_git(what, signature, payload, &keys.0, now)?)
}

/// Why a notation signature is not verified: an incomplete Secret is reported first.
pub(crate) fn notation_error(secret: &SecretData) -> SignatureError {
    let place = format!("{}/{}", secret.namespace, secret.name);
    if !secret.data.contains_key(TRUST_POLICY) {
        return SignatureError::NoTrustPolicy { key: TRUST_POLICY, secret: place };
    }
    if !secret.data.keys().any(|key| key.ends_with(".crt") || key.ends_with(".pem")) {
        return SignatureError::NoCertificates(place);
    }
    SignatureError::Notation
}

/// The cosign keys of a Secret, `*.pub`.
pub(crate) fn cosign_keys(data: &BTreeMap<String, Vec<u8>>) -> Result<CosignKeys, SignatureError> {
    let public = data.iter().filter(|(name, _)| name.ends_with(".pub"));
    Ok(CosignKeys::from_pem(public.map(|(_, value)| value.as_slice()))?)
}

/// Checks that one of the keys made one of the signatures.
pub(crate) fn check_cosign(
    found: Result<Signatures, Error>,
    keys: &CosignKeys,
    shown: &str,
) -> Result<(), SignatureError> {
    match found {
        Ok(signatures) if signatures.by_keys(keys) => Ok(()),
        // Flux reports a registry that does not answer as one without signatures.
        _ => Err(SignatureError::NoMatch(shown.to_owned())),
    }
}

/// Identities whose signatures are accepted without a key.
pub(crate) struct Keyless {
    root: TrustRoot,
    identities: Identities,
}

impl Keyless {
    pub(crate) fn new(root: &[u8], matchers: &[OidcIdentity]) -> Result<Self, SignatureError> {
        let root = TrustRoot::from_json(root).map_err(|e| SignatureError::TrustedRoot(e.to_string()))?;
        let pairs = matchers.iter().map(|m| (m.issuer.as_str(), m.subject.as_str()));
        let identities = Identities::new(pairs).map_err(|e| SignatureError::Identities(e.to_string()))?;
        Ok(Self { root, identities })
    }

    /// Checks that one of the identities made one of the signatures.
    pub(crate) fn check(&self, found: Result<Signatures, Error>) -> Result<(), SignatureError> {
        Ok(found?.by_identities(&self.root, &self.identities)?)
    }
}
