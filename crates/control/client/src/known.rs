//! A read that may have failed.

use crate::Error;

/// The answer to "does it exist?". A failed read is *unknown*, never *absent*: nothing may be deleted because of it.
#[derive(Clone, Debug)]
pub enum Known<T, E = Error> {
    /// The server answered with it.
    Present(T),
    /// The server answered that it does not exist.
    Absent,
    /// There is no answer to rely on.
    Unknown(E),
}

impl<T, E> Known<T, E> {
    /// The value, or none if it does not exist.
    ///
    /// # Errors
    /// The reason why neither is known.
    pub fn known(self) -> Result<Option<T>, E> {
        match self {
            Known::Present(value) => Ok(Some(value)),
            Known::Absent => Ok(None),
            Known::Unknown(error) => Err(error),
        }
    }
}

impl<T> From<Result<T, Error>> for Known<T> {
    fn from(result: Result<T, Error>) -> Self {
        match result {
            Ok(value) => Known::Present(value),
            Err(error) if error.is_not_found() => Known::Absent,
            Err(error) => Known::Unknown(error),
        }
    }
}
