//! Verification of signatures of commits and artifacts, as pure functions of bytes, keys and the current
//! time.
//!
//! - [`verify_git`]: a commit or tag, signed with PGP ([`pgp`]) or SSH ([`ssh`]), depending on the signature.
//! - [`cosign`]: images and artifacts signed with a key; [`keyless`]: signed with an identity.
//!
//! Verification fails closed: a malformed signature, an unknown algorithm and an expired or revoked key are
//! all errors.

pub mod cosign;
mod git;
pub mod keyless;
pub mod openpgp_packet;
pub mod pgp;
mod public_key;
pub mod ssh;

pub use git::{GitError, GitKeys, SignatureKind, verify_git};
pub use public_key::{KeyError, PublicKey};
