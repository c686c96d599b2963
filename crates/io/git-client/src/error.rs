//! Errors with Flux's messages. Addresses are shown without user and password.

use crate::{KeyError, KnownHostsError, SnapshotError, SubmoduleError};

/// Why a repository could not be read. The texts are what follows `failed to checkout and determine revision: `.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("unable to clone '{url}': {failure}")]
    Clone { url: String, failure: Failure },
    #[error("unable to list remote for '{url}': {failure}")]
    List { url: String, failure: Failure },
    #[error("unable to clone: {failure}: git repository: '{url}'")]
    NoRepository { url: String, failure: Failure },
    #[error("unable to resolve ref '{0}' to a specific commit")]
    NoSuchRef(String),
    #[error("ref {0} is invalid; Git refs cannot begin or end with a slash '/'")]
    RefSlash(String),
    #[error("unable to resolve commit object for '{0}': object not found")]
    NoCommit(String),
    #[error("no match found for semver: {0}")]
    NoVersion(String),
    #[error("semver parse error: {0}")]
    Range(String),
    #[error("cannot parse url: {0}")]
    Address(String),
    #[error("unable to construct auth method with options: {0}")]
    Auth(CredentialsError),
    #[error("unable to read the tree of '{commit}': {problem}")]
    Tree { commit: String, problem: SnapshotError },
    #[error("unable to fetch submodule '{path}': {problem}")]
    Submodule { path: String, problem: SubmoduleError },
}

/// A key or a list of host keys that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CredentialsError {
    #[error("{0}")]
    Key(#[from] KeyError),
    #[error("{0}")]
    KnownHosts(#[from] KnownHostsError),
}

/// Why the server gave no usable answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// HTTP 401, with the answer's body.
    #[error("authentication required: {0}")]
    AuthenticationRequired(String),
    /// HTTP 403.
    #[error("authorization failed: {0}")]
    AuthorizationFailed(String),
    /// HTTP 404.
    #[error("repository not found: {0}")]
    NotFound(String),
    /// The same over SSH, where the server's own text is not shown.
    #[error("repository not found")]
    NoSuchRepository,
    #[error("unexpected requesting \"{url}\" status code: {code}")]
    Status { url: String, code: u16 },
    #[error("remote repository is empty")]
    Empty,
    #[error("couldn't find remote ref \"{0}\"")]
    NoRef(String),
    #[error("context deadline exceeded")]
    Deadline,
    #[error("{0}")]
    Http(#[from] fl_http::Error),
    #[error("dial tcp{0}")]
    Dial(String),
    /// A repository on this machine.
    #[error("{0}")]
    Disk(String),
    #[error("ssh: {0}")]
    Ssh(String),
    /// Reported as [`Error::Auth`].
    #[error("{0}")]
    Credentials(#[from] CredentialsError),
    #[error("{}", with_cause(.0))]
    Git(#[from] fl_git::Error),
    #[error("cannot write the pack: {0}")]
    Spool(String),
    /// The fetch waited for room until its deadline.
    #[error("{0}")]
    Budget(#[from] fl_http::BudgetError),
}

fn with_cause(error: &fl_git::Error) -> String {
    match error {
        fl_git::Error::Io(cause) => cause.to_string(),
        other => other.to_string(),
    }
}

impl Failure {
    /// Whether the server does not have an object that was requested by its id.
    pub(crate) fn is_no_such_object(&self) -> bool {
        matches!(self, Failure::Git(fl_git::Error::Remote(text))
            if text.contains("not our ref") || text.contains("not valid") || text.contains("unadvertised"))
    }
}
