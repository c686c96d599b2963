//! Errors of invalid options.

/// Error of building the manifests.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An unknown component.
    #[error("component {name} is not available, choose from {available}")]
    UnknownComponent {
        /// The requested name.
        name: String,
        /// The available names.
        available: String,
    },
    /// An empty list of components.
    #[error("no components are chosen, name at least one")]
    NoComponents,
    /// Only components without a controller in this release.
    #[error("none of the chosen components ({0}) has a controller in this release")]
    NothingRuns(String),
    /// A value that Kubernetes would reject.
    #[error("{field} {value:?} is not valid")]
    Invalid {
        /// Name of the option.
        field: &'static str,
        /// Its value.
        value: String,
        /// Cause.
        #[source]
        source: fl_types::NameError,
    },
    /// An invalid registry.
    #[error("registry {0:?} is not valid, give a host and a path without scheme, tag or blanks")]
    Registry(String),
    /// An object that cannot be written as YAML.
    #[error("cannot write the manifests as YAML")]
    Yaml(#[from] fl_yaml::Error),
}
