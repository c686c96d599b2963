//! What can be wrong with the options.

/// Why nothing could be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A component that does not exist.
    #[error("component {name} is not available, choose from {available}")]
    UnknownComponent {
        /// What was asked for.
        name: String,
        /// What there is.
        available: String,
    },
    /// An empty list of components.
    #[error("no components are chosen, name at least one")]
    NoComponents,
    /// Only components without a controller in this release.
    #[error("none of the chosen components ({0}) has a controller in this release")]
    NothingRuns(String),
    /// A value that Kubernetes would refuse.
    #[error("{field} {value:?} is not valid")]
    Invalid {
        /// Which option.
        field: &'static str,
        /// Its value.
        value: String,
        /// What is wrong with it.
        #[source]
        source: fl_types::NameError,
    },
    /// A registry that cannot be part of an image name.
    #[error("registry {0:?} is not valid, give a host and a path without scheme, tag or blanks")]
    Registry(String),
    /// An object that cannot be written as YAML.
    #[error("cannot write the manifests as YAML")]
    Yaml(#[from] fl_yaml::Error),
}
