//! Git over HTTP and SSH.
//!
//! A [`Remote`] answers two questions in two steps, because most passes need only the first:
//!
//! 1. [`Remote::resolve`]: which commit does a [`Reference`] stand for? One listing; a commit that is unchanged ends here.
//! 2. [`Remote::fetch`]: the tree of that commit, as shallow as the server can give it, in a pack that lives in an unnamed file.
//!    A [`Snapshot`] walks it in the order an archive needs. Nothing is ever checked out.
//!
//! A repository on this machine is read from its own files: [`DiskRepository`].
//!
//! Errors read as the messages Flux users know (`unable to clone '<url>': …`); credentials never appear in them.

mod address;
mod auth;
mod disk;
mod error;
mod github;
mod http;
mod known_hosts;
mod reference;
mod remote;
mod resolve;
mod session;
mod snapshot;
mod ssh;
mod ssh_algorithms;
mod submodules;
mod tunnel;

pub use address::{Address, Scheme};
pub use auth::{Auth, AuthError};
pub use disk::{DiskEntry, DiskError, DiskRepository, Head, Objects};
pub use error::{Error, Failure};
pub use github::{GithubApp, GithubAppError};
pub use known_hosts::KnownHosts;
pub use reference::{Reference, Resolved};
pub use remote::{Branches, Checkout, Commit, FetchOptions, Remote, RemoteOptions, Tag};
pub use snapshot::{Entry, Kind, Snapshot};
pub use ssh_algorithms::{SshAlgorithmError, SshAlgorithms};
