//! SSH signatures, as made by `ssh-keygen -Y sign -n git`.

use ssh_key::{HashAlg, PublicKey, SshSig};

/// Namespace of Git signatures.
const NAMESPACE: &str = "git";

/// Error of verifying a signature; the messages are Flux's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SshError {
    #[error("unable to verify payload: payload is empty")]
    EmptyPayload,
    #[error("unable to unarmor SSH signature: invalid PEM block")]
    Malformed,
    #[error("unable to parse authorized keys: unable to parse authorized key: ssh: no key found")]
    NoKeys,
    #[error("unable to verify payload with any of the given authorized keys: no matching key{0}")]
    NoMatch(String),
}

/// Verifies a signature and returns the fingerprint of its key.
pub fn verify(signature: &str, payload: &[u8], authorized_keys: &[String]) -> Result<String, SshError> {
    if payload.is_empty() {
        return Err(SshError::EmptyPayload);
    }
    let signature = SshSig::from_pem(signature.trim()).map_err(|_| SshError::Malformed)?;
    let (mut readable, mut reasons) = (false, Vec::new());
    for file in authorized_keys {
        let Ok(keys) = read_keys(file) else { continue };
        readable = true;
        for key in keys {
            let reason = if signature.namespace() != NAMESPACE {
                "namespace does not match"
            } else if signature.public_key() != key.key_data() {
                "public key does not match"
            } else if is_weak(&key) {
                "the key is too short"
            } else {
                match key.verify(NAMESPACE, payload, &signature) {
                    Ok(()) => return Ok(key.fingerprint(HashAlg::Sha256).to_string()),
                    Err(_) => "ssh: signature did not verify",
                }
            };
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
    }
    if !readable && !authorized_keys.is_empty() {
        return Err(SshError::NoKeys);
    }
    Err(SshError::NoMatch(reasons.iter().map(|r| format!("\n{r}")).collect()))
}

/// Whether the key is too weak to be trusted.
fn is_weak(key: &PublicKey) -> bool {
    key.key_data().rsa().is_some_and(|rsa| {
        let significant = rsa.n().as_bytes().iter().skip_while(|b| **b == 0).count();
        significant < 256
    })
}

/// Parses `authorized_keys`: a key may have options before it and a comment after it.
fn read_keys(text: &str) -> Result<Vec<PublicKey>, ()> {
    let mut keys = Vec::new();
    for line in text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')) {
        let key = PublicKey::from_openssh(line).ok().or_else(|| {
            let start =
                ["ssh-", "ecdsa-", "sk-"].iter().filter_map(|kind| line.find(&format!(" {kind}"))).min()?;
            PublicKey::from_openssh(line[start..].trim()).ok()
        });
        keys.push(key.ok_or(())?);
    }
    Ok(keys)
}
