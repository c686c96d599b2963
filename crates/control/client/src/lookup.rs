//! The result of a read that may have failed.

use crate::Error;

/// Whether an object exists. A failed read is *unknown*, never *not found*: nothing may be deleted because of
/// it.
#[derive(Clone, Debug)]
pub enum Lookup<T, E = Error> {
    /// The object exists.
    Found(T),
    /// The API server answered that it does not exist.
    NotFound,
    /// The read failed.
    Unknown(E),
}

impl<T, E> Lookup<T, E> {
    /// The value, or none if it does not exist.
    ///
    /// # Errors
    /// The reason why neither is known.
    pub fn known(self) -> Result<Option<T>, E> {
        match self {
            Lookup::Found(value) => Ok(Some(value)),
            Lookup::NotFound => Ok(None),
            Lookup::Unknown(error) => Err(error),
        }
    }
}

impl<T> From<Result<T, Error>> for Lookup<T> {
    fn from(result: Result<T, Error>) -> Self {
        match result {
            Ok(value) => Lookup::Found(value),
            Err(error) if error.is_not_found() => Lookup::NotFound,
            Err(error) => Lookup::Unknown(error),
        }
    }
}
