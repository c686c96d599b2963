//! One pass over one object: the object, what it may tell, and how it is saved.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::events::About;
use crate::failure::EventKind;
use crate::log::Log;
use crate::object::Reconciled;
use crate::patch::Writer;
use crate::runtime::Runtime;
use fl_client::KnownSecrets;
use fl_client::{Client, Error as ClientError};
use fl_client::{Key, Kind};

/// A pass shorter than this writes no progress, only its end; later at most once in this time.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);
/// Among this many objects that are due each pass takes longer by itself. With every further so many the first words come a second
/// later: a crowd that tells of its steps is slower for it.
const CROWD: usize = 4;
/// So many seconds later at most.
const PATIENCE: usize = 10;

/// Where progress waits to be written.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// A status.
    pending: Mutex<Option<Value>>,
}

/// What a reconciler works on. Change [`Pass::object`]'s status as things happen; it is written once, at the end.
#[derive(Debug)]
pub struct Pass<T: Reconciled> {
    /// The object. Its spec is what is wanted; its status and conditions are the reconciler's to write.
    pub object: T,
    /// As it was when the pass began.
    pub original: Arc<T>,
    /// Carries the object's name and the id of the pass.
    pub log: Log,
    pub runtime: Runtime,
    /// Secret values that this pass has read. What it logs, records and writes into conditions shows none of them.
    pub secrets: KnownSecrets,
    pub started: Instant,
    pub(crate) component: &'static str,
    pub(crate) kind: Kind,
    pub(crate) writer: Arc<tokio::sync::Mutex<Writer>>,
    pub(crate) progress: Arc<Progress>,
}

impl<T: Reconciled> Pass<T> {
    pub fn key(&self) -> Key {
        self.kind.key(self.object.namespace(), self.object.name())
    }

    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// The engine's own connection.
    pub fn cluster(&self) -> &Client {
        self.runtime.cluster()
    }

    /// Whether this pass was asked for by annotation and not yet handled.
    pub fn requested(&self) -> bool {
        self.object.requested_at().is_some_and(|at| self.original.last_handled() != Some(at))
    }

    /// Records an event about the object.
    pub fn event(&self, kind: EventKind, reason: &str, message: &str) {
        self.event_with(kind, reason, message, BTreeMap::new());
    }

    /// Records an event with metadata; the object's API group is put before each key.
    pub fn event_with(&self, kind: EventKind, reason: &str, message: &str, metadata: BTreeMap<&str, String>) {
        let metadata = metadata.into_iter().map(|(k, v)| (format!("{}/{k}", T::GROUP), v)).collect();
        let recorder = self.runtime.recorder().named(self.component);
        recorder.event(&About::of(&self.object), kind, reason, &self.secrets.mask(message), metadata);
    }

    /// Lets others see the state so far, when the pass takes long enough for that to matter. Cheap to call often.
    pub fn progress(&self) {
        let status = self.object.status_value();
        *self.progress.pending.lock().unwrap_or_else(PoisonError::into_inner) = Some(status);
    }

    /// Writes the status now. For what must survive a crash; everything else waits for the end of the pass.
    pub async fn save(&mut self) -> Result<(), ClientError> {
        self.progress.pending.lock().unwrap_or_else(PoisonError::into_inner).take();
        let status = self.object.status_value();
        let mut writer = self.writer.lock().await;
        if let Some(object) = writer.status(self.runtime.cluster(), status).await? {
            drop(writer);
            self.written(object);
        }
        Ok(())
    }

    /// Writes labels, annotations and finalizers now.
    pub async fn save_metadata(&mut self) -> Result<(), ClientError> {
        let meta = serde_json::to_value(self.object.meta()).unwrap_or_default();
        let mut writer = self.writer.lock().await;
        if let Some(object) = writer.metadata(self.runtime.cluster(), &meta).await? {
            drop(writer);
            self.written(object);
        }
        Ok(())
    }

    fn written(&mut self, object: Value) {
        let version = object["metadata"]["resourceVersion"].as_str().map(str::to_owned);
        self.object.meta_mut().resource_version = version;
        self.runtime.hub().written(&self.kind, object);
    }
}

/// How long a pass goes on before it tells where it is, while so many objects are worked on or wait for it.
fn patience(due: usize) -> Duration {
    let times = (due / CROWD).clamp(1, PATIENCE);
    PROGRESS_EVERY * u32::try_from(times).unwrap_or(1)
}

/// Writes progress beside a running pass; `due` says how many objects are worked on or wait for it. Ends only by being dropped.
pub(crate) async fn report(
    runtime: &Runtime,
    kind: &Kind,
    writer: &Arc<tokio::sync::Mutex<Writer>>,
    progress: &Progress,
    log: &Log,
    due: impl Fn() -> usize,
) {
    let started = Instant::now();
    loop {
        tokio::time::sleep(PROGRESS_EVERY).await;
        if started.elapsed() < patience(due()) {
            continue;
        }
        let mut writer = writer.clone().lock_owned().await;
        let pending = progress.pending.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(status) = pending else { continue };
        let (runtime, kind, log) = (runtime.clone(), kind.clone(), log.clone());
        // Begun is done: a pass that ends meanwhile waits for the writer, instead of meeting a version it does not know.
        let written = tokio::spawn(async move {
            match writer.status(runtime.cluster(), status).await {
                Ok(Some(object)) => {
                    drop(writer);
                    runtime.hub().written(&kind, object);
                }
                Ok(None) => {}
                // The end of the pass writes again; progress is not worth failing for.
                Err(error) => log.debug(&format!("progress was not written: {error}")),
            }
        });
        let _ = written.await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_waits_longer_before_it_tells_of_its_steps() {
        let seconds = [0, 1, 7, 8, 20, 39, 40, 1000].map(|due| patience(due).as_secs());
        assert_eq!(seconds, [1, 1, 1, 2, 5, 9, 10, 10]);
    }
}
