//! The artifact store.
//!
//! What a source fetched becomes one file below `<kind>/<namespace>/<name>/`, known by its digest. A file appears whole or not at
//! all: it is written beside its place and renamed. The previous artifact stays where it is until the next one is published and
//! its time is over, so consumers never find nothing.
//!
//! Files are served with Flux's paths over plain HTTP ([`serve`]); consumers in the same process read them from disk.

mod digest;
mod directory_index;
mod error;
mod path;
mod range;
mod retention;
mod server;
mod storage;

pub use digest::DigestWriter;
pub use error::Error;
pub use path::Location;
pub use retention::Retention;
pub use server::{Hosts, serve};
pub use storage::{Artifact, Check, Store, StoreOptions, TarGz};
