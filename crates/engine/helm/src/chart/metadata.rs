//! `Chart.yaml`: fields, parsing and validation.

use std::collections::BTreeMap;

use fl_semver::Version;
use fl_yaml::Node;

use crate::decode::{DecodeError, Decoder};
use crate::error::LoadError;

/// A maintainer of a chart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Maintainer {
    /// Person or organisation.
    pub name: String,
    /// Mail address.
    pub email: String,
    /// Web address.
    pub url: String,
}

/// One entry of a dependency's `import-values`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportValue {
    /// Name of a key below the subchart's `exports`.
    Export(String),
    /// A table of the subchart and its path in the parent.
    Table {
        /// Path in the subchart.
        child: String,
        /// Path in the parent.
        parent: String,
    },
    /// Any other value, which Helm ignores.
    Other,
}

/// A dependency of a chart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dependency {
    /// The chart's name.
    pub name: String,
    /// Version range.
    pub version: String,
    /// Repository of the dependency; never fetched here, charts must be complete when rendered.
    pub repository: String,
    /// Paths of values that enable or disable it, separated by commas.
    pub condition: String,
    /// Names below `tags` that enable or disable it.
    pub tags: Vec<String>,
    /// Whether conditions and tags enabled it.
    pub enabled: bool,
    /// Values of the subchart that are imported into the parent.
    pub import_values: Vec<ImportValue>,
    /// Another name for the subchart.
    pub alias: String,
}

/// The content of `Chart.yaml`.
#[derive(Debug, Clone, Default)]
pub struct Metadata {
    /// The chart's name.
    pub name: String,
    /// Home page of the project.
    pub home: String,
    /// URLs of the sources.
    pub sources: Vec<String>,
    /// The chart's version.
    pub version: String,
    /// One-sentence description.
    pub description: String,
    /// Search keywords.
    pub keywords: Vec<String>,
    /// Maintainers.
    pub maintainers: Vec<Maintainer>,
    /// URL of an icon.
    pub icon: String,
    /// `v1` or `v2`.
    pub api_version: String,
    /// Not used by Helm.
    pub condition: String,
    /// Not used by Helm.
    pub tags: String,
    /// Version of the application that the chart installs.
    pub app_version: String,
    /// Whether the chart is deprecated.
    pub deprecated: bool,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// Range of supported Kubernetes versions.
    pub kube_version: String,
    /// Dependencies; `None` if the field is missing, which skips dependency processing.
    pub dependencies: Option<Vec<Dependency>>,
    /// `application`, `library` or empty.
    pub chart_type: String,
}

impl Metadata {
    /// Sets the fields present in `document` and keeps the others, as Helm reads `requirements.yaml` over
    /// `Chart.yaml`.
    pub fn read(&mut self, document: &Node) -> Result<(), DecodeError> {
        let mut d = Decoder::default();
        let mut null_entry = None;
        d.fields(document, "chart.Metadata", "Metadata", METADATA_FIELDS, |d, field, node| {
            let text = match field {
                "name" => &mut self.name,
                "home" => &mut self.home,
                "version" => &mut self.version,
                "description" => &mut self.description,
                "icon" => &mut self.icon,
                "apiVersion" => &mut self.api_version,
                "condition" => &mut self.condition,
                "tags" => &mut self.tags,
                "appVersion" => &mut self.app_version,
                "kubeVersion" => &mut self.kube_version,
                "type" => &mut self.chart_type,
                "sources" => return d.strings(node, "Metadata.sources", &mut self.sources),
                "keywords" => return d.strings(node, "Metadata.keywords", &mut self.keywords),
                "deprecated" => return d.boolean(node, "Metadata.deprecated", &mut self.deprecated),
                "annotations" => return d.string_map(node, "Metadata.annotations", &mut self.annotations),
                "maintainers" => {
                    return d.items(node, "Metadata.maintainers", "[]*chart.Maintainer", |d, item| {
                        self.maintainers.push(maintainer(d, item, &mut null_entry));
                    });
                }
                _ => {
                    let mut list = Vec::new();
                    if d.items(node, "Metadata.dependencies", "[]*chart.Dependency", |d, item| {
                        list.push(dependency(d, item, &mut null_entry));
                    }) {
                        self.dependencies = Some(list);
                    }
                    return true;
                }
            };
            d.string(node, "Metadata", field, text)
        });
        d.finish()?;
        null_entry.map_or(Ok(()), Err)
    }

