//! Deterministic archives of source trees.
//!
//! The same tree gives the same tar bytes as Flux's source-controller: owner, times and names of users are blank, modes are one of
//! three, the format is USTAR and turns to PAX only for an entry whose name or size needs it. What is archived and in which order is
//! the caller's decision; compression and hashing are wrapped around the writer.
//!
//! [`read_tar`] and [`read_tar_gz`] are the other direction, for archives of others: within limits, with names that cannot lead
//! out, and the same list of files as Flux reads.

mod gzip;
mod header;
mod listing;
mod parse;
mod reader;
mod writer;

pub use gzip::read_tar_gz;
pub use header::Mode;
pub use listing::{Listing, Tree};
pub use reader::{Entry, EntryKind, ReadError, ReadLimits, read_tar};
pub use writer::{Error, TarWriter};
