//! Rendered files on their way into a release: cut into documents and their heads read, beside the rendering of others.

use std::mem::take;
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;

use super::manifest::{Head, split_documents, split_manifests};
use crate::error::Error;

/// How files are cut into documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Split {
    /// Blanks around documents go.
    Helm3,
    /// What follows the last document of a file stays.
    Helm4,
}

/// A rendered file whose documents are known.
pub(crate) struct ReadFile {
    pub(super) path: String,
    pub(super) text: String,
    pub(super) documents: Result<Vec<Document>, Error>,
}

/// A document of a file: where it lies in the text, and how it begins.
pub(super) struct Document {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) head: Head,
}

impl ReadFile {
    pub(super) fn new((path, text): (String, String), split: Split) -> Self {
        let contents = match split {
            _ if text.trim().is_empty() => Vec::new(),
            Split::Helm3 => split_manifests(&text),
            Split::Helm4 => split_documents(&text),
        };
        let document = |content: &str| {
            let head = Head::read(content).map_err(|why| Error::output(&path, why, content))?;
            let start = content.as_ptr() as usize - text.as_ptr() as usize;
            Ok(Document { start, end: start + content.len(), head })
        };
        let documents = contents.into_iter().map(document).collect();
        Self { path, text, documents }
    }
}

/// Bytes of text that are handed to the second thread at once: waking it for each file would cost what it saves.
const BATCH: usize = 64 << 10;

/// Takes files as they are rendered. When there are many, a second thread reads them meanwhile.
pub(crate) struct Reader {
    split: Split,
    batch: Vec<(String, String)>,
    bytes: usize,
    helper: Option<Helper>,
}

struct Helper {
    batches: Sender<Vec<(String, String)>>,
    thread: JoinHandle<Vec<ReadFile>>,
}

impl Reader {
    pub(crate) fn new(split: Split) -> Self {
        Self { split, batch: Vec::new(), bytes: 0, helper: None }
    }

    /// Takes the path of a file and its text.
    pub(crate) fn add(&mut self, path: String, text: String) {
        self.bytes += text.len();
        self.batch.push((path, text));
        if self.bytes < BATCH {
            return;
        }
        self.bytes = 0;
        if self.helper.is_none() {
            self.helper = Helper::start(self.split);
        }
        if let Some(helper) = &self.helper {
            // Only a thread that panicked does not listen, which comes to light at the end.
            let _ = helper.batches.send(take(&mut self.batch));
        }
    }

    /// All files, in no order.
    pub(crate) fn finish(self) -> Vec<ReadFile> {
        let Self { split, batch, helper, .. } = self;
        let thread = helper.map(|helper| helper.thread);
        let mut files: Vec<_> = batch.into_iter().map(|file| ReadFile::new(file, split)).collect();
        if let Some(thread) = thread {
            files.extend(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        files
    }
}

impl Helper {
    /// None when there are no more threads to have; then everything is read at the end.
    fn start(split: Split) -> Option<Self> {
        let (batches, waiting) = mpsc::channel::<Vec<_>>();
        let read = move || waiting.into_iter().flatten().map(|file| ReadFile::new(file, split)).collect();
        let thread = std::thread::Builder::new().spawn(read).ok()?;
        Some(Self { batches, thread })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::release::INSTALL_ORDER;
    use crate::release::Release;

    #[test]
    fn many_files_are_read_as_few_are() {
        let filler = "# filler\n".repeat(1000);
        let file = |n: usize| (format!("c/{n:03}.yaml"), format!("{filler}kind: K{n}\n---\nkind: L\n"));
        let mut reader = Reader::new(Split::Helm3);
        (0..100).rev().map(file).for_each(|(path, text)| reader.add(path, text));
        let mut release = Release::default();
        release.sort_files(reader.finish(), INSTALL_ORDER).expect("all are manifests");
        let mut few = Release::default();
        few.sort_files((0..100).map(|n| ReadFile::new(file(n), Split::Helm3)).collect(), INSTALL_ORDER)
            .expect("as above");
        assert_eq!(release.manifests.len(), 200);
        assert_eq!(release, few);
    }

    #[test]
    fn the_first_broken_file_by_path_is_told() {
        let filler = "# filler\n".repeat(10_000);
        let mut reader = Reader::new(Split::Helm3);
        for path in ["c/3.yaml", "c/1.yaml", "c/2.yaml"] {
            let text = if path == "c/1.yaml" { "kind: K" } else { "kind: [" };
            reader.add(path.to_owned(), format!("{filler}{text}"));
        }
        let error =
            Release::default().sort_files(reader.finish(), INSTALL_ORDER).expect_err("two are broken");
        assert!(error.to_string().contains("c/2.yaml"), "{error}");
    }
}
