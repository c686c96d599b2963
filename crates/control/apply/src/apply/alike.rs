//! Writing new objects without a trial, where others that differ from them in a few values were tried and written a moment ago.
//!
//! A trial keeps a bad object from leaving half a set behind. Of a crowd made from one template the first ones are tried; that one of the
//! others is refused all the same (a name that is too long, a quota that is used up) is rare enough to take back then what was written.

use futures::StreamExt as _;

use super::{Applier, Done, Item, Refusal};
use crate::{Change, Delete, Owned, Sight, any_in_metadata};

/// An object that this call made. It was not there before, so it may go again.
struct Made {
    change: Change,
    live: Sight,
}

impl Applier {
    /// Writes what is new, tries and writes what is not. When something is refused before any of the tried ones is written, what was
    /// made goes again: the outcome is that of a trial.
    pub(super) async fn write_alike(&self, items: &[Item]) -> Result<Vec<Done>, Vec<String>> {
        let made = self.make(items).await;
        let rest: Vec<Item> = items
            .iter()
            .zip(&made)
            .filter(|(_, made)| made.is_none())
            .map(|(item, _)| item.clone())
            .collect();
        let mut tried = match self.write_tried(&rest).await {
            Ok(tried) => tried.into_iter(),
            Err(Refusal::Midway(errors)) => return Err(errors),
            Err(Refusal::Untouched(errors)) => {
                self.take_back(made.into_iter().flatten()).await;
                return Err(errors);
            }
        };
        // Both keep the order of the items.
        let done = made.into_iter().filter_map(|made| match made {
            Some(Made { change, live }) => Some((change, Some(live))),
            None => tried.next(),
        });
        Ok(done.collect())
    }

    /// Creates kind by kind, as far as all objects are new and taken.
    async fn make(&self, items: &[Item]) -> Vec<Option<Made>> {
        let mut made: Vec<Option<Made>> = Vec::with_capacity(items.len());
        for kind in items.chunk_by(|a, b| a.is_same_kind(b)) {
            if made.iter().any(Option::is_none) {
                break;
            }
            let mut creations = Vec::with_capacity(kind.len());
            for item in kind {
                creations.push(self.make_one(item));
            }
            let at_once = self.options.concurrency.max(1);
            let results: Vec<_> = futures::stream::iter(creations).buffered(at_once).collect().await;
            made.extend(results);
        }
        made.resize_with(items.len(), || None);
        made
    }

    async fn make_one(&self, item: &Item) -> Option<Made> {
        // What asks not to be deleted could not be taken back.
        if any_in_metadata(&item.object, &self.owner.keep()) {
            return None;
        }
        let target = self.untried(item).await?;
        let (change, live) = self.create(item, target).await?;
        Some(Made { change, live })
    }

    /// Deletes in the opposite order. What cannot be deleted now is what a pass that was cut off leaves behind: the next one finds it.
    async fn take_back(&self, made: impl DoubleEndedIterator<Item = Made>) {
        for Made { change, live } in made.rev() {
            self.forget(&change.object);
            if let Ok(Some(owned)) = Owned::by_labels(live.object(), &self.owner.labels()) {
                let _ = self.cluster.delete(&owned, Delete::default()).await;
            }
        }
    }
}
