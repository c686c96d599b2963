//! SOPS: files whose values are encrypted one by one with a data key, which is itself encrypted for several master keys.
//!
//! [`Document::parse`] reads a file, [`Document::master_keys`] says who could open it, [`Document::decrypt`] opens it with a data
//! key and writes the plain file. Whoever holds keys implements [`KeyService`]; [`AgeIdentities`] does for age, [`PgpKeys`] for
//! OpenPGP, [`service::KeyServices`] for those behind a network. Nothing here touches
//! a clock, a disk or a network.
//!
//! Errors never hold a value of the file, encrypted or not.

mod age;
mod cipher;
mod document;
mod error;
mod format;
mod metadata;
mod pgp;
mod read;
mod report;
pub mod service;
mod shamir;
mod tree;
mod write;

pub use age::AgeIdentities;
pub use document::{Document, KeyService, Mac};
pub use error::Error;
pub use format::Format;
pub use metadata::{MasterKey, Metadata};
pub use pgp::PgpKeys;
