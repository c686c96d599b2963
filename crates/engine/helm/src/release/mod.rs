//! What a render gives: manifests in install order, hooks, notes, CRDs.

mod hook;
mod kinds;
mod manifest;
mod print;
mod reading;

pub use hook::{Hook, HookEvent};
pub(crate) use kinds::HELM_4_INSTALL_ORDER;
pub use kinds::{INSTALL_ORDER, UNINSTALL_ORDER, compare_kinds};
pub use manifest::{Manifest, split_documents, split_manifests};
pub use print::PrintOptions;
pub(crate) use reading::{ReadFile, Reader, Split};

use manifest::Head;
use reading::Document;

use crate::chart::Content;
use crate::chart::Dependency;
use crate::error::Error;
use crate::values::Tree;

/// A file of `crds/`.
#[derive(Debug, Clone, PartialEq)]
pub struct Crd {
    /// Its path with the charts it is in.
    pub source: String,
    /// Its text as it stands; templates do not run in it.
    pub data: Content,
}

/// A rendered chart.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Release {
    /// Manifests in the order they are installed.
    pub manifests: Vec<Manifest>,
    /// Hooks, sorted by kind.
    pub hooks: Vec<Hook>,
    /// What `NOTES.txt` printed.
    pub notes: String,
    /// CRDs of the chart and its subcharts.
    pub crds: Vec<Crd>,
    /// What a person should know: ignored values, unknown hooks.
    pub warnings: Vec<String>,
    /// The chart's dependency list as conditions and tags left it; `None` when `Chart.yaml` has none.
    pub dependencies: Option<Vec<Dependency>>,
    /// The chart's default values when values of subcharts were imported into them.
    pub imported_values: Option<Tree>,
}

/// Changes the manifests after rendering, before they are used.
pub trait PostRender {
    /// Takes all manifests as one text and gives the new one.
    fn run(&self, manifests: &str) -> Result<String, String>;
}

impl Release {
    /// Sorts rendered files (by path) into manifests and hooks, each in the order of their kinds.
    pub(crate) fn sort_files(&mut self, mut files: Vec<ReadFile>, order: &[&str]) -> Result<(), Error> {
        files.sort_by(|a, b| a.path.cmp(&b.path));
        for ReadFile { path, text, documents } in files {
            let documents = documents?;
            // Most files hold one document, which then is what is left of the text.
            let mut only = None;
            let single = documents.len() == 1;
            for Document { start, end, head } in documents {
                let content = &text[start..end];
                match Hook::read(&head, &path, content) {
                    Some(Ok(hook)) => self.hooks.push(hook),
                    Some(Err(notice)) => self.warnings.push(notice),
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
        kinds::sort_by_kind(&mut self.hooks, order, |h| &h.kind);
        kinds::sort_by_kind(&mut self.manifests, order, |m| &m.kind);
        Ok(())
    }

    /// All manifests as one text, each under a comment that names its template.
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
    /// Replaces the manifests by what a post-renderer makes of them. Which template one came from is then only known
    /// from the comment above it.
    pub(crate) fn post_render(&mut self, post_render: &dyn PostRender) -> Result<(), Error> {
        let changed = post_render.run(&self.manifest_text()).map_err(Error::PostRender)?;
        let mut manifests = Vec::new();
        for content in split_manifests(&changed) {
            let (comment, body) = content.split_once('\n').unwrap_or((content, ""));
            let (source, body) = match comment.strip_prefix("# Source: ") {
                Some(source) => (source.to_owned(), body),
                None => (String::new(), content),
            };
            let head = Head::read(body).map_err(|why| Error::output(&source, why, body))?;
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

/// The parts of a document as Helm prints it.
fn document<'a>(source: &'a str, content: &'a str) -> [&'a str; 5] {
    ["---\n# Source: ", source, "\n", content, "\n"]
}

/// Appends one document as Helm prints it.
pub fn push_document(text: &mut String, source: &str, content: &str) {
    document(source, content).into_iter().for_each(|part| text.push_str(part));
}

/// How many bytes [`push_document`] appends.
fn document_len(source: &str, content: usize) -> usize {
    document(source, "").map(str::len).iter().sum::<usize>() + content
}
