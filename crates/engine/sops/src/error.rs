//! What can be wrong with an encrypted file.

/// A refusal. Never holds a value of the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Not of its format.
    #[error("failed to load encrypted {format} data: {problem}")]
    Load {
        /// The format.
        format: &'static str,
        /// Where and what.
        problem: String,
    },
    /// No `sops` part.
    #[error("failed to load encrypted {format} data: sops metadata not found")]
    NoMetadata {
        /// The format.
        format: &'static str,
    },
    /// Nobody could open the data key.
    #[error("cannot get sops data key: {0}")]
    DataKey(String),
    /// A value that is not what the metadata says. Where it is stands beside the text, which is that of SOPS.
    #[error("error decrypting sops tree: Error walking tree: Could not decrypt value: {problem}")]
    Value {
        /// The keys that lead to it.
        path: String,
        /// What is wrong.
        problem: String,
    },
    /// The file was changed after it was encrypted.
    #[error("failed to verify sops data integrity: the MAC does not match")]
    Mac,
    /// The plain file cannot have that format.
    #[error("failed to emit encrypted {input} file as decrypted {output}: {problem}")]
    Emit {
        /// The format it had.
        input: &'static str,
        /// The format it should have.
        output: &'static str,
        /// Why.
        problem: &'static str,
    },
    /// A key that cannot be read.
    #[error("{0}")]
    Key(&'static str),
}
