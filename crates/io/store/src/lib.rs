//! The artifact store.
//!
//! What a source fetched becomes one file below `<kind>/<namespace>/<name>/`, known by its digest. A file appears whole or not at
//! all: it is written beside its place and renamed. The previous artifact stays where it is until the next one is published and
//! its time is over, so consumers never find nothing.
//!
//! Files are served with Flux's paths over plain HTTP ([`serve`]); consumers in the same process read them from disk.

mod digest;
mod error;
mod listing;
mod location;
mod publish;
mod range;
mod retention;
mod server;

pub use digest::DigestWriter;
pub use error::Error;
pub use location::Location;
pub use publish::{Artifact, Check, Store, StoreOptions, TarGz};
pub use retention::Retention;
pub use server::{Hosts, serve};
