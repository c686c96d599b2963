//! What can go wrong between wanted objects and a cluster that has them.

use fl_client::ApiError;

/// A step of an apply, a prune or a wait that gave no result.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The API server refused or did not answer.
    #[error(transparent)]
    Client(#[from] fl_client::Error),
    /// An object without what every object has.
    #[error("an object without {missing} cannot be applied")]
    Incomplete {
        /// The missing field.
        missing: &'static str,
    },
    /// Managed fields that cannot be read.
    #[error("unable to merge managed fields: {0}")]
    ManagedFields(String),
    /// An ignore rule that does not fit the object.
    #[error("cannot apply ignore rule: {0}")]
    Ignore(String),
    /// A wait that took too long.
    #[error("{0}")]
    Timeout(String),
}

impl From<ApiError> for Error {
    fn from(error: ApiError) -> Self {
        Error::Client(error.into())
    }
}

impl Error {
    /// The refusal behind the error.
    #[must_use]
    pub fn api(&self) -> Option<&ApiError> {
        self.client().and_then(fl_client::Error::api)
    }

    /// The failed request behind the error.
    #[must_use]
    pub fn client(&self) -> Option<&fl_client::Error> {
        match self {
            Error::Client(error) => Some(error),
            _ => None,
        }
    }

    /// Whether the object (or its namespace) does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.api().is_some_and(ApiError::is_not_found)
    }

    /// Whether the server does not serve the kind.
    #[must_use]
    pub fn is_no_kind(&self) -> bool {
        matches!(self, Error::Client(fl_client::Error::NoKind { .. }))
    }

    /// Whether trying again may help.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        self.client().is_some_and(fl_client::Error::is_transient)
    }
}
