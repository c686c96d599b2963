//! What can be wrong with a record.

/// Why a record could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The object has no `release` key.
    #[error("has no `release` key")]
    Missing,
    /// The text is not base64.
    #[error("is not base64: {0}")]
    Base64(#[source] base64::DecodeError),
    /// The bytes begin like gzip and go on differently.
    #[error("is not whole gzip data: {0}")]
    Gzip(#[source] std::io::Error),
    /// The record unpacks to more than any real one.
    #[error("unpacks to more than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// The JSON is broken or of another shape.
    #[error("is not a release: {0}")]
    Json(#[source] serde_json::Error),
    /// A record without the parts every release has.
    #[error("is not a release: it has no {0}")]
    Incomplete(&'static str),
}

/// Why a release could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// A value JSON cannot hold.
    #[error("cannot encode release {name}: {source}")]
    Json {
        /// The release.
        name: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// More than an object in the cluster can hold.
    #[error(
        "the record of release {name} has {bytes} bytes, a Secret holds at most {limit}: \
         leave files out of the chart with .helmignore or split it (largest file: {largest})"
    )]
    TooLarge {
        /// The release.
        name: String,
        /// The size of the record as stored.
        bytes: usize,
        /// What fits.
        limit: usize,
        /// The file that takes most of it.
        largest: String,
    },
}
