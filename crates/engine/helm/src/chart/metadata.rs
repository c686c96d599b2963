//! `Chart.yaml`: its fields, reading and rules.

use std::collections::BTreeMap;

use fl_semver::Version;
use fl_yaml::Node;

use crate::decode::Decoder;
use crate::error::LoadError;

/// Someone who keeps a chart.
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
    /// The name of a key below the child's `exports`.
    Export(String),
    /// A table of the child and where it goes in the parent.
    Table {
        /// Path in the child.
        child: String,
        /// Path in the parent.
        parent: String,
    },
    /// Something else, which Helm passes over.
    Other,
}

/// A chart that this one needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dependency {
    /// The chart's name.
    pub name: String,
    /// The range of versions.
    pub version: String,
    /// Where it comes from; never followed here, charts are complete when rendered.
    pub repository: String,
    /// Paths of values that switch it on or off, separated by commas.
    pub condition: String,
    /// Names below `tags` that switch it on or off.
    pub tags: Vec<String>,
    /// The state found by conditions and tags.
    pub enabled: bool,
    /// Values of the child that become values of the parent.
    pub import_values: Vec<ImportValue>,
    /// Another name to use it under.
    pub alias: String,
}

/// The content of `Chart.yaml`.
#[derive(Debug, Clone, Default)]
pub struct Metadata {
    /// The chart's name.
    pub name: String,
    /// The project's page.
    pub home: String,
    /// Source addresses.
    pub sources: Vec<String>,
    /// The chart's version.
    pub version: String,
    /// One sentence.
    pub description: String,
    /// Words to find it by.
    pub keywords: Vec<String>,
    /// Who keeps it.
    pub maintainers: Vec<Maintainer>,
    /// Address of a picture.
    pub icon: String,
    /// `v1` or `v2`.
    pub api_version: String,
    /// Kept, not used.
    pub condition: String,
    /// Kept, not used.
    pub tags: String,
    /// The version of what the chart installs.
    pub app_version: String,
    /// Whether it should not be used any more.
    pub deprecated: bool,
    /// Free key-value pairs.
    pub annotations: BTreeMap<String, String>,
    /// The range of Kubernetes versions it supports.
    pub kube_version: String,
    /// The charts it needs; `None` when the field is missing, which skips their processing.
    pub dependencies: Option<Vec<Dependency>>,
    /// `application`, `library` or empty.
    pub chart_type: String,
}

impl Metadata {
    /// Reads fields over what is there already, as `requirements.yaml` does to `Chart.yaml`.
    pub fn read(&mut self, document: &Node) -> Result<(), String> {
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
        match null_entry {
            Some(message) => Err(message),
            None => Ok(()),
        }
    }

    /// Cleans the texts and applies the rules that Helm has for every chart it loads.
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

    /// Whether only its partials count.
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

/// Whether a lock file can be read as one; only its types matter for rendering.
pub(super) fn check_lock(document: &Node) -> Result<(), String> {
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
                    && let Some((rest, part)) = no_moment(text)
                {
                    time = Err(format!(
                        "error unmarshaling JSON: while decoding JSON: parsing time {text:?} as \
                         \"2006-01-02T15:04:05Z07:00\": cannot parse {rest:?} as {part:?}"
                    ));
                }
                true
            }
        }
    });
    d.finish().and(time)
}

/// Where a text is not `YYYY-MM-DDThh:mm:ss`, a fraction or none, `Z` or an offset: the rest of it, and what Go's layout
/// has there.
fn no_moment(text: &str) -> Option<(&str, &'static str)> {
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

fn maintainer(d: &mut Decoder, node: &Node, null: &mut Option<String>) -> Maintainer {
    let mut m = Maintainer::default();
    if crate::decode::is_null(node) {
        null.get_or_insert_with(|| "validation: maintainers must not contain empty or null nodes".into());
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

fn dependency(d: &mut Decoder, node: &Node, null: &mut Option<String>) -> Dependency {
    let mut dep = Dependency::default();
    if crate::decode::is_null(node) {
        null.get_or_insert_with(|| "validation: dependencies must not contain empty or null nodes".into());
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

/// Every kind of white space becomes a blank, what cannot be printed is dropped.
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
            // `escape_debug` leaves printable characters as they are; the first one keeps combining marks whole.
            let printable = matches!(c, '"' | '\'' | '\\')
                || ['a', c].iter().collect::<String>().escape_debug().count() == 2;
            printable.then_some(c)
        })
        .collect();
}
