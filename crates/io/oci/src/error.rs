//! Errors with the messages of Flux's registry client: `GET https://…: CODE: message`.

/// Why a registry gave no usable response.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("{0}")]
    Http(#[from] fl_http::Error),
    /// A response that is not a success, with the registry's own message.
    #[error("{method} {url}: {text}")]
    Refused { method: String, url: String, status: u16, text: String },
    #[error("{0}")]
    Name(#[from] crate::NameError),
    #[error("{url}: {problem}")]
    Malformed { url: String, problem: String },
    #[error("no child with platform {platform} in index {reference}")]
    NoPlatform { platform: String, reference: String },
    #[error("manifest digest: \"{found}\" does not match requested digest: \"{wanted}\" for \"{reference}\"")]
    WrongDigest { found: String, wanted: String, reference: String },
    #[error("{what} of {url} is over the limit of {limit}")]
    TooLarge { what: &'static str, url: String, limit: u64 },
    #[error("no layers found in artifact")]
    NoLayers,
    #[error("failed to find layer with media type '{0}' in artifact")]
    NoSuchLayer(String),
    #[error("no match found for semver: {0}")]
    NoVersion(String),
    #[error("semver '{range}' parse error: {problem}")]
    Range { range: String, problem: String },
    #[error(transparent)]
    Filter(#[from] fl_go::regexp::PatternError),
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

impl Error {
    /// Whether the registry does not have what was requested.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Error::Refused { status: 404, .. })
    }

    /// Whether the registry refused the credentials, or their absence.
    pub fn is_unauthorized(&self) -> bool {
        matches!(self, Error::Refused { status: 401 | 403, .. })
    }
}