    /// Sanitizes the text fields and applies Helm's rules for every loaded chart.
    pub fn validate(&mut self) -> Result<(), LoadError> {
        let invalid = |message: String| Err(LoadError::Validation(message));
        for text in [
            &mut self.name,
            &mut self.description,
            &mut self.home,
            &mut self.icon,
            &mut self.condition,
            &mut self.tags,
            &mut self.app_version,
            &mut self.kube_version,
        ] {
            sanitize(text);
        }
        self.sources.iter_mut().chain(&mut self.keywords).for_each(sanitize);
        if self.api_version.is_empty() {
            return invalid("chart.metadata.apiVersion is required".into());
        }
        if self.name.is_empty() {
            return invalid("chart.metadata.name is required".into());
        }
        if self.name == "." || self.name == ".." {
            return invalid(format!("chart.metadata.name {:?} is not allowed", self.name));
        }
        if self.name.contains('/') {
            return invalid(format!("chart.metadata.name {:?} is invalid", self.name));
        }
        if self.version.is_empty() {
            return invalid("chart.metadata.version is required".into());
        }
        if Version::parse(&self.version).is_err() {
            return invalid(format!("chart.metadata.version {:?} is invalid", self.version));
        }
        if !matches!(self.chart_type.as_str(), "" | "application" | "library") {
            return invalid("chart.metadata.type must be application or library".into());
        }
        for maintainer in &mut self.maintainers {
            [&mut maintainer.name, &mut maintainer.email, &mut maintainer.url].into_iter().for_each(sanitize);
        }
        let mut seen = std::collections::BTreeSet::new();
        for dependency in self.dependencies.iter_mut().flatten() {
            dependency.validate()?;
            let key = if dependency.alias.is_empty() { &dependency.name } else { &dependency.alias };
            if !seen.insert(key.clone()) {
                return invalid(format!("more than one dependency with name or alias {key:?}"));
            }
        }
        Ok(())
    }

    /// Whether `Chart.yaml` has a field of this name.
    pub(crate) fn is_field(name: &str) -> bool {
        METADATA_FIELDS.contains(&name)
    }

    /// Whether this is a library chart, of which only partials are used.
    pub(crate) fn is_library(&self) -> bool {
        self.chart_type.eq_ignore_ascii_case("library")
    }
}

const METADATA_FIELDS: &[&str] = &[
    "name",
    "home",
    "sources",
    "version",
    "description",
    "keywords",
    "maintainers",
    "icon",
    "apiVersion",
    "condition",
    "tags",
    "appVersion",
    "deprecated",
    "annotations",
    "kubeVersion",
    "dependencies",
    "type",
];

/// Checks that a lock file has the right types; its values are not used for rendering.
pub(super) fn check_lock(document: &Node) -> Result<(), DecodeError> {
    let (mut d, mut null, mut digest) = (Decoder::default(), None, String::new());
    let mut time = Ok(());
    d.fields(document, "chart.Lock", "Lock", &["generated", "digest", "dependencies"], |d, field, node| {
        match field {
            "dependencies" => d.items(node, "Lock.dependencies", "[]*chart.Dependency", |d, item| {
                dependency(d, item, &mut null);
            }),
            "digest" => d.string(node, "Lock", "digest", &mut digest),
            _ => {
                let text = node.as_text().unwrap_or_default();
                if !crate::decode::is_null(node)
                    && let Some((rest, part)) = time_mismatch(text)
                {
                    time = Err(DecodeError::Time { text: text.to_owned(), rest: rest.to_owned(), part });
                }
                true
            }
        }
    });
    d.finish().and(time)
}

