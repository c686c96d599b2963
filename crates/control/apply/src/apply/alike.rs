//! Writing new objects without a trial, where others that differ from them in a few values were tried and written a moment ago.
//!
//! A trial keeps a bad object from leaving half a set behind. Of a crowd made from one template the first ones are tried; that one of the
//! others is refused all the same (a name that is too long, a quota that is used up) is rare enough to take back then what was written.

use futures::StreamExt as _;

use super::{Applier, Done, Item, Refusal};
use crate::{ApiError, Change, Delete, Owned, Sight, any_in_metadata};

/// Why an object was not made.
enum Miss {
    /// It is there, told otherwise, refused, or was not written at all.
    Known,
    /// Nobody knows.
    Unanswered,
}

/// What was made was not there before, so it may go again.
type Attempt = Result<(Change, Sight), Miss>;

impl Applier {
    /// Writes what is new, tries and writes what is not. When something is refused before any of the tried ones is written, what was
    /// made goes again: the outcome is that of a trial.
    pub(super) async fn write_alike(&self, items: &[Item]) -> Result<Vec<Done>, Vec<String>> {
        let attempts = self.make(items).await;
        let rest: Vec<Item> = items
            .iter()
            .zip(&attempts)
            .filter(|(_, attempt)| attempt.is_err())
            .map(|(item, _)| item.clone())
            .collect();
        let mut tried = match self.write_tried(&rest).await {
            Ok(tried) => tried.into_iter(),
            Err(Refusal::Midway(errors)) => return Err(errors),
            Err(Refusal::Untouched(errors)) => {
                // A server that is away has refused nothing: the next pass goes on where this one ended.
                if !attempts.iter().any(|attempt| matches!(attempt, Err(Miss::Unanswered))) {
                    self.take_back(attempts).await;
                }
                return Err(errors);
            }
        };
        // Both keep the order of the items.
        let done = attempts.into_iter().filter_map(|attempt| match attempt {
            Ok((change, live)) => Some((change, Some(live))),
            Err(_) => tried.next(),
        });
        Ok(done.collect())
    }

    /// Creates kind by kind, as far as all objects are new and taken.
    async fn make(&self, items: &[Item]) -> Vec<Attempt> {
        let mut attempts: Vec<Attempt> = Vec::with_capacity(items.len());
        for kind in items.chunk_by(Item::is_same_kind) {
            if attempts.iter().any(Result::is_err) {
                break;
            }
            let mut creations = Vec::with_capacity(kind.len());
            for item in kind {
                creations.push(self.make_one(item));
            }
            let at_once = self.options.concurrency.max(1);
            let results: Vec<_> = futures::stream::iter(creations).buffered(at_once).collect().await;
            attempts.extend(results);
        }
        attempts.resize_with(items.len(), || Err(Miss::Known));
        attempts
    }

    async fn make_one(&self, item: &Item) -> Attempt {
        // What asks not to be deleted could not be taken back.
        if any_in_metadata(&item.object, &self.owner.keep()) {
            return Err(Miss::Known);
        }
        let target = self.untried(item).await.ok_or(Miss::Known)?;
        match self.create(item, target).await {
            Ok(made) => made.ok_or(Miss::Known),
            Err(error) if error.api().is_none_or(ApiError::is_away) => Err(Miss::Unanswered),
            Err(_) => Err(Miss::Known),
        }
    }

    /// Deletes in the opposite order. What cannot be deleted now is what a pass that was cut off leaves behind: the next one finds it.
    async fn take_back(&self, attempts: Vec<Attempt>) {
        for (change, live) in attempts.into_iter().rev().flatten() {
            self.forget(&change.object);
            if let Ok(Some(owned)) = Owned::by_labels(live.object(), &self.owner.labels()) {
                let _ = self.cluster.delete(&owned, Delete::default()).await;
            }
        }
    }
}
