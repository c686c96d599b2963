//! Errors of a build, with their location.

use std::fmt;

/// An error of a [`Fetcher`](crate::Fetcher) or of [`Charts`](crate::Charts), which callers of the engine
/// implement.
pub type HostError = Box<dyn std::error::Error + Send + Sync>;

/// An object of the output cannot be printed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot write {kind}/{name}: {error}")]
pub struct PrintError {
    /// The kind of the object.
    pub kind: String,
    /// The name of the object.
    pub name: String,
    /// Why.
    pub error: fl_yaml::Error,
}

/// A location in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The path of the file.
    pub file: String,
    /// Line from 1; 0 for the whole file.
    pub line: u32,
    /// Column from 1; 0 for the whole line.
    pub column: u32,
}

impl Place {
    /// A whole file.
    #[must_use]
    pub fn file(file: impl Into<String>) -> Self {
        Self { file: file.into(), line: 0, column: 0 }
    }

    /// A position in the same file.
    #[must_use]
    pub fn at(&self, (line, column): (u32, u32)) -> Self {
        Self { file: self.file.clone(), line, column }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
            if self.column > 0 {
                write!(f, ":{}", self.column)?;
            }
        }
        Ok(())
    }
}

/// An error of a build, with its location and the kustomizations that led there.
#[derive(Debug)]
pub struct Error {
    /// The file and line: of a kustomization, or of a file it refers to.
    pub place: Place,
    /// The kustomizations that led there, innermost first.
    pub via: Vec<Place>,
    /// The error.
    pub kind: Box<ErrorKind>,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.kind)?;
        for (i, place) in self.via.iter().enumerate() {
            f.write_str(if i == 0 { " (reached through " } else { ", " })?;
            write!(f, "{place}")?;
        }
        if !self.via.is_empty() {
            f.write_str(")")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&*self.kind)
    }
}

impl Error {
    /// An error with its location.
    pub(crate) fn new(place: Place, kind: impl Into<ErrorKind>) -> Self {
        Self { place, via: Vec::new(), kind: Box::new(kind.into()) }
    }

    /// Adds a parent kustomization.
    pub(crate) fn through(mut self, place: Place) -> Self {
        if self.place != place && self.via.last() != Some(&place) {
            self.via.push(place);
        }
        self
    }
}

/// The kinds of errors.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A file cannot be read.
    #[error("cannot read `{path}`: {reason}")]
    Read {
        /// The path as written.
        path: String,
        /// Why.
        reason: String,
    },
    /// A file outside the root of its kustomization.
    #[error(
        "security: file `{path}` is not in or below `{root}`; --load-restrictor LoadRestrictionsNone allows it"
    )]
    Restricted {
        /// The file after resolving links.
        path: String,
        /// The directory of the kustomization.
        root: String,
    },
    /// A path outside of the boundary of the build.
    #[error("security: `{path}` is outside of `{boundary}`, which a build may not leave")]
    Boundary {
        /// The path after resolving links.
        path: String,
        /// The outermost directory.
        boundary: String,
    },
    /// A directory without kustomization.
    #[error(
        "unable to find one of 'kustomization.yaml', 'kustomization.yml' or 'Kustomization' in directory `{0}`"
    )]
    NoKustomization(String),
    /// More than one kustomization file.
    #[error("found multiple kustomization files in `{0}`: keep one")]
    ManyKustomizations(String),
    /// Invalid YAML.
    #[error("malformed YAML: {0}")]
    Yaml(String),
    /// An invalid kustomization or plugin configuration.
    #[error("invalid {what}: {reason}")]
    Invalid {
        /// Kustomization, or the kind of the plugin.
        what: String,
        /// Why.
        reason: String,
    },
    /// An unknown field.
    #[error("invalid {what}: unknown field \"{field}\"")]
    UnknownField {
        /// Kustomization, or a part of it.
        what: String,
        /// The field.
        field: String,
    },
    /// A cycle of kustomizations.
    #[error("cycle detected: candidate root `{candidate}` contains visited root `{visited}` ({chain})")]
    Cycle {
        /// The directory that would be visited again.
        candidate: String,
        /// The directory that is being built.
        visited: String,
        /// The path from one to the other.
        chain: String,
    },
    /// Kustomizations are nested too deeply.
    #[error("kustomizations are nested more than {0} deep")]
    Depth(usize),
    /// An entry that is neither a file nor a kustomization.
    #[error("`{path}` is neither a resource file nor a kustomization directory: {file}; {directory}")]
    Entry {
        /// The entry as written.
        path: String,
        /// Why it is not a file of resources.
        file: String,
        /// Why it is not a kustomization.
        directory: String,
    },
    /// Remote content without a fetcher.
    #[error("remote content is switched off: `{0}` would be fetched")]
    RemoteOff(String),
    /// Remote content cannot be fetched.
    #[error("cannot fetch `{url}`: {reason}")]
    Fetch {
        /// The URL.
        url: String,
        /// Why.
        reason: HostError,
    },
    /// A component instead of a kustomization, or vice versa.
    #[error("expected kind {expected} in `{path}` but got '{found}'")]
    Kind {
        /// The expected kind.
        expected: &'static str,
        /// The directory.
        path: String,
        /// The actual kind.
        found: String,
    },
    /// Not a Kubernetes object.
    #[error("invalid object: {0}")]
    Object(String),
    /// Two objects with the same identity.
    #[error("may not add resource with an already registered id: {id}{}", also(.first))]
    Duplicate {
        /// The identity.
        id: String,
        /// The file of the first one, if known.
        first: Option<String>,
    },
    /// A generated object conflicts with an existing one.
    #[error("cannot generate {id}: {reason}")]
    Generator {
        /// The identity.
        id: String,
        /// Why.
        reason: String,
    },
    /// A patch without a unique target.
    #[error("no resource matches {patch}: {reason}")]
    PatchTarget {
        /// The patch.
        patch: String,
        /// No match, or several.
        reason: String,
    },
    /// A patch that cannot be applied to its target.
    #[error("cannot apply {patch} to {target}: {reason}")]
    Patch {
        /// The patch.
        patch: String,
        /// The object.
        target: String,
        /// Why.
        reason: String,
    },
    /// A JSON patch that cannot be applied to its target.
    #[error("cannot apply JSON patch to {target}: {error}")]
    JsonPatch {
        /// The object.
        target: String,
        /// Why.
        error: crate::JsonPatchError,
    },
    /// A transformation that failed on an object.
    #[error("{transformer} fails on {object}: {reason}")]
    Transform {
        /// The transformer.
        transformer: String,
        /// The object.
        object: String,
        /// Why.
        reason: String,
    },
    /// A feature that is not supported for security.
    #[error("refused: {0}")]
    Denied(String),
    /// Contradicting configurations.
    #[error(transparent)]
    Config(#[from] crate::config::Conflict),
}

fn also(first: &Option<String>) -> String {
    first.as_ref().map(|f| format!(" (first in {f})")).unwrap_or_default()
}

/// Result of a step of a build.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;
