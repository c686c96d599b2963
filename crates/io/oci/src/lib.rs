//! A client for OCI registries.
//!
//! A [`Registry`] talks to one host with one set of certificates and credentials:
//!
//! - [`Registry::resolve`]: the digest of a tag, with one request in the usual case;
//! - [`Registry::image`]: a manifest, with the platform rule applied to indexes; [`Manifest::layer`] selects a layer;
//! - [`Registry::blob`]: a stream that is checked against its digest and size as it is read;
//! - [`Registry::signatures`]: the signatures of a manifest;
//! - [`Registry::tags`], [`Registry::referrers`], [`Registry::push_blob`], [`Registry::push_manifest`].
//!
//! Everything a registry sends has a budget in bytes and pages. Credentials come from a [`Keychain`] and go only to the registry
//! they were given for and to the token service it names.

mod cosign_signatures;
mod digest_reader;
mod error;
mod keychain;
mod manifest;
mod pull;
mod push;
mod reference;
mod registry;
mod semver_tags;
mod www_authenticate;

pub use cosign_signatures::{CosignKeyError, CosignKeys, IdentityError, Signatures};
pub use digest_reader::{VerifiedBlob, digest_of};
pub use error::Error;
pub use keychain::{Keychain, KeychainError};
pub use manifest::{Descriptor, Index, Manifest, Platform, media_type};
pub use reference::{NameError, Reference, Repository};
pub use registry::{Registry, RegistryOptions};
pub use semver_tags::select_tag;
pub use www_authenticate::{Challenge, parse_challenges};
