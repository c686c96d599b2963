//! Result of a render: manifests in install order, hooks, notes, CRDs.

mod hook;
mod install_order;
mod manifest;
mod manifest_parse;
mod print;

pub use hook::{Hook, HookEvent};
pub(crate) use install_order::HELM_4_INSTALL_ORDER;
pub use install_order::{INSTALL_ORDER, UNINSTALL_ORDER, compare_kinds};
pub use manifest::{Manifest, split_documents, split_manifests};
pub(crate) use manifest_parse::{ManifestParser, ParsedFile, Split};
pub use print::PrintOptions;

use manifest::Head;
use manifest_parse::Document;

use crate::chart::Content;
use crate::chart::Dependency;
use crate::error::Error;
use crate::values::JsonValue;

/// A file of `crds/`.
#[derive(Debug, Clone, PartialEq)]
pub struct Crd {
    /// Path, including the charts it is in.
    pub source: String,
    /// Content as is; CRDs are not templates.
    pub data: Content,
}

/// A rendered chart.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Release {
    /// Manifests in install order.
    pub manifests: Vec<Manifest>,
    /// Hooks, sorted by kind.
    pub hooks: Vec<Hook>,
    /// Output of `NOTES.txt`.
    pub notes: String,
    /// CRDs of the chart and its subcharts.
    pub crds: Vec<Crd>,
    /// Warnings for the user: ignored values, unknown hooks.
    pub warnings: Vec<String>,
    /// The chart's dependency list after conditions and tags; `None` if `Chart.yaml` has none.
    pub dependencies: Option<Vec<Dependency>>,
    /// The chart's default values if values of subcharts were imported into them.
    pub imported_values: Option<JsonValue>,
}

/// A post-renderer: changes the manifests after rendering.
pub trait PostRender {
    /// Takes all manifests as one text and returns the new text.
    fn run(&self, manifests: &str) -> Result<String, String>;
}

impl Release {
    /// Sorts rendered files (by path) into manifests and hooks, each in install order.
    pub(crate) fn sort_files(&mut self, mut files: Vec<ParsedFile>, order: &[&str]) -> Result<(), Error> {
        files.sort_by(|a, b| a.path.cmp(&b.path));
        for ParsedFile { path, text, documents } in files {
            let documents = documents?;
            // Most files contain one document, which can reuse the file's buffer.
            let mut only = None;
            let single = documents.len() == 1;
            for Document { start, end, head } in documents {
                let content = &text[start..end];
                match Hook::read(&head, &path, content) {
                    Some(Ok(hook)) => self.hooks.push(hook),
                    Some(Err(unknown)) => self.warnings.push(unknown.to_string()),
                    None => {
                        only = single.then_some((start, end));
                        self.manifests.push(Manifest {
                            source: path.clone(),
                            api_version: head.api_version,
                            kind: head.kind,
                            name: head.name,
                            content: if single { String::new() } else { content.to_owned() },
                        });
                    }
                }
            }
            if let (Some((start, end)), Some(manifest)) = (only, self.manifests.last_mut()) {
                manifest.content = text;
                manifest.content.truncate(end);
                manifest.content.drain(..start);
            }
        }
        install_order::sort_by_kind(&mut self.hooks, order, |h| &h.kind);
        install_order::sort_by_kind(&mut self.manifests, order, |m| &m.kind);
        Ok(())
    }

    /// All manifests as one text, each with a `# Source:` comment.
    pub fn manifest_text(&self) -> String {
        let bytes: usize = self.manifests.iter().map(|m| document_len(&m.source, m.content.len())).sum();
        let mut text = String::with_capacity(bytes);
        for manifest in &self.manifests {
            push_document(&mut text, &manifest.source, &manifest.content);
        }
        text
    }
}

impl Release {
    /// Replaces the manifests by the output of a post-renderer. The template of a manifest is then only known
    /// from its `# Source:` comment.
    pub(crate) fn post_render(&mut self, post_render: &dyn PostRender) -> Result<(), Error> {
        let changed = post_render.run(&self.manifest_text()).map_err(Error::PostRender)?;
        let mut manifests = Vec::new();
        for content in split_manifests(&changed) {
            let (comment, body) = content.split_once('\n').unwrap_or((content, ""));
            let (source, body) = match comment.strip_prefix("# Source: ") {
                Some(source) => (source.to_owned(), body),
                None => (String::new(), content),
            };
            let head = Head::read(body).map_err(|why| Error::output(&source, &why, body))?;
            manifests.push(Manifest {
                source,
                api_version: head.api_version,
                kind: head.kind,
                name: head.name,
                content: body.to_owned(),
            });
        }
        self.manifests = manifests;
        Ok(())
    }
}

/// The parts of a document in Helm's output.
fn document<'a>(source: &'a str, content: &'a str) -> [&'a str; 5] {
    ["---\n# Source: ", source, "\n", content, "\n"]
}

/// Appends one document in Helm's output format.
pub fn push_document(text: &mut String, source: &str, content: &str) {
    document(source, content).into_iter().for_each(|part| text.push_str(part));
}

/// Number of bytes that [`push_document`] appends.
fn document_len(source: &str, content: usize) -> usize {
    document(source, "").map(str::len).iter().sum::<usize>() + content
}
