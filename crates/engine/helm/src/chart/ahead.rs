//! Templates on their way to a thread that parses them while the archive is still unpacked.

use std::mem::take;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use fl_gotemplate::{Str, TemplateSet};

use crate::render::empty_set;

/// Whole paths of templates, and their texts.
pub(crate) type Batch = Vec<(Str, Str)>;

/// Bytes of text that are handed over at once: waking the other thread for each file would cost what it saves.
const BATCH: usize = 64 << 10;

/// Collects templates and hands them over; the last of them when it is dropped.
pub(crate) struct Ahead {
    to: Option<Sender<Batch>>,
    batch: Batch,
    bytes: usize,
}

impl Ahead {
    pub(crate) fn new(to: Sender<Batch>) -> Self {
        Self { to: Some(to), batch: Batch::new(), bytes: 0 }
    }

    /// Nobody parses templates yet.
    pub(crate) fn nobody() -> Self {
        Self { to: None, batch: Batch::new(), bytes: 0 }
    }

    /// Takes the whole path of a template and its text.
    pub(crate) fn found(&mut self, path: &str, text: &Str) {
        if self.to.is_none() {
            return;
        }
        self.batch.push((path.into(), text.clone()));
        self.bytes += text.len();
        if self.bytes >= BATCH {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        self.bytes = 0;
        if let Some(to) = &self.to {
            // Who does not listen any more wants no templates.
            let _ = to.send(take(&mut self.batch));
        }
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.hand_over();
    }
}

/// The next batch, for whichever thread asks; nothing when there will be no more.
pub(crate) fn next_batch(from: &Mutex<Receiver<Batch>>) -> Option<Batch> {
    // Who waits for a batch keeps the others from asking, who would have to wait as well.
    from.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

/// Parses all templates that nobody has taken yet.
pub(crate) fn parse_rest(from: &Mutex<Receiver<Batch>>) -> TemplateSet {
    let mut set = empty_set();
    set.parse_ahead(std::iter::from_fn(|| next_batch(from)).flatten());
    set
}

/// The templates of a chart that were parsed, or are being parsed, before anybody rendered it.
#[derive(Debug)]
pub(crate) struct First {
    set: TemplateSet,
    rest: Option<Rest>,
}

/// Templates that wait, and the thread that works on them.
#[derive(Debug)]
pub(crate) struct Rest {
    pub(crate) texts: Arc<Mutex<Receiver<Batch>>>,
    pub(crate) thread: JoinHandle<TemplateSet>,
}

impl First {
    pub(crate) fn new(set: TemplateSet, rest: Rest) -> Self {
        Self { set, rest: Some(rest) }
    }

    /// Nothing was parsed yet.
    pub(crate) fn nothing() -> Self {
        Self { set: empty_set(), rest: None }
    }

    /// The set with all that was parsed.
    pub(crate) fn finish(self) -> TemplateSet {
        let Self { mut set, rest } = self;
        if let Some(Rest { texts, thread }) = rest {
            set.parse_ahead(std::iter::from_fn(|| next_batch(&texts)).flatten());
            set.take_ahead(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        set
    }
}
