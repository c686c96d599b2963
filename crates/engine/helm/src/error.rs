//! Errors; the messages are Helm's if Helm has one.

use fl_gotemplate::Excerpt;

use crate::decode::DecodeError;

/// Error of loading a chart.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// There is no `Chart.yaml`.
    #[error("Chart.yaml file is missing")]
    NoChartFile,
    /// A file of the chart cannot be parsed.
    #[error("cannot load {file}: {why}")]
    File {
        /// `Chart.yaml`, `values.yaml`, …
        file: &'static str,
        /// Cause.
        why: DecodeError,
    },
    /// `Chart.yaml` is invalid.
    #[error("validation: {0}")]
    Validation(String),
    /// The archive is corrupt, too large or contains a forbidden path.
    #[error("{0}")]
    Archive(String),
    /// A rule of `.helmignore` is invalid.
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
        /// Limit in bytes.
        limit: u64,
    },
    /// A file or directory cannot be read.
    #[error("error reading {path}: {source}")]
    Read {
        /// The path inside the chart.
        path: String,
        /// Cause.
        source: std::io::Error,
    },
    /// An entry of `charts/` is not a chart.
    #[error("error unpacking subchart {name} in {parent}: {source}")]
    Subchart {
        /// The folder or archive in `charts/`.
        name: String,
        /// The chart that holds it.
        parent: String,
        /// Cause.
        source: Box<LoadError>,
    },
    /// Charts are nested too deeply.
    #[error("charts are nested more than {0} levels deep")]
    TooDeep(usize),
}

/// Error of rendering a chart.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The chart could not be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A values file or a `--set` argument is invalid.
    #[error("{0}")]
    Values(String),
    /// The release name is invalid.
    #[error(
        "release name {name:?}: invalid release name, must match regex \
^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$ and the length must not be longer than 53"
    )]
    ReleaseName {
        /// The given name.
        name: String,
    },
    /// The namespace is invalid.
    #[error("invalid namespace {0:?}: a namespace is a DNS label of at most 63 characters")]
    Namespace(String),
    /// A library chart cannot be rendered on its own.
    #[error("library charts are not installable")]
    Library,
    /// Dependencies of `Chart.yaml` are missing in `charts/`.
    #[error(
        "An error occurred while checking for chart dependencies. You may need to run `helm dependency build` \
to fetch missing dependencies: found in Chart.yaml, but missing in charts/ directory: {}", .0.join(", ")
    )]
    MissingDependencies(Vec<String>),
    /// The values of a subchart are not a table.
    #[error("type mismatch on {chart}: {shown}")]
    SubchartValues {
        /// The subchart.
        chart: String,
        /// The values, formatted with Go's `%t`.
        shown: String,
    },
    /// The values do not match a `values.schema.json`.
    #[error("values don't meet the specifications of the schema(s) in the following chart(s):\n{0}")]
    Schema(String),
    /// The chart does not support the version of the cluster.
    #[error("chart requires kubeVersion: {wanted} which is incompatible with Kubernetes {version}")]
    KubeVersion {
        /// The range of `Chart.yaml`.
        wanted: String,
        /// The version of the cluster.
        version: String,
    },
    /// A Kubernetes version cannot be parsed.
    #[error("invalid kube version '{text}': could not parse {text:?} as version")]
    BadKubeVersion {
        /// The given text.
        text: String,
    },
    /// A Kubernetes version has no minor version.
    #[error("invalid kube version '{text}': illegal version string {text:?}")]
    ShortKubeVersion {
        /// The given text.
        text: String,
    },
    /// A template cannot be parsed or executed.
    #[error("{0}")]
    Template(String, Option<Box<Excerpt>>),
    /// A template exceeded a limit; the message names it.
    #[error("{0}")]
    Budget(String),
    /// Templates are nested deeper than the stack allows; the message names one of them.
    #[error("{0}")]
    TooDeep(String),
    /// The output of a template is not valid YAML.
    #[error("YAML parse error on {file}: {why}")]
    Output {
        /// The template.
        file: String,
        /// Message of the parser.
        why: String,
        /// The document; it can contain secrets.
        printed: String,
    },
    /// `--show-only` names a template without output.
    #[error("could not find template {0} in chart")]
    NoSuchTemplate(String),
    /// The post-renderer failed.
    #[error("error while running post render on files: {0}")]
    PostRender(String),
}

impl Error {
    pub(crate) fn output(file: &str, why: &DecodeError, printed: &str) -> Self {
        Error::Output { file: file.to_owned(), why: why.to_string(), printed: printed.to_owned() }
    }

    /// The location of the error for the user who runs the chart: source lines and the values used there. Do
    /// not log it, since values can be secrets.
    pub fn excerpt(&self) -> Option<String> {
        match self {
            Error::Template(_, excerpt) => excerpt.as_ref().map(ToString::to_string),
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

    /// Whether the error occurred while rendering: Helm then suggests `--debug`.
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
