//! Errors. No message contains a value of a file.

use fl_cloud::CloudError;

/// Error of decrypting a file. Never contains a value of the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file does not have its format.
    #[error("failed to load encrypted {format} data: {problem}")]
    Load {
        /// The format.
        format: &'static str,
        /// Position and cause.
        problem: LoadError,
    },
    /// The file has no `sops` metadata.
    #[error("failed to load encrypted {format} data: sops metadata not found")]
    NoMetadata {
        /// The format.
        format: &'static str,
    },
    /// No key can decrypt the data key.
    #[error("cannot get sops data key: {0}")]
    DataKey(String),
    /// A value does not match the metadata. The path is not part of the message, which is that of SOPS.
    #[error("error decrypting sops tree: Error walking tree: Could not decrypt value: {problem}")]
    Value {
        /// Path of keys.
        path: String,
        /// Cause.
        problem: ValueError,
    },
    /// The file was changed after it was encrypted.
    #[error("failed to verify sops data integrity: the MAC does not match")]
    Mac,
    /// The plain file cannot be written in that format.
    #[error("failed to emit encrypted {input} file as decrypted {output}: {problem}")]
    Emit {
        /// Format of the encrypted file.
        input: &'static str,
        /// Format of the plain file.
        output: &'static str,
        /// Cause.
        problem: &'static str,
    },
    /// A key cannot be parsed.
    #[error("{0}")]
    Key(&'static str),
}

/// Error of parsing an encrypted file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// Invalid YAML.
    #[error("line {0}: not YAML")]
    Yaml(u32),
    /// Invalid JSON.
    #[error("line {0}: not JSON")]
    Json(u32),
    /// Invalid UTF-8.
    #[error("it is not text")]
    NotText,
    /// A line of a dotenv file without `=`.
    #[error("invalid dotenv input line {0}")]
    Dotenv(usize),
    /// A line of an INI file without `=`.
    #[error("line {0}: not a pair")]
    Ini(usize),
    /// A quoted value of an INI file that is not closed.
    #[error("line {0}: an open quote")]
    IniQuote(usize),
    /// An unsupported rule in the metadata.
    #[error("{0} is not supported")]
    UnsupportedRule(&'static str),
    /// An invalid regular expression in the metadata.
    #[error("{0} is no regular expression")]
    Regex(&'static str),
    /// More than one rule in the metadata.
    #[error("more than one rule says which values are encrypted")]
    SeveralRules,
    /// The metadata has no keys.
    #[error("No keys found in file")]
    NoKeys,
    /// The threshold of key groups is invalid.
    #[error("shamir_threshold is no number")]
    Threshold,
    /// The time of the last modification is invalid.
    #[error("parsing time {0:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse {0:?} as \"2006\"")]
    LastModified(String),
}

/// Error of decrypting one value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// The value should be encrypted and is not.
    #[error("an encrypted value was expected")]
    NotEncrypted,
    /// The value does not have the format of SOPS. It is not shown, since it may be a plain value.
    #[error("Input string <redacted> does not match sops' data format")]
    Format,
    /// A part of the value is not base64.
    #[error("the value is not base64")]
    Base64,
    /// The data key is not 32 bytes long.
    #[error("the data key has the wrong length")]
    KeyLength,
    /// The nonce has an unsupported length.
    #[error("the value has an unusual nonce")]
    Nonce,
    /// A wrong key, or the value was changed or moved.
    #[error("Could not decrypt with AES_GCM: cipher: message authentication failed")]
    Authentication,
    /// The decrypted value does not have its type.
    #[error("the value is {0}")]
    Type(&'static str),
    /// An unknown type.
    #[error("Unknown datatype: {0}")]
    UnknownType(String),
}

/// Error of decrypting a data key with one master key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// There are no age identities.
    #[error("no age identity is configured")]
    NoAgeIdentity,
    /// The age file cannot be decrypted.
    #[error("failed to create reader for decrypting sops data key with age: {0}")]
    Age(AgeError),
    /// The OpenPGP message cannot be decrypted.
    #[error("{0}")]
    Pgp(&'static str),
    /// There is no Vault token.
    #[error("no Vault token is configured")]
    NoVaultToken,
    /// The decryption Secret has no entry for the service.
    #[error(
        "no credentials: the decryption Secret has no entry '{0}', and identities of the machine are not supported"
    )]
    NoCredentials(&'static str),
    /// Huawei's KMS.
    #[error("keys of Huawei's KMS are not supported by this engine")]
    Huawei,
    /// The reference to the key in the file is invalid.
    #[error("{0} is not valid")]
    InvalidReference(&'static str),
    /// The role cannot be assumed.
    #[error("the role '{role}' cannot be taken on: AWS STS answered with status {status}")]
    AssumeRole {
        /// ARN of the role.
        role: String,
        /// HTTP status.
        status: u16,
    },
    /// The response of AWS STS is incomplete.
    #[error("the answer of AWS STS holds no credentials")]
    NoRoleCredentials,
    /// The response has no data key.
    #[error("the answer of {0} holds no key")]
    NoKey(&'static str),
    /// A request could not be signed, or failed.
    #[error(transparent)]
    Cloud(#[from] CloudError),
    /// There was no response.
    #[error(transparent)]
    Network(#[from] NetworkError),
}

/// Error of decrypting an age file; the messages are those of age.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AgeError {
    /// The armor is invalid.
    #[error("the age file cannot be read")]
    Armor,
    /// The file is not an age file.
    #[error("failed to read header: parsing age header: unexpected intro: {0:?}")]
    Intro(String),
    /// The header is invalid.
    #[error("failed to read header: it is none of age")]
    Header,
    /// The MAC of the header is wrong.
    #[error("the header of the age file was changed")]
    HeaderMac,
    /// The payload cannot be decrypted.
    #[error("the age file cannot be decrypted")]
    Payload,
    /// The only identity is not a recipient.
    #[error("identity did not match any of the recipients: incorrect identity for recipient block")]
    WrongIdentity,
    /// No identity is a recipient.
    #[error("no identity matched any of the recipients")]
    NoIdentity,
}

/// A request without a response. The message contains nothing of the request except its address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NetworkError(pub String);
