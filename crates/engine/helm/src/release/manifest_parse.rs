//! Splits rendered files into documents and parses their heads, concurrently with rendering.

use std::mem::take;
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;

use super::manifest::{Head, split_documents, split_manifests};
use crate::error::Error;

/// How files are split into documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Split {
    /// White space around documents is dropped.
    Helm3,
    /// White space after the last document of a file is kept.
    Helm4,
}

/// A rendered file and its documents.
pub(crate) struct ParsedFile {
    pub(super) path: String,
    pub(super) text: String,
    pub(super) documents: Result<Vec<Document>, Error>,
}

/// A document: its range in the text and its head.
pub(super) struct Document {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) head: Head,
}

impl ParsedFile {
    pub(super) fn new((path, text): (String, String), split: Split) -> Self {
        let contents = match split {
            _ if text.trim().is_empty() => Vec::new(),
            Split::Helm3 => split_manifests(&text),
            Split::Helm4 => split_documents(&text),
        };
        let document = |content: &str| {
            let head = Head::read(content).map_err(|why| Error::output(&path, &why, content))?;
            let start = content.as_ptr() as usize - text.as_ptr() as usize;
            Ok(Document { start, end: start + content.len(), head })
        };
        let documents = contents.into_iter().map(document).collect();
        Self { path, text, documents }
    }
}

/// Bytes of text per batch. Waking the second thread for each file would cost as much as it saves.
const BATCH_BYTES: usize = 64 << 10;

/// Parses files while others are rendered. A second thread is started once there are many.
pub(crate) struct ManifestParser {
    split: Split,
    batch: Vec<(String, String)>,
    bytes: usize,
    helper: Option<ParserThread>,
}

struct ParserThread {
    batches: Sender<Vec<(String, String)>>,
    thread: JoinHandle<Vec<ParsedFile>>,
}

impl ManifestParser {
    pub(crate) fn new(split: Split) -> Self {
        Self { split, batch: Vec::new(), bytes: 0, helper: None }
    }

    /// Adds a rendered file.
    pub(crate) fn add(&mut self, path: String, text: String) {
        self.bytes += text.len();
        self.batch.push((path, text));
        if self.bytes < BATCH_BYTES {
            return;
        }
        self.bytes = 0;
        if self.helper.is_none() {
            self.helper = ParserThread::start(self.split);
        }
        if let Some(helper) = &self.helper {
            // The send fails only if the thread panicked, which `finish` reports.
            let _ = helper.batches.send(take(&mut self.batch));
        }
    }

    /// Returns all files, in no particular order.
    pub(crate) fn finish(self) -> Vec<ParsedFile> {
        let Self { split, batch, helper, .. } = self;
        let thread = helper.map(|helper| helper.thread);
        let mut files: Vec<_> = batch.into_iter().map(|file| ParsedFile::new(file, split)).collect();
        if let Some(thread) = thread {
            files.extend(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        files
    }
}

impl ParserThread {
    /// `None` if no thread can be started; then everything is parsed in `finish`.
    fn start(split: Split) -> Option<Self> {
        let (batches, waiting) = mpsc::channel::<Vec<_>>();
        let read = move || waiting.into_iter().flatten().map(|file| ParsedFile::new(file, split)).collect();
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
    fn parallel_parsing_equals_sequential_parsing() {
        let filler = "# filler\n".repeat(1000);
        let file = |n: usize| (format!("c/{n:03}.yaml"), format!("{filler}kind: K{n}\n---\nkind: L\n"));
        let mut reader = ManifestParser::new(Split::Helm3);
        (0..100).rev().map(file).for_each(|(path, text)| reader.add(path, text));
        let mut release = Release::default();
        release.sort_files(reader.finish(), INSTALL_ORDER).expect("all are manifests");
        let mut few = Release::default();
        few.sort_files((0..100).map(|n| ParsedFile::new(file(n), Split::Helm3)).collect(), INSTALL_ORDER)
            .expect("as above");
        assert_eq!(release.manifests.len(), 200);
        assert_eq!(release, few);
    }

    #[test]
    fn first_invalid_file_by_path_is_reported() {
        let filler = "# filler\n".repeat(10_000);
        let mut reader = ManifestParser::new(Split::Helm3);
        for path in ["c/3.yaml", "c/1.yaml", "c/2.yaml"] {
            let text = if path == "c/1.yaml" { "kind: K" } else { "kind: [" };
            reader.add(path.to_owned(), format!("{filler}{text}"));
        }
        let error =
            Release::default().sort_files(reader.finish(), INSTALL_ORDER).expect_err("two are broken");
        assert!(error.to_string().contains("c/2.yaml"), "{error}");
    }
}
