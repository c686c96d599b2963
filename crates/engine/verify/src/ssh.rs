//! SSH signatures, as `ssh-keygen -Y sign -n git` makes them.

use ssh_key::{HashAlg, PublicKey, SshSig};

/// The namespace Git signs in.
const NAMESPACE: &str = "git";

/// Why a signature is refused; the texts are Flux's.
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

/// The fingerprint of the key that made the signature.
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
            } else if weak(&key) {
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

/// A key that can be guessed proves nothing.
fn weak(key: &PublicKey) -> bool {
    key.key_data().rsa().is_some_and(|rsa| {
        let significant = rsa.n().as_bytes().iter().skip_while(|b| **b == 0).count();
        significant < 256
    })
}

/// Lines of `authorized_keys`: options may stand before the key, a comment behind it.
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
