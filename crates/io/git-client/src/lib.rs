//! Git over HTTP and SSH.
//!
//! A [`Remote`] answers two questions in two steps, because most reconciles need only the first:
//!
//! 1. [`Remote::resolve`]: which commit does a [`Reference`] stand for? One listing; a commit that is unchanged ends here.
//! 2. [`Remote::fetch`]: the tree of that commit, as shallow as the server can give it, in a pack that lives in an unnamed file.
//!    A [`Snapshot`] walks it in the order an archive needs. Nothing is ever checked out.
//!
//! A repository on this machine is read from its own files: [`DiskRepository`].
//!
//! Errors have Flux's messages (`unable to clone '<url>': …`); credentials never appear in them.

mod address;
mod auth;
mod commit_tree;
mod error;
mod github;
mod http;
mod known_hosts;
mod local;
mod proxy;
mod reference;
mod remote;
mod resolve;
mod ssh;
mod ssh_algorithms;
mod ssh_stream;
mod submodules;
mod transport;

pub use address::{Address, Scheme};
pub use auth::{Auth, AuthError};
pub use commit_tree::{Entry, Kind, Snapshot, SnapshotError};
pub use error::{CredentialsError, Error, Failure};
pub use github::{GithubApp, GithubAppError};
pub use known_hosts::{KnownHosts, KnownHostsError, LineError};
pub use local::{DiskEntry, DiskError, DiskRepository, Head, Objects};
pub use reference::{Reference, Resolved};
pub use remote::{Branches, Checkout, Commit, FetchOptions, Remote, RemoteOptions, Tag};
pub use ssh::KeyError;
pub use ssh_algorithms::{SshAlgorithmError, SshAlgorithms};
pub use submodules::SubmoduleError;
