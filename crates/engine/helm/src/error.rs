//! What can go wrong, in Helm's words where Helm has words for it.

/// Why a chart could not be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// There is no `Chart.yaml`.
    #[error("Chart.yaml file is missing")]
    NoChartFile,
    /// A file of the chart cannot be read as what it should be.
    #[error("cannot load {file}: {why}")]
    File {
        /// `Chart.yaml`, `values.yaml`, …
        file: &'static str,
        /// The reader's words.
        why: String,
    },
    /// `Chart.yaml` says something that is not allowed.
    #[error("validation: {0}")]
    Validation(String),
    /// The archive is damaged, too large or names a forbidden path.
    #[error("{0}")]
    Archive(String),
    /// A rule of `.helmignore` cannot be read.
    #[error("{0}")]
    IgnoreRule(String),
    /// A file of the directory is not a regular file.
    #[error("cannot load irregular file {0} as it has file mode type bits set")]
    Irregular(String),
    /// A file of the directory is too large.
    #[error("chart file {name:?} is larger than the maximum file size {limit}")]
    TooLarge {
        /// The file's name without its folders.
        name: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// A file or directory cannot be read.
    #[error("error reading {path}: {source}")]
    Read {
        /// The path inside the chart.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// Something in `charts/` is not a chart.
    #[error("error unpacking subchart {name} in {parent}: {source}")]
    Subchart {
        /// The folder or archive in `charts/`.
        name: String,
        /// The chart that holds it.
        parent: String,
        /// What is wrong with it.
        source: Box<LoadError>,
    },
    /// More charts inside charts than allowed.
    #[error("charts are nested more than {0} levels deep")]
    TooDeep(usize),
}

/// Why a chart could not be rendered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The chart could not be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A values file or a `--set` argument cannot be read.
    #[error("{0}")]
    Values(String),
    /// The release name is not allowed.
    #[error(
        "release name {name:?}: invalid release name, must match regex \
^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$ and the length must not be longer than 53"
    )]
    ReleaseName {
        /// The name given.
        name: String,
    },
    /// The namespace is not allowed.
    #[error("invalid namespace {0:?}: a namespace is a DNS label of at most 63 characters")]
    Namespace(String),
    /// A library chart was asked to be rendered alone.
    #[error("library charts are not installable")]
    Library,
    /// Dependencies of `Chart.yaml` that are not in `charts/`.
    #[error(
        "An error occurred while checking for chart dependencies. You may need to run `helm dependency build` \
to fetch missing dependencies: found in Chart.yaml, but missing in charts/ directory: {}", .0.join(", ")
    )]
    MissingDependencies(Vec<String>),
    /// Values of a subchart that are not a table.
    #[error("type mismatch on {chart}: %!t({shown})")]
    SubchartValues {
        /// The subchart.
        chart: String,
        /// What its values are, with its Go type.
        shown: String,
    },
    /// Values that break a `values.schema.json`.
    #[error("values don't meet the specifications of the schema(s) in the following chart(s):\n{0}")]
    Schema(String),
    /// The cluster's version is outside what the chart supports.
    #[error("chart requires kubeVersion: {wanted} which is incompatible with Kubernetes {version}")]
    KubeVersion {
        /// The range of `Chart.yaml`.
        wanted: String,
        /// The version of the cluster.
        version: String,
    },
    /// A Kubernetes version that cannot be read.
    #[error("invalid kube version '{text}': could not parse {text:?} as version")]
    BadKubeVersion {
        /// The text given.
        text: String,
    },
    /// A template cannot be parsed or executed.
    #[error("{0}")]
    Template(String),
    /// A budget stopped a template; the text names it.
    #[error("{0}")]
    Budget(String),
    /// What a template printed is not YAML.
    #[error("YAML parse error on {file}: {why}")]
    Output {
        /// The template.
        file: String,
        /// The reader's words.
        why: String,
    },
    /// `--show-only` names a template that printed nothing.
    #[error("could not find template {0} in chart")]
    NoSuchTemplate(String),
    /// The post-renderer failed.
    #[error("error while running post render on files: {0}")]
    PostRender(String),
}

impl Error {
    /// Whether Helm got as far as rendering: then it suggests `--debug`.
    pub fn while_rendering(&self) -> bool {
        matches!(
            self,
            Error::KubeVersion { .. }
                | Error::Template(_)
                | Error::Budget(_)
                | Error::Output { .. }
                | Error::PostRender(_)
        )
    }
}