/// For text that is not an RFC 3339 time: the unparsed rest and the part of Go's layout that did not match.
fn time_mismatch(text: &str) -> Option<(&str, &'static str)> {
    const PARTS: [&str; 11] = ["2006", "-", "01", "-", "02", "T", "15", ":", "04", ":", "05"];
    let digits = |text: &str, count: usize| {
        text.len() >= count && text.bytes().take(count).all(|b| b.is_ascii_digit())
    };
    let mut rest = text;
    for part in PARTS {
        let fits = if part.len() > 1 { digits(rest, part.len()) } else { rest.starts_with(part) };
        if !fits {
            return Some((rest, part));
        }
        rest = &rest[part.len()..];
    }
    if let Some(fraction) = rest.strip_prefix('.') {
        rest = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    let offset = |zone: &str| digits(zone, 2) && zone[2..].starts_with(':') && digits(&zone[3..], 2);
    let zone = rest.strip_prefix(['+', '-']);
    match zone {
        _ if rest == "Z" => None,
        Some(zone) if zone.len() == 5 && offset(zone) => None,
        _ => Some((rest, "Z07:00")),
    }
}

fn maintainer(d: &mut Decoder, node: &Node, null: &mut Option<DecodeError>) -> Maintainer {
    let mut m = Maintainer::default();
    if crate::decode::is_null(node) {
        null.get_or_insert(DecodeError::NullEntry("maintainers"));
        return m;
    }
    d.fields(
        node,
        "chart.Maintainer",
        "Metadata.maintainers",
        &["name", "email", "url"],
        |d, field, node| {
            let text = match field {
                "name" => &mut m.name,
                "email" => &mut m.email,
                _ => &mut m.url,
            };
            d.string(node, "Maintainer.maintainers", field, text)
        },
    );
    m
}

const DEPENDENCY_FIELDS: &[&str] =
    &["name", "version", "repository", "condition", "tags", "enabled", "import-values", "alias"];

fn dependency(d: &mut Decoder, node: &Node, null: &mut Option<DecodeError>) -> Dependency {
    let mut dep = Dependency::default();
    if crate::decode::is_null(node) {
        null.get_or_insert(DecodeError::NullEntry("dependencies"));
        return dep;
    }
    d.fields(node, "chart.Dependency", "Metadata.dependencies", DEPENDENCY_FIELDS, |d, field, node| {
        let text = match field {
            "name" => &mut dep.name,
            "version" => &mut dep.version,
            "repository" => &mut dep.repository,
            "condition" => &mut dep.condition,
            "alias" => &mut dep.alias,
            "tags" => return d.strings(node, "Dependency.dependencies.tags", &mut dep.tags),
            "enabled" => return d.boolean(node, "Dependency.dependencies.enabled", &mut dep.enabled),
            _ => {
                return d.items(
                    node,
                    "Dependency.dependencies.import-values",
                    "[]interface {}",
                    |_, item| {
                        dep.import_values.push(import_value(item));
                    },
                );
            }
        };
        d.string(node, "Dependency.dependencies", field, text)
    });
    dep
}

fn import_value(node: &Node) -> ImportValue {
    if let Some(map) = node.as_map() {
        let text = |key: &str| map.get(key).map_or_else(|| "<nil>".into(), crate::decode::printed);
        return ImportValue::Table { child: text("child"), parent: text("parent") };
    }
    match node.as_str(fl_yaml::Dialect::Sigs) {
        Some(name) => ImportValue::Export(name.to_owned()),
        None => ImportValue::Other,
    }
}

impl Dependency {
    fn validate(&mut self) -> Result<(), LoadError> {
        [&mut self.name, &mut self.version, &mut self.repository, &mut self.condition]
            .into_iter()
            .for_each(sanitize);
        self.tags.iter_mut().for_each(sanitize);
        let fine = self.alias.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        if fine {
            return Ok(());
        }
        Err(LoadError::Validation(format!(
            "dependency {:?} has disallowed characters in the alias",
            self.name
        )))
    }
}

/// Replaces every kind of white space by a blank and removes unprintable characters.
fn sanitize(text: &mut String) {
    if text.bytes().all(|b| (b' '..=b'~').contains(&b)) {
        return;
    }
    *text = text
        .chars()
        .filter_map(|c| {
            if c.is_whitespace() {
                return Some(' ');
            }
            // `escape_debug` does not change printable characters; the prefix keeps combining marks intact.
            let printable = matches!(c, '"' | '\'' | '\\')
                || ['a', c].iter().collect::<String>().escape_debug().count() == 2;
            printable.then_some(c)
        })
        .collect();
}
