//! Signatures of commits and artifacts, as pure functions: bytes and keys in, a verdict out. Who fetched the bytes, and what the
//! time is, the caller says.
//!
//! - [`verify_git`]: a commit or tag, signed with PGP ([`pgp`]) or SSH ([`ssh`]); which of the two the signature itself tells.
//! - [`cosign`]: images and artifacts signed with a key; [`keyless`]: with an identity.
//!
//! Nothing here ever falls back to "good": a signature that cannot be read, an algorithm that is not known and a key that has
//! expired or was revoked are all refusals.

pub mod cosign;
mod git;
pub mod keyless;
pub mod packet;
pub mod pgp;
mod public_key;
pub mod ssh;

pub use git::{GitError, GitKeys, SignatureKind, verify_git};
pub use public_key::{KeyError, PublicKey};
