//! Charts as they are loaded: files, metadata, default values, subcharts. Immutable and shareable between threads.

pub(crate) mod ahead;
pub(crate) mod archive;
mod content;
mod directory;
mod gzip;
mod ignore;
mod load;
mod metadata;
mod pattern;

pub use archive::ArchiveLimits;
pub use content::{Content, Source};
pub use load::Loader;
pub use metadata::{Dependency, ImportValue, Maintainer, Metadata};
pub use pattern::{BadPattern, Pattern};

use crate::values::Tree;

/// A file by its name inside the chart.
#[derive(Debug, Clone)]
pub struct File {
    /// Path with slashes, from the chart's root.
    pub name: String,
    /// Content; templates that read it share these bytes.
    pub data: Content,
    /// When it was changed last, in seconds of Unix; zero when nobody knows.
    pub modified: u64,
}

/// A file on its way into a chart.
#[derive(Debug)]
pub(crate) struct BufferedFile {
    pub(crate) name: String,
    /// What the loader reads; empty for a file that is only kept.
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

/// When the files were changed last that a chart does not keep as files; packages carry these times on.
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
    pub values: Tree,
    /// `values.yaml` as it is written; packages keep its comments.
    pub values_file: Option<Vec<u8>>,
    /// `values.schema.json`.
    pub schema: Option<Vec<u8>>,
    /// `Chart.lock` (or `requirements.lock`); null when there is none.
    pub lock: Tree,
    /// All other files, those of `crds/` among them.
    pub files: Vec<File>,
    /// What is in `charts/`, by folder name.
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
        let entry = |map: &Tree, key: &str| match map {
            Tree::Map(entries) => {
                entries.iter().find(|(k, _)| k.as_bytes() == key.as_bytes()).map(|(_, v)| v.clone())
            }
            _ => None,
        };
        let text = |map: &Tree, key: &str| match entry(map, key) {
            Some(Tree::Str(text)) => text.to_string(),
            _ => String::new(),
        };
        if self.lock == Tree::Null {
            return None;
        }
        let Some(Tree::List(items)) = entry(&self.lock, "dependencies") else { return Some(Vec::new()) };
        let read = |item: &Tree| Dependency {
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

/// The mark that some editors put before a text.
const BOM: &[u8] = b"\xef\xbb\xbf";

fn trim_bom(data: &mut Vec<u8>) {
    if data.starts_with(BOM) {
        data.drain(..BOM.len());
    }
}
