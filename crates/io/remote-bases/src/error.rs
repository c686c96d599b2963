//! Why a base cannot be fetched.

use std::io;
use std::time::Duration;

/// Errors of one file or repository. The kustomize engine shows them as text.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BaseError {
    #[error("there is no folder for it: {0}")]
    Folder(#[source] io::Error),
    #[error("there is no folder for it")]
    NoFolder,
    #[error("nothing can be fetched here")]
    NoRuntime,
    #[error("the build fetches from more than {0} addresses")]
    TooManyAddresses(usize),
    #[error("the build has fetched for {0:?} already")]
    TooLong(Duration),
    #[error("{0}")]
    Http(#[from] fl_http::Error),
    #[error("the server answered {0}")]
    Status(fl_http::StatusCode),
    #[error("repositories of this machine are not fetched; name the directory")]
    LocalRepository,
    #[error("it is reached over SSH, for which bases have no key; use its address with https")]
    Ssh,
    #[error("{0}")]
    Git(#[from] fl_git_client::Error),
    #[error("{0}")]
    Auth(#[from] fl_git_client::AuthError),
    #[error("it took longer than {0:?}")]
    Timeout(Duration),
    #[error("the repository is empty")]
    Empty,
    #[error("it has {0} files, more than a build may fetch")]
    TooManyFiles(usize),
    #[error("it has a file named {0:?}")]
    Name(String),
    #[error("{0}")]
    Object(#[from] fl_git::Error),
    #[error("it has more than the {0} bytes that a build may fetch")]
    TooLarge(u64),
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Budget(#[from] fl_http::BudgetError),
}
