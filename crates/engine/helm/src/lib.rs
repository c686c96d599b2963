//! A Helm engine: charts and values in, manifests and hooks out, byte for byte as Helm v3.
//!
//! - Load a chart once: [`Loader`] reads directories (through [`Files`]) and archives.
//! - Compile it once: [`CompiledChart`] keeps parsed templates and can be shared between threads.
//! - Render it many times: [`CompiledChart::render`] with [`Overrides`] (files, `--set`) and
//!   [`RenderOptions`] returns a [`Release`] of manifests, hooks, notes and CRDs.
//!
//! This crate does not read the clock, the environment or the network. Template functions that need them call
//! [`fl_sprig::HostContext`].

mod capabilities;
mod chart;
mod decode;
mod dependencies;
mod error;
mod files;
mod index;
mod package;
mod release;
mod render;
mod values;

pub use capabilities::{Capabilities, KubeVersion};
pub use chart::{
    ArchiveLimits, ArchiveSource, BadPattern, Chart, Content, Dependency, File, ImportValue, Loader,
    Maintainer, Metadata, Pattern,
};
pub use decode::DecodeError;
pub use error::{Error, LoadError};
pub use files::{DiskFiles, Entry, Files, Kind, Links, MemoryFiles};
pub use index::{IndexError, ListedVersion, RepositoryIndex, find_versions};
pub use package::{
    PackageError, archive_metadata, chart_metadata, merge_values, metadata_json, package, values_from_yaml,
};
pub use release::{
    Crd, Hook, HookEvent, INSTALL_ORDER, Manifest, PostRender, PrintOptions, Release, UNINSTALL_ORDER,
    compare_kinds, push_document, split_documents, split_manifests,
};
pub use render::{
    CompiledChart, ReleaseOptions, RenderOptions, RenderedFiles, check_release_name,
    release_name_from_template,
};
pub use values::{JsonValue, Overrides, SetError, SetKind, check_schema};
