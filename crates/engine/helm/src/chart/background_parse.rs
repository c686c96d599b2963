//! Parses templates on a second thread while the archive is still being unpacked.

use std::mem::take;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use fl_gotemplate::{Str, TemplateSet};

use crate::render::empty_set;

/// Full paths of templates and their text.
pub(crate) type TemplateBatch = Vec<(Str, Str)>;

/// Bytes of text per batch. Waking the other thread for each file would cost as much as it saves.
const BATCH_BYTES: usize = 64 << 10;

/// Sends templates to the parsing thread in batches. The last batch is sent on drop.
pub(crate) struct TemplateQueue {
    sender: Option<Sender<TemplateBatch>>,
    batch: TemplateBatch,
    bytes: usize,
}

impl TemplateQueue {
    pub(crate) fn new(sender: Sender<TemplateBatch>) -> Self {
        Self { sender: Some(sender), batch: TemplateBatch::new(), bytes: 0 }
    }

    /// A queue that discards its templates, for charts that are parsed later.
    pub(crate) fn disabled() -> Self {
        Self { sender: None, batch: TemplateBatch::new(), bytes: 0 }
    }

    /// Adds a template by its full path.
    pub(crate) fn push(&mut self, path: &str, text: &Str) {
        if self.sender.is_none() {
            return;
        }
        self.batch.push((path.into(), text.clone()));
        self.bytes += text.len();
        if self.bytes >= BATCH_BYTES {
            self.flush();
        }
    }

    fn flush(&mut self) {
        self.bytes = 0;
        if let Some(sender) = &self.sender {
            // The receiver is gone if the chart failed to load; its templates are not needed then.
            let _ = sender.send(take(&mut self.batch));
        }
    }
}

impl Drop for TemplateQueue {
    fn drop(&mut self) {
        self.flush();
    }
}

/// Returns the next batch, or `None` when the queue is closed and empty.
pub(crate) fn next_batch(from: &Mutex<Receiver<TemplateBatch>>) -> Option<TemplateBatch> {
    // Holding the lock while waiting is fine: other threads would have to wait for the same batch.
    from.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

/// Parses the templates that are left in the queue.
pub(crate) fn parse_remaining(from: &Mutex<Receiver<TemplateBatch>>) -> TemplateSet {
    let mut set = empty_set();
    set.pre_parse(std::iter::from_fn(|| next_batch(from)).flatten());
    set
}

/// Templates of a chart that were parsed, or are being parsed, before its first render.
#[derive(Debug)]
pub(crate) struct ParsedTemplates {
    set: TemplateSet,
    rest: Option<PendingTemplates>,
}

/// Templates that are not parsed yet, and the thread that parses them.
#[derive(Debug)]
pub(crate) struct PendingTemplates {
    pub(crate) texts: Arc<Mutex<Receiver<TemplateBatch>>>,
    pub(crate) thread: JoinHandle<TemplateSet>,
}

impl ParsedTemplates {
    pub(crate) fn new(set: TemplateSet, rest: PendingTemplates) -> Self {
        Self { set, rest: Some(rest) }
    }

    /// No templates were parsed.
    pub(crate) fn empty() -> Self {
        Self { set: empty_set(), rest: None }
    }

    /// Waits for the second thread and returns the complete set.
    pub(crate) fn finish(self) -> TemplateSet {
        let Self { mut set, rest } = self;
        if let Some(PendingTemplates { texts, thread }) = rest {
            set.pre_parse(std::iter::from_fn(|| next_batch(&texts)).flatten());
            set.merge_pre_parsed(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        set
    }
}
