//! SOPS: files whose values are encrypted one by one with a data key, which is itself encrypted for several
//! master keys.
//!
//! [`Document::parse`] parses a file, [`Document::master_keys`] lists its keys, and [`Document::decrypt`]
//! decrypts it with a data key and writes the plain file. Implement [`KeyService`] to provide keys:
//! [`AgeIdentities`] does for age, [`PgpKeys`] for OpenPGP, [`kms::KeyServices`] for key management services.
//! This crate uses neither clock nor disk nor network.
//!
//! Errors never contain a value of the file, encrypted or not.

mod age;
mod cipher;
mod document;
mod error;
mod format;
mod key_errors;
pub mod kms;
mod metadata;
mod pgp;
mod read;
mod shamir;
mod tree;
mod write;

pub use age::AgeIdentities;
pub use document::{Document, KeyService, Mac};
pub use error::{AgeError, Error, KeyError, LoadError, NetworkError, ValueError};
pub use format::Format;
pub use metadata::{MasterKey, Metadata};
pub use pgp::PgpKeys;
