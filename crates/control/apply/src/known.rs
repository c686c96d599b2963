//! A read that may have failed.

use crate::Error;

/// What a read gave: an answer, or nothing that may be acted upon.
#[derive(Debug)]
pub enum Known<T> {
    /// The cluster answered.
    Known(T),
    /// It did not: neither presence nor absence follows.
    Unknown(Error),
}

impl<T> Known<T> {
    /// The answer, when there is one.
    #[must_use]
    pub fn known(self) -> Option<T> {
        match self {
            Known::Known(value) => Some(value),
            Known::Unknown(_) => None,
        }
    }
}

impl<T> From<Result<T, Error>> for Known<T> {
    fn from(result: Result<T, Error>) -> Self {
        match result {
            Ok(value) => Known::Known(value),
            Err(error) => Known::Unknown(error),
        }
    }
}
