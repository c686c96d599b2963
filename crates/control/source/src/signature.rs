//! Keys out of Secrets, and whether one of them made a signature.

use std::collections::BTreeMap;

use fl_api::source::verification::OidcIdentity;
use fl_oci::{CosignKeys, Error, Signatures};
use fl_verify::keyless::{Identities, TrustRoot};
use fl_verify::{GitKeys, verify_git};

use crate::secrets::SecretData;

/// Where notation keeps whom it trusts.
const TRUST_POLICY: &str = "trustpolicy.json";

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
pub(crate) fn verify(what: &str, payload: &[u8], signature: &str, keys: &Keys) -> Result<String, String> {
    let now = u64::try_from(jiff::Timestamp::now().as_second()).unwrap_or_default();
    verify_git(what, signature, payload, &keys.0, now).map_err(|e| e.to_string())
}

/// Why a signature of notation is not verified: what its Secret lacks comes first.
pub(crate) fn notation_problem(secret: &SecretData) -> String {
    let place = format!("{}/{}", secret.namespace, secret.name);
    if !secret.data.contains_key(TRUST_POLICY) {
        return format!("'{TRUST_POLICY}' not found in secret '{place}'");
    }
    if !secret.data.keys().any(|key| key.ends_with(".crt") || key.ends_with(".pem")) {
        return format!("no certificates found in secret '{place}'");
    }
    NOTATION.to_owned()
}

/// The keys `*.pub` of a Secret, with which cosign may have signed.
pub(crate) fn cosign_keys(data: &BTreeMap<String, Vec<u8>>) -> Result<CosignKeys, String> {
    let public = data.iter().filter(|(name, _)| name.ends_with(".pub"));
    CosignKeys::from_pem(public.map(|(_, value)| value.as_slice()))
}

/// Why signatures without a key are refused when nobody says whom to trust.
pub(crate) const KEYLESS: &str = "signatures without a key are checked against a given trusted root only: put Sigstore's \
    trusted_root.json into a Secret and name it in trustedRootSecretRef of an OCIRepository, or name the public keys in secretRef";
/// Why notation's are.
pub(crate) const NOTATION: &str = "notation signatures cannot be checked by this build";

/// Whether one of the keys made one of the signatures; an error when none did, or nobody could tell.
pub(crate) fn check_cosign(
    found: Result<Signatures, Error>,
    keys: &CosignKeys,
    shown: &str,
) -> Result<(), String> {
    match found {
        Ok(signatures) if signatures.by_keys(keys) => Ok(()),
        // Flux cannot tell a registry without an answer from one without a signature; neither lets anything through.
        _ => Err(format!("no matching signatures were found for '{shown}'")),
    }
}

/// Whose signatures count when there is no key.
pub(crate) struct Keyless {
    root: TrustRoot,
    identities: Identities,
}

impl Keyless {
    pub(crate) fn new(root: &[u8], matchers: &[OidcIdentity]) -> Result<Self, String> {
        let root = TrustRoot::from_json(root).map_err(|e| format!("unable to parse trusted root: {e}"))?;
        let pairs = matchers.iter().map(|m| (m.issuer.as_str(), m.subject.as_str()));
        let identities = Identities::new(pairs).map_err(|e| e.to_string())?;
        Ok(Self { root, identities })
    }

    /// Whether one of the identities made one of the signatures; an error when none did, or nobody could tell.
    pub(crate) fn check(&self, found: Result<Signatures, Error>) -> Result<(), String> {
        found.map_err(|e| e.to_string())?.by_identities(&self.root, &self.identities)
    }
}
