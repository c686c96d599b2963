//! Loaded charts: files, metadata, default values, subcharts. Immutable and shareable between threads.

pub(crate) mod archive;
pub(crate) mod background_parse;
mod directory;
mod gzip;
mod ignore;
mod lazy_file;
mod load;
mod metadata;
mod pattern;

pub use archive::ArchiveLimits;
pub use lazy_file::{ArchiveSource, Content};
pub use load::Loader;
pub use metadata::{Dependency, ImportValue, Maintainer, Metadata};
pub use pattern::{BadPattern, Pattern};

use crate::values::JsonValue;

/// A file by its name inside the chart.
#[derive(Debug, Clone)]
pub struct File {
    /// Path with slashes, from the chart's root.
    pub name: String,
    /// Content; templates that read the file share these bytes.
    pub data: Content,
    /// Modification time in Unix seconds; zero if unknown.
    pub modified: u64,
}

/// A file before it becomes part of a chart.
#[derive(Debug)]
pub(crate) struct BufferedFile {
    pub(crate) name: String,
    /// Content for the loader; empty for files that the loader does not parse.
    pub(crate) data: Vec<u8>,
    pub(crate) kept: Option<Content>,
    pub(crate) modified: u64,
}

impl BufferedFile {
    pub(crate) fn new(name: String, data: Vec<u8>) -> Self {
        Self { name, data, kept: None, modified: 0 }
    }

    fn renamed(self, name: String) -> Self {
        Self { name, ..self }
    }
}

impl From<BufferedFile> for File {
    fn from(file: BufferedFile) -> Self {
        let modified = file.modified;
        Self { name: file.name, data: file.kept.unwrap_or_else(|| file.data.into()), modified }
    }
}

/// Modification times of files that a chart does not keep as files; `package` restores them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Times {
    pub(crate) metadata: u64,
    pub(crate) lock: u64,
    pub(crate) values: u64,
    pub(crate) schema: u64,
}

/// A loaded chart.
#[derive(Debug, Clone, Default)]
pub struct Chart {
    /// `Chart.yaml`.
    pub metadata: Metadata,
    /// Files below `templates/`.
    pub templates: Vec<File>,
    /// `values.yaml`; null when there is none.
    pub values: JsonValue,
    /// `values.yaml` as written; `package` keeps its comments.
    pub values_file: Option<Vec<u8>>,
    /// `values.schema.json`.
    pub schema: Option<Vec<u8>>,
    /// `Chart.lock` (or `requirements.lock`); null when there is none.
    pub lock: JsonValue,
    /// All other files, including those in `crds/`.
    pub files: Vec<File>,
    /// Charts in `charts/`, by folder name.
    pub dependencies: Vec<Chart>,
    pub(crate) times: Times,
}

impl Chart {
    /// The chart's name.
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// The dependencies that `Chart.lock` pins; `None` without such a file.
    pub fn locked_dependencies(&self) -> Option<Vec<Dependency>> {
        let entry = |map: &JsonValue, key: &str| match map {
            JsonValue::Map(entries) => {
                entries.iter().find(|(k, _)| k.as_bytes() == key.as_bytes()).map(|(_, v)| v.clone())
            }
            _ => None,
        };
        let text = |map: &JsonValue, key: &str| match entry(map, key) {
            Some(JsonValue::Str(text)) => text.to_string(),
            _ => String::new(),
        };
        if self.lock == JsonValue::Null {
            return None;
        }
        let Some(JsonValue::List(items)) = entry(&self.lock, "dependencies") else { return Some(Vec::new()) };
        let read = |item: &JsonValue| Dependency {
            name: text(item, "name"),
            version: text(item, "version"),
            repository: text(item, "repository"),
            alias: text(item, "alias"),
            ..Dependency::default()
        };
        Some(items.iter().map(read).collect())
    }

    /// The files of `crds/`, without those of subcharts.
    pub fn crd_files(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|f| {
            let manifest = || {
                let extension = f.name.rsplit_once('.').map(|(_, e)| e.to_ascii_lowercase());
                matches!(extension.as_deref(), Some("yaml" | "yml" | "json"))
            };
            f.name.starts_with("crds/") && manifest()
        })
    }
}

/// Byte order mark.
const BOM: &[u8] = b"\xef\xbb\xbf";

fn trim_bom(data: &mut Vec<u8>) {
    if data.starts_with(BOM) {
        data.drain(..BOM.len());
    }
}
