//! What can be wrong with bytes that claim to be Git.

/// Errors of parsing and reading.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("cannot read")]
    Io(#[from] std::io::Error),
    #[error("malformed packet line: {0}")]
    PacketLine(String),
    #[error("unexpected answer of the server: {0}")]
    Protocol(String),
    #[error("remote: {0}")]
    Remote(String),
    #[error("corrupt pack at byte {offset}: {problem}")]
    Pack { offset: u64, problem: String },
    #[error("{what} is larger than the limit of {limit} bytes")]
    TooLarge { what: String, limit: u64 },
    #[error("object {0} not found")]
    NotFound(crate::ObjectId),
    #[error("object {id} is a {found}, not a {wanted}")]
    WrongKind { id: crate::ObjectId, found: crate::ObjectKind, wanted: crate::ObjectKind },
    #[error("malformed {kind} object: {problem}")]
    Object { kind: crate::ObjectKind, problem: String },
    #[error("`{0}` is not an object id")]
    Id(String),
    #[error("`{0}` is not a valid reference name")]
    RefName(String),
    #[error("the object has a SHA-1 that an attacker prepared to collide; it is refused")]
    Collision,
}

impl Error {
    pub(crate) fn pack(offset: u64, problem: impl Into<String>) -> Self {
        Error::Pack { offset, problem: problem.into() }
    }
}
