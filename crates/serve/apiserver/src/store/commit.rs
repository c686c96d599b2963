//! Commits: from a write to its acknowledgement.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::oneshot;

use super::encoding::UnversionedObject;
use super::state::Write;
use super::writer::WriteResult;
use super::{Change, Entry, MAX_OBJECT, Precondition, Store, StoreError, Sync, durability};

/// Waits for the acknowledgement of the writer thread.
async fn acknowledged(ack: oneshot::Receiver<WriteResult>) -> Result<(), StoreError> {
    match ack.await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(failure)) => Err(StoreError::Failed(failure)),
        Err(_) => Err(StoreError::Closed),
    }
}

impl Store {
    /// Writes one object if `precondition` holds. Returns when the write is as durable as [`Sync`] demands.
    pub async fn commit(
        &self,
        table: &str,
        key: &str,
        precondition: Precondition,
        change: Change,
    ) -> Result<Arc<Entry>, StoreError> {
        let (entry, ack) = self.enqueue(table, key, precondition, change)?;
        if let Some(ack) = ack {
            acknowledged(ack).await?;
        }
        Ok(entry)
    }

    /// [`Store::commit`] for controllers, which have no caller to return an error to: waits while the store
    /// rejects writes, then returns a conflict so that the object is read again.
    pub(crate) async fn commit_when_writable(
        &self,
        table: &str,
        key: &str,
        precondition: Precondition,
        change: Change,
    ) -> Result<Arc<Entry>, StoreError> {
        match self.commit(table, key, precondition, change).await {
            Err(StoreError::Unavailable(_) | StoreError::Failed(_)) => {
                self.shared.writable().await;
                Err(StoreError::Conflict)
            }
            other => other,
        }
    }

    /// Waits until a pending write that a request has read is durable.
    pub(super) async fn wait_for(&self, seen: durability::PendingRead) -> Result<(), StoreError> {
        let ack = {
            let sequencer = self.shared.sequence();
            if seen.is_lost(&sequencer.failures) {
                return Err(sequencer.lost());
            }
            match &self.writer {
                Some(writer) if self.revision() < seen.revision => writer.barrier(),
                _ => return Ok(()),
            }
        };
        acknowledged(ack).await
    }

    /// Checks the precondition, assigns the revision and queues the write. The receiver is `None` if the write
    /// needs no acknowledgement.
    fn enqueue(
        &self,
        table: &str,
        key: &str,
        precondition: Precondition,
        change: Change,
    ) -> Result<(Arc<Entry>, Option<oneshot::Receiver<WriteResult>>), StoreError> {
        let (table, key): (Arc<str>, Arc<str>) = (Arc::from(table), Arc::from(key));
        let id = (table.clone(), key.clone());
        let (delete, mut value) = match change {
            Change::Put(value) => (false, value),
            Change::Delete(value) => (true, value),
        };
        // Encoded before the lock is taken, which all writers share.
        let text = UnversionedObject::write(&value);
        let mut sequencer = self.shared.sequence();
        if let Some(failure) = &sequencer.failed {
            return Err(StoreError::Unavailable(failure.clone()));
        }
        let current = match sequencer.pending.get(&id) {
            Some(write) => {
                sequencer.record_read(write);
                (!write.delete).then_some(write.revision)
            }
            None => self.get(&table, &key).map(|e| e.revision),
        };
        let holds = match precondition {
            Precondition::Absent => current.is_none(),
            Precondition::Revision(revision) => current == Some(revision),
        };
        if !holds {
            return Err(StoreError::Conflict);
        }
        let revision = sequencer.last + 1;
        let bytes = text.with_revision(revision);
        if bytes.len() > MAX_OBJECT && !delete {
            return Err(StoreError::TooLarge);
        }
        let entry = Arc::new(Entry { revision, bytes });
        let write = Write { table, key, revision, delete, entry: entry.clone() };
        sequencer.last = revision;
        let ack = match (&self.writer, self.sync) {
            (Some(writer), Sync::Always) => {
                sequencer.pending.insert(id, write.clone());
                Some(writer.send(write))
            }
            (writer, _) => {
                self.shared.write().apply(&write);
                if let Some(writer) = writer {
                    writer.send_without_ack(write);
                }
                None
            }
        };
        drop(sequencer);
        if !delete {
            if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.insert("resourceVersion".to_owned(), Value::from(revision.to_string()));
            }
            debug_assert_eq!(value, entry.value(), "what is held is what was written");
            self.shared.cache.insert(revision, current, entry.bytes.len(), value);
        }
        Ok((entry, ack))
    }
}
