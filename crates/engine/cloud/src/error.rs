//! Errors. No message contains a part of a credential.

/// Error of parsing credentials.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CredentialsError(pub &'static str);

/// Error of signing a request or of reading a response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CloudError {
    /// The key has an unusable form.
    #[error("{0} cannot sign")]
    CannotSign(&'static str),
    /// A credential of the engine must not be sent to this address.
    #[error(
        "{credential} of the engine is not sent to {address}: it is for addresses that the engine's operator configured; name a Secret with credentials of your own"
    )]
    Destination {
        /// The credential.
        credential: String,
        /// Origin of the address.
        address: String,
    },
    /// The service responded with an error.
    #[error("{service} answered with status {status}{}", .word.as_ref().map(|w| format!(" ({w})")).unwrap_or_default())]
    Status {
        /// The service.
        service: String,
        /// HTTP status.
        status: u16,
        /// Type of the error in one word.
        word: Option<String>,
    },
    /// The response is not JSON.
    #[error("the answer of {0} is not JSON")]
    NotJson(String),
    /// The response of a token service has no token.
    #[error("the answer of {0} holds no token")]
    NoToken(String),
}
