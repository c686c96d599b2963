//! What can go wrong in a build, and where.

use std::fmt;

/// A place in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The file as the engine knows it.
    pub file: String,
    /// Line from 1; 0 when the whole file is meant.
    pub line: u32,
    /// Column from 1; 0 when the whole line is meant.
    pub column: u32,
}

impl Place {
    /// A file as a whole.
    #[must_use]
    pub fn file(file: impl Into<String>) -> Self {
        Self { file: file.into(), line: 0, column: 0 }
    }

    /// The same file at a node.
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

/// A build failed: what, where, and through which kustomizations the engine came there.
#[derive(Debug)]
pub struct Error {
    /// The file and line at fault: a kustomization, or a file it names.
    pub place: Place,
    /// The kustomizations that led there, innermost first.
    pub via: Vec<Place>,
    /// What is wrong.
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
    /// An error at a place.
    pub(crate) fn new(place: Place, kind: impl Into<ErrorKind>) -> Self {
        Self { place, via: Vec::new(), kind: Box::new(kind.into()) }
    }

    /// Notes that the engine came here from `place`.
    pub(crate) fn through(mut self, place: Place) -> Self {
        if self.place != place && self.via.last() != Some(&place) {
            self.via.push(place);
        }
        self
    }
}

/// What is wrong.
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
    /// A path that leaves the tree the build was given.
    #[error("security: `{path}` is outside of `{boundary}`, which a build may not leave")]
    Boundary {
        /// The path after resolving links.
        path: String,
        /// The outermost directory.
        boundary: String,
    },
    /// No directory with a kustomization.
    #[error(
        "unable to find one of 'kustomization.yaml', 'kustomization.yml' or 'Kustomization' in directory `{0}`"
    )]
    NoKustomization(String),
    /// More than one kustomization file.
    #[error("found multiple kustomization files in `{0}`: keep one")]
    ManyKustomizations(String),
    /// Not YAML.
    #[error("malformed YAML: {0}")]
    Yaml(String),
    /// A kustomization or plugin configuration with wrong content.
    #[error("invalid {what}: {reason}")]
    Invalid {
        /// Kustomization, or the kind of the plugin.
        what: String,
        /// What is wrong.
        reason: String,
    },
    /// A field that does not exist.
    #[error("invalid {what}: unknown field \"{field}\"")]
    UnknownField {
        /// Kustomization, or a part of it.
        what: String,
        /// The field.
        field: String,
    },
    /// Kustomizations that include each other.
    #[error("cycle detected: candidate root `{candidate}` contains visited root `{visited}` ({chain})")]
    Cycle {
        /// What would be visited again.
        candidate: String,
        /// What was visited.
        visited: String,
        /// The way from one to the other.
        chain: String,
    },
    /// More nesting than any real tree has.
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
    /// Content from another machine while that is switched off.
    #[error("remote content is switched off: `{0}` would be fetched")]
    RemoteOff(String),
    /// Content from another machine could not be fetched.
    #[error("cannot fetch `{url}`: {reason}")]
    Fetch {
        /// What.
        url: String,
        /// Why.
        reason: String,
    },
    /// A component where a kustomization belongs, or the other way round.
    #[error("expected kind {expected} in `{path}` but got '{found}'")]
    Kind {
        /// What was expected.
        expected: &'static str,
        /// Where.
        path: String,
        /// What is there.
        found: String,
    },
    /// An object that is none.
    #[error("invalid object: {0}")]
    Object(String),
    /// Two objects with one identity.
    #[error("may not add resource with an already registered id: {id}{}", also(.first))]
    Duplicate {
        /// The identity.
        id: String,
        /// The file of the first, when known.
        first: Option<String>,
    },
    /// A generator that cannot go where it wants.
    #[error("cannot generate {id}: {reason}")]
    Generator {
        /// The identity.
        id: String,
        /// Why.
        reason: String,
    },
    /// A patch without target.
    #[error("no resource matches {patch}: {reason}")]
    PatchTarget {
        /// The patch.
        patch: String,
        /// None or too many.
        reason: String,
    },
    /// A patch that does not fit its target.
    #[error("cannot apply {patch} to {target}: {reason}")]
    Patch {
        /// The patch.
        patch: String,
        /// The object.
        target: String,
        /// Why.
        reason: String,
    },
    /// A JSON patch that does not fit its target.
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
    /// Something that is never done here.
    #[error("refused: {0}")]
    Refused(String),
    /// Configurations that contradict each other.
    #[error(transparent)]
    Config(#[from] crate::config::Conflict),
}

fn also(first: &Option<String>) -> String {
    first.as_ref().map(|f| format!(" (first in {f})")).unwrap_or_default()
}

/// The result of a step of a build.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;
