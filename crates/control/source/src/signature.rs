//! Which kind of signature it is, and which keys may have made it.

use std::collections::BTreeMap;

/// Public keys of a Secret: `*.sshpub` are SSH authorized keys, everything else PGP key rings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys {
    pgp: Vec<Vec<u8>>,
    ssh: Vec<Vec<u8>>,
}

impl Keys {
    pub(crate) fn from_secret(data: &BTreeMap<String, Vec<u8>>) -> Self {
        let mut keys = Keys::default();
        for (name, value) in data {
            if name.ends_with(".sshpub") {
                keys.ssh.push(value.clone());
            } else {
                keys.pgp.push(value.clone());
            }
        }
        keys
    }
}

/// The key that made a signature: PGP's long id or SSH's fingerprint. `what` is `commit` or `tag`.
pub(crate) fn verify(what: &str, payload: &[u8], signature: &str, keys: &Keys) -> Result<String, String> {
    let begins = |prefixes: &[&str]| prefixes.iter().any(|p| signature.trim_start().starts_with(p));
    if begins(&["-----BEGIN PGP SIGNATURE-----", "-----BEGIN PGP MESSAGE-----"]) {
        if keys.pgp.is_empty() {
            return Err(
                "PGP signature detected but no PGP public keys found in secret (keys with .asc suffix)"
                    .to_owned(),
            );
        }
        return pgp(payload, signature, &keys.pgp).map_err(|e| format!("unable to verify Git {what}: {e}"));
    }
    if begins(&["-----BEGIN SSH SIGNATURE-----"]) {
        if keys.ssh.is_empty() {
            return Err(
                "SSH signature detected but no SSH public keys found in secret (keys with .sshpub suffix)"
                    .to_owned(),
            );
        }
        return ssh(payload, signature, &keys.ssh)
            .map_err(|e| format!("unable to verify Git {what} SSH signature: {e}"));
    }
    let kind = match signature.trim() {
        "" => "empty",
        text if text.starts_with("-----BEGIN SIGNED MESSAGE-----") => "x509",
        _ => "unknown",
    };
    Err(format!("unsupported signature type: {kind}"))
}

fn pgp(_payload: &[u8], _signature: &str, _rings: &[Vec<u8>]) -> Result<String, String> {
    Err("PGP signatures cannot be checked by this build".to_owned())
}

fn ssh(_payload: &[u8], _signature: &str, _keys: &[Vec<u8>]) -> Result<String, String> {
    Err("SSH signatures cannot be checked by this build".to_owned())
}
