//! Errors of reading and writing releases.

/// Error of reading a stored release.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The object has no `release` key.
    #[error("has no `release` key")]
    Missing,
    /// The text is not base64.
    #[error("is not base64: {0}")]
    Base64(#[source] base64::DecodeError),
    /// Invalid gzip data.
    #[error("is not whole gzip data: {0}")]
    Gzip(#[source] std::io::Error),
    /// The release exceeds the limit when unpacked.
    #[error("unpacks to more than {limit} bytes")]
    TooLarge {
        /// Limit in bytes.
        limit: u64,
    },
    /// Invalid JSON, or JSON of another type.
    #[error("is not a release: {0}")]
    Json(#[source] serde_json::Error),
    /// A part that every release has is missing.
    #[error("is not a release: it has no {0}")]
    Incomplete(&'static str),
}

/// Error of writing a release.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// A value that JSON cannot represent.
    #[error("cannot encode release {name}: {source}")]
    Json {
        /// Release name.
        name: String,
        /// Cause.
        #[source]
        source: serde_json::Error,
    },
    /// The release is larger than a Secret can be.
    #[error(
        "the record of release {name} has {bytes} bytes, a Secret holds at most {limit}: \
         leave files out of the chart with .helmignore or split it (largest file: {largest})"
    )]
    TooLarge {
        /// Release name.
        name: String,
        /// Size as stored.
        bytes: usize,
        /// Limit in bytes.
        limit: usize,
        /// The largest file of the chart.
        largest: String,
    },
}
