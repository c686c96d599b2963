//! The context of one reconcile: the object, its log and events, and how its status is written.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::events::InvolvedObject;
use crate::log::Log;
use crate::resource::Reconciled;
use crate::result::EventKind;
use crate::runtime::Runtime;
use crate::status_patch::Writer;
use fl_client::KnownSecrets;
use fl_client::{Client, Error as ClientError};
use fl_client::{Key, Kind};

/// A reconcile shorter than this writes no progress, only its result; longer ones at most once per interval.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);
/// With every further multiple of this many queued objects the first progress update is delayed by another
/// second: under load, progress updates would slow down the work they report.
const BATCH_THRESHOLD: usize = 4;
/// Maximum delay of the first progress update, in seconds.
const MAX_PROGRESS_DELAY_SECONDS: usize = 10;

/// The progress update that is to be written next.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// The status.
    pending: Mutex<Option<Value>>,
}

/// The context of a reconcile. Set the status of [`Context::object`] as the reconcile proceeds; it is written
/// once, at the end.
#[derive(Debug)]
pub struct Context<T: Reconciled> {
    /// The object. The reconciler writes its status and conditions.
    pub object: T,
    /// The object at the start of the reconcile.
    pub original: Arc<T>,
    /// Logger with the object's name and the reconcile ID.
    pub log: Log,
    pub runtime: Runtime,
    /// Secret values read by this reconcile. They are masked in logs, events and conditions.
    pub secrets: KnownSecrets,
    pub started: Instant,
    pub(crate) component: &'static str,
    pub(crate) kind: Kind,
    pub(crate) writer: Arc<tokio::sync::Mutex<Writer>>,
    pub(crate) progress: Arc<Progress>,
}

impl<T: Reconciled> Context<T> {
    pub fn key(&self) -> Key {
        self.kind.key(self.object.namespace(), self.object.name())
    }

    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// The client of the engine's own cluster.
    pub fn cluster(&self) -> &Client {
        self.runtime.cluster()
    }

    /// Whether there is a reconcile request that was not handled yet.
    pub fn requested(&self) -> bool {
        self.object.requested_at().is_some_and(|at| self.original.last_handled() != Some(at))
    }

    /// Records an event about the object.
    pub fn event(&self, kind: EventKind, reason: &str, message: &str) {
        self.event_with(kind, reason, message, BTreeMap::new());
    }

    /// Records an event with metadata; the object's API group is prefixed to each key.
    pub fn event_with(&self, kind: EventKind, reason: &str, message: &str, metadata: BTreeMap<&str, String>) {
        let masked = |value: &str| self.secrets.mask(value).to_string();
        let metadata = metadata.iter().map(|(k, v)| (format!("{}/{k}", T::GROUP), masked(v))).collect();
        let recorder = self.runtime.recorder().named(self.component);
        recorder.event(
            &InvolvedObject::of(&self.object),
            kind,
            reason,
            &self.secrets.mask(message),
            metadata,
        );
    }

    /// Schedules a progress update with the current status; written only if the reconcile takes long enough.
    /// Cheap.
    pub fn progress(&self) {
        let status = self.object.status_value();
        *self.progress.pending.lock().unwrap_or_else(PoisonError::into_inner) = Some(status);
    }

    /// Writes the status now. For state that must survive a crash; everything else is written at the end.
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
        self.runtime.informers().written(&self.kind, object);
    }
}

/// The delay of the first progress update while `due` objects are queued or running.
fn progress_delay(due: usize) -> Duration {
    let times = (due / BATCH_THRESHOLD).clamp(1, MAX_PROGRESS_DELAY_SECONDS);
    PROGRESS_EVERY * u32::try_from(times).unwrap_or(1)
}

/// Writes progress updates of a running reconcile; `due` returns the number of queued and running objects.
/// Never returns.
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
        if started.elapsed() < progress_delay(due()) {
            continue;
        }
        let mut writer = writer.clone().lock_owned().await;
        let pending = progress.pending.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(status) = pending else { continue };
        let (runtime, kind, log) = (runtime.clone(), kind.clone(), log.clone());
        // Spawned, so that a reconcile that ends meanwhile waits for the writer instead of conflicting with
        // its write.
        let written = tokio::spawn(async move {
            match writer.status(runtime.cluster(), status).await {
                Ok(Some(object)) => {
                    drop(writer);
                    runtime.informers().written(&kind, object);
                }
                Ok(None) => {}
                // The result is written later anyway; a lost progress update is not an error.
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
    fn progress_updates_are_delayed_under_load() {
        let seconds = [0, 1, 7, 8, 20, 39, 40, 1000].map(|due| progress_delay(due).as_secs());
        assert_eq!(seconds, [1, 1, 1, 2, 5, 9, 10, 10]);
    }
}
