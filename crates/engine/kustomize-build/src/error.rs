//! Errors of a build. Their text is that of kustomize-controller.

use std::path::PathBuf;

use serde_json::Value;

use crate::substitute::SubstituteError;

/// Why a Kustomization cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The kustomization.yaml cannot be generated.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// A file that a generator or patch refers to cannot be decrypted.
    #[error("error decrypting sources: {0}")]
    DecryptSource(#[from] SourceDecryptError),
    /// `kustomize build` failed.
    #[error(transparent)]
    Kustomize(#[from] KustomizeError),
    /// An object without apiVersion, kind or name, as JSON.
    #[error("failed to decode Kubernetes apiVersion, kind and name from: {0}")]
    Unnamed(String),
    /// An object cannot be decrypted.
    #[error("decryption failed for '{subject}': {source}")]
    Decrypt {
        /// `Kind.version.group/name`
        subject: String,
        /// Why.
        source: ObjectDecryptError,
    },
    /// The variables of an object cannot be substituted.
    #[error("post build failed for '{subject}': {source}")]
    Substitute {
        /// `Kind.version.group/name`
        subject: String,
        /// The name of the object.
        name: String,
        /// Why.
        source: SubstituteError,
    },
    /// An object cannot be encoded.
    #[error("kustomize build failed: {0}")]
    Encode(String),
}

/// Why there is no kustomization.yaml to build.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// The path of the Kustomization is a file.
    #[error("open {0}: not a directory")]
    NotADirectory(String),
    /// A file cannot be read.
    #[error(transparent)]
    Read(#[from] std::io::Error),
    /// The kustomization.yaml is not YAML.
    #[error("error converting YAML to JSON: {}:{}:{}: {}", path.display(), error.line, error.column, error.message)]
    Yaml {
        /// The file.
        path: PathBuf,
        /// Where and what.
        error: fl_yaml::Error,
    },
    /// The kustomization.yaml is YAML of another type.
    #[error("error unmarshaling JSON: {}: a kustomization must be a map", path.display())]
    NotAMap {
        /// The file.
        path: PathBuf,
        /// What it holds.
        found: Value,
    },
    /// A component of the spec that is not a relative path.
    #[error("component path '{0}' must be local and relative")]
    RemoteComponent(String),
    /// The caller's [`crate::EntryFilter`] rejected an entry.
    #[error("{0}")]
    Entry(String),
}

/// Why a file cannot be decrypted.
#[derive(Debug, thiserror::Error)]
pub enum SourceDecryptError {
    /// A kustomization.yaml on the way cannot be read.
    #[error(transparent)]
    Kustomization(#[from] GenerateError),
    /// The file is larger than the limit.
    #[error("cannot decrypt file with size ({size} bytes) exceeding limit ({limit})")]
    TooLarge {
        /// Its size.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// It cannot be decrypted with the given keys.
    #[error(transparent)]
    Sops(#[from] fl_sops::Error),
}

/// Why an object cannot be decrypted.
#[derive(Debug, thiserror::Error)]
pub enum ObjectDecryptError {
    /// The object is encrypted as a whole.
    #[error("failed to decrypt and format '{namespace}/{name}' {kind} data: {source}")]
    Object {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Its kind.
        kind: String,
        /// Why.
        source: fl_sops::Error,
    },
    /// One value of a Secret is encrypted.
    #[error("failed to decrypt and format '{namespace}/{name}' Secret field '{key}': {source}")]
    Field {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// The key of the value.
        key: String,
        /// Why.
        source: fl_sops::Error,
    },
    /// The object cannot be encoded for SOPS.
    #[error(transparent)]
    Encode(#[from] fl_yaml::Error),
    /// The result is not UTF-8.
    #[error("the decrypted object is not text")]
    NotText,
    /// The result is not JSON.
    #[error("the decrypted object is not JSON")]
    NotJson,
}

/// Why `kustomize build` failed.
#[derive(Debug)]
pub struct KustomizeError {
    /// kustomize's error.
    pub error: fl_kustomize::Error,
    /// Flux's message, where it is another one: Flux reads every manifest of a directory without kustomization.yaml before
    /// it builds.
    pub(crate) message: Option<String>,
}

impl std::fmt::Display for KustomizeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.message {
            Some(message) => f.write_str(message),
            None => write!(f, "kustomize build failed: {}", self.error),
        }
    }
}

impl std::error::Error for KustomizeError {}
