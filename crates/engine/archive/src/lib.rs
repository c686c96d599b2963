//! Deterministic archives of source trees.
//!
//! [`TarWriter`] writes the same bytes as Flux's source-controller for the same tree: owner, times and user
//! names are blank, modes are one of three, the format is USTAR and becomes PAX only for an entry whose name
//! or size needs it. The caller decides which files are archived and in which order, and wraps the writer for
//! compression and hashing.
//!
//! [`read_tar`] and [`read_tar_gz`] read archives of others: within limits, with names that stay below the
//! root, and with the same list of files as Flux.

mod gzip;
mod header;
mod parse;
mod reader;
mod tree;
mod writer;

pub use gzip::read_tar_gz;
pub use header::Mode;
pub use reader::{Entry, EntryKind, ReadError, ReadLimits, read_tar};
pub use tree::{Tree, TreeBuilder};
pub use writer::{Error, TarWriter};
