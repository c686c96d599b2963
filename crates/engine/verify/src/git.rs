//! Signatures of commits and tags; their type decides which keys are used.

use crate::{pgp, ssh};

/// Type of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureKind {
    Pgp,
    Ssh,
    X509,
    Empty,
    Unknown,
}

impl SignatureKind {
    pub fn of(signature: &str) -> Self {
        let text = signature.trim();
        if text.is_empty() {
            SignatureKind::Empty
        } else if text.starts_with("-----BEGIN PGP SIGNATURE-----") {
            SignatureKind::Pgp
        } else if text.starts_with("-----BEGIN SSH SIGNATURE-----") {
            SignatureKind::Ssh
        } else if text.starts_with("-----BEGIN SIGNED MESSAGE-----")
            || text.starts_with("-----BEGIN CERTIFICATE-----")
        {
            SignatureKind::X509
        } else {
            SignatureKind::Unknown
        }
    }

    /// Flux's name.
    pub fn name(self) -> &'static str {
        match self {
            SignatureKind::Pgp => "openpgp",
            SignatureKind::Ssh => "ssh",
            SignatureKind::X509 => "x509",
            SignatureKind::Empty => "empty",
            SignatureKind::Unknown => "unknown",
        }
    }
}

/// Trusted keys.
#[derive(Clone, Debug, Default)]
pub struct GitKeys {
    /// Armored PGP key rings.
    pub pgp: Vec<String>,
    /// `authorized_keys` files.
    pub ssh: Vec<String>,
}

/// Error of verifying a commit or tag; the messages are Flux's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GitError {
    #[error("PGP signature detected but no PGP public keys found in secret (keys with .asc suffix)")]
    NoPgpKeys,
    #[error("SSH signature detected but no SSH public keys found in secret (keys with .sshpub suffix)")]
    NoSshKeys,
    #[error("unsupported signature type: {0}")]
    Unsupported(&'static str),
    #[error("unable to verify Git {what}: {why}")]
    Pgp { what: String, why: pgp::PgpError },
    #[error("unable to verify Git {what} SSH signature: {why}")]
    Ssh { what: String, why: ssh::SshError },
}

/// Verifies a commit or tag (`what`) and returns the key: PGP's long id, or SSH's fingerprint. `now` is the
/// Unix time in seconds.
pub fn verify_git(
    what: &str,
    signature: &str,
    payload: &[u8],
    keys: &GitKeys,
    now: u64,
) -> Result<String, GitError> {
    match SignatureKind::of(signature) {
        SignatureKind::Pgp if keys.pgp.is_empty() => Err(GitError::NoPgpKeys),
        SignatureKind::Pgp => pgp::verify(signature, payload, &keys.pgp, now)
            .map_err(|why| GitError::Pgp { what: what.to_owned(), why }),
        SignatureKind::Ssh if keys.ssh.is_empty() => Err(GitError::NoSshKeys),
        SignatureKind::Ssh => ssh::verify(signature, payload, &keys.ssh)
            .map_err(|why| GitError::Ssh { what: what.to_owned(), why }),
        other => Err(GitError::Unsupported(other.name())),
    }
}
