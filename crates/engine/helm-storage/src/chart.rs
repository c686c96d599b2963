//! The chart of a release.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fl_helm::{Chart, Dependency, File, ImportValue, JsonValue, Metadata};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::hook::null_is_empty;
use fl_go::to_go_json;

/// A maintainer of a chart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChartMaintainer {
    /// Person or organisation.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Mail address.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub email: String,
    /// Web address.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub url: String,
}

/// A dependency of a chart.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ChartDependency {
    /// The chart's name.
    #[serde(default)]
    pub name: String,
    /// Version range.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Repository.
    #[serde(default)]
    pub repository: String,
    /// Paths of values that enable or disable it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub condition: String,
    /// Tags that enable or disable it.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Whether conditions and tags enabled it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub enabled: bool,
    /// Values imported from it.
    #[serde(
        default,
        rename = "import-values",
        deserialize_with = "null_is_empty",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub import_values: Vec<Value>,
    /// Another name for the subchart.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub alias: String,
}

/// `Chart.yaml` as Helm stores it. The order of the fields is that of Helm's type, since digests depend on
/// it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the fields of Chart.yaml, described in fl_helm::Metadata")]
pub struct ChartMetadata {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub home: String,
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub keywords: Vec<String>,
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub maintainers: Vec<ChartMaintainer>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub icon: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub condition: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tags: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub app_version: String,
    #[serde(default, skip_serializing_if = "is_false")]
    pub deprecated: bool,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kube_version: String,
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<ChartDependency>,
    #[serde(default, rename = "type", skip_serializing_if = "String::is_empty")]
    pub chart_type: String,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// A part of the chart that is passed through unparsed.
type RawPart = Option<Arc<RawValue>>;

/// The chart of a release. Clones share its large parts.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct StoredChart {
    /// `Chart.yaml`.
    #[serde(default)]
    pub metadata: ChartMetadata,
    #[serde(default)]
    lock: RawPart,
    #[serde(default)]
    templates: RawPart,
    #[serde(default)]
    values: RawPart,
    #[serde(default)]
    schema: RawPart,
    #[serde(default)]
    files: RawPart,
}

#[derive(Serialize, Deserialize)]
struct StoredFile {
    name: String,
    #[serde(default)]
    data: Option<String>,
}

impl StoredChart {
    /// Converts a loaded chart. Subcharts are not stored, as in Helm.
    ///
    /// # Errors
    /// A file of the chart cannot be read any more.
    pub fn of(chart: &Chart) -> std::io::Result<Self> {
        Ok(Self {
            metadata: (&chart.metadata).into(),
            lock: part(&chart.lock.to_json()),
            templates: part(&files(&chart.templates)?),
            values: part(&chart.values.to_json()),
            schema: chart.schema.as_deref().and_then(|schema| part(&STANDARD.encode(schema))),
            files: part(&files(&chart.files)?),
        })
    }

    /// Replaces the dependency list, with that after conditions and tags.
    #[must_use]
    pub fn with_dependencies(mut self, dependencies: Option<&[Dependency]>) -> Self {
        self.metadata.dependencies = dependencies.unwrap_or_default().iter().map(Into::into).collect();
        self
    }

    /// Replaces the default values, with those that include imported values of subcharts.
    #[must_use]
    pub fn with_values(mut self, values: &JsonValue) -> Self {
        self.values = part(&values.to_json());
        self
    }

    /// The default values.
    pub fn values(&self) -> Value {
        self.values.as_deref().and_then(|text| serde_json::from_str(text.get()).ok()).unwrap_or_default()
    }

    /// The largest file, for the error about a release that is too large.
    pub(crate) fn largest_file(&self) -> String {
        let parts = [&self.templates, &self.files].into_iter().flatten();
        let files =
            parts.filter_map(|part| serde_json::from_str::<Vec<StoredFile>>(part.get()).ok()).flatten();
        let size = |file: &StoredFile| file.data.as_deref().map_or(0, |data| data.len() / 4 * 3);
        let largest = files.max_by_key(size);
        largest.map_or_else(|| "none".into(), |file| format!("{} with {} bytes", file.name, size(&file)))
    }
}

fn part<T: Serialize + ?Sized>(value: &T) -> RawPart {
    let text = to_go_json(value).ok().and_then(|bytes| String::from_utf8(bytes).ok())?;
    if text == "null" {
        return None;
    }
    RawValue::from_string(text).ok().map(Into::into)
}

fn files(files: &[File]) -> std::io::Result<Vec<StoredFile>> {
    let stored = |file: &File| {
        let data = Some(STANDARD.encode(file.data.read()?.as_bytes()));
        Ok(StoredFile { name: file.name.clone(), data })
    };
    files.iter().map(stored).collect()
}

impl From<&Metadata> for ChartMetadata {
    fn from(metadata: &Metadata) -> Self {
        Self {
            name: metadata.name.clone(),
            home: metadata.home.clone(),
            sources: metadata.sources.clone(),
            version: metadata.version.clone(),
            description: metadata.description.clone(),
            keywords: metadata.keywords.clone(),
            maintainers: metadata
                .maintainers
                .iter()
                .map(|m| ChartMaintainer { name: m.name.clone(), email: m.email.clone(), url: m.url.clone() })
                .collect(),
            icon: metadata.icon.clone(),
            api_version: metadata.api_version.clone(),
            condition: metadata.condition.clone(),
            tags: metadata.tags.clone(),
            app_version: metadata.app_version.clone(),
            deprecated: metadata.deprecated,
            annotations: metadata.annotations.clone(),
            kube_version: metadata.kube_version.clone(),
            dependencies: metadata.dependencies.iter().flatten().map(Into::into).collect(),
            chart_type: metadata.chart_type.clone(),
        }
    }
}

impl From<&Dependency> for ChartDependency {
    fn from(dependency: &Dependency) -> Self {
        let import = |import: &ImportValue| match import {
            ImportValue::Export(name) => Value::String(name.clone()),
            ImportValue::Table { child, parent } => serde_json::json!({"child": child, "parent": parent}),
            ImportValue::Other => Value::Null,
        };
        Self {
            name: dependency.name.clone(),
            version: dependency.version.clone(),
            repository: dependency.repository.clone(),
            condition: dependency.condition.clone(),
            tags: dependency.tags.clone(),
            enabled: dependency.enabled,
            import_values: dependency.import_values.iter().map(import).collect(),
            alias: dependency.alias.clone(),
        }
    }
}
