//! What can go wrong, in Helm's words where Helm has words for it.

use fl_gotemplate::Finding;

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
    #[error("type mismatch on {chart}: {shown}")]
    SubchartValues {
        /// The subchart.
        chart: String,
        /// What its values are, as the verb for truth values prints them.
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
    /// A Kubernetes version without its second number.
    #[error("invalid kube version '{text}': illegal version string {text:?}")]
    ShortKubeVersion {
        /// The text given.
        text: String,
    },
    /// A template cannot be parsed or executed.
    #[error("{0}")]
    Template(String, Option<Box<Finding>>),
    /// A budget stopped a template; the text names it.
    #[error("{0}")]
    Budget(String),
    /// Templates nest deeper than the stack they were given; the text names one.
    #[error("{0}")]
    TooDeep(String),
    /// What a template printed is not YAML.
    #[error("YAML parse error on {file}: {why}")]
    Output {
        /// The template.
        file: String,
        /// The reader's words.
        why: String,
        /// The document; values in it can be secret.
        printed: String,
    },
    /// `--show-only` names a template that printed nothing.
    #[error("could not find template {0} in chart")]
    NoSuchTemplate(String),
    /// The post-renderer failed.
    #[error("error while running post render on files: {0}")]
    PostRender(String),
}

impl Error {
    pub(crate) fn output(file: &str, why: String, printed: &str) -> Self {
        Error::Output { file: file.to_owned(), why, printed: printed.to_owned() }
    }

    /// The place of the failure for the person who runs the chart: the lines around it, what the values were. Not for
    /// logs, since values can be secret.
    pub fn excerpt(&self) -> Option<String> {
        match self {
            Error::Template(_, finding) => finding.as_ref().map(ToString::to_string),
            Error::Output { file, why, printed } => {
                let (_, line) = why.split_once("line ")?;
                let digits = line.find(|c: char| !c.is_ascii_digit()).unwrap_or(line.len());
                let line: usize = line[..digits].parse().ok()?;
                let first = line.saturating_sub(2).max(1);
                let mut text = format!("  --> printed by {file}, line {line} of the document");
                for (i, shown) in printed.lines().enumerate().skip(first - 1).take(line + 2 - first) {
                    text.push_str(&format!("\n  {:>4} | {shown}", i + 1));
                }
                Some(text)
            }
            _ => None,
        }
    }

    /// Whether Helm got as far as rendering: then it suggests `--debug`.
    pub fn while_rendering(&self) -> bool {
        matches!(
            self,
            Error::KubeVersion { .. }
                | Error::Template(..)
                | Error::Budget(_)
                | Error::TooDeep(_)
                | Error::Output { .. }
                | Error::PostRender(_)
        )
    }
}
