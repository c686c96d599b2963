//! Remote bases of kustomizations: repositories and files that are fetched for one build.
//!
//! [`RemoteBases`] is the `Fetcher` of the kustomize engine. Each address is requested once in a build; repositories come without
//! their history into a folder that vanishes with the build. Links are left out: a base has no business outside of itself, and
//! the engine keeps what it names inside its checkout. [`FilesWithBases`] adds that directory to the build's own files.
//!
//! A build has budgets ([`Limits`]): bytes, addresses, time. Where connections may go is for an address policy to say; in a cluster
//! the engine's own machine and the metadata of clouds are not for whoever writes a kustomization.

mod checkout;
mod error;
mod fetcher;
mod files;

pub use fetcher::{Limits, RemoteBases};
pub use files::FilesWithBases;
