//! Objects in the form in which they are applied.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use bytes::Bytes;
use serde_json::Value;

use super::Applier;
use crate::apply_order::{self, rank};
use crate::{Error, ObjectRef, Stage, drop_invalid_metadata, merge_metadata, normalize};

/// Objects in the form and order in which they will be applied. Only [`Applier::prepare`] makes it.
#[derive(Clone, Debug, Default)]
pub struct PreparedObjects {
    pub(super) objects: Vec<Item>,
    dropped: Vec<DroppedMetadata>,
}

/// Labels or annotations of an object that are not applied because one of their values is not a string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedMetadata {
    /// The object.
    pub target: ObjectRef,
    /// `labels` or `annotations`.
    pub field: &'static str,
}

#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) target: ObjectRef,
    pub(crate) object: Value,
    pub(super) stage: Stage,
    text: OnceLock<Bytes>,
}

impl Item {
    /// The object as it is sent, and as it is hashed for its last-applied state.
    pub(super) fn text(&self) -> &Bytes {
        self.text.get_or_init(|| Bytes::from(self.object.to_string()))
    }

    /// Whether both are written at the same time.
    pub(super) fn is_same_kind(&self, other: &Item) -> bool {
        let (own, other) = (&self.target.id, &other.target.id);
        rank(&own.kind) == rank(&other.kind) && own.group == other.group && own.kind == other.kind
    }
}

impl PreparedObjects {
    /// The objects.
    pub fn objects(&self) -> impl Iterator<Item = &Value> {
        self.objects.iter().map(|item| &item.object)
    }

    /// Their names.
    pub fn targets(&self) -> impl Iterator<Item = &ObjectRef> {
        self.objects.iter().map(|item| &item.target)
    }

    /// Whether there is nothing to apply.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Labels and annotations that were left out because one of their values is not a string.
    #[must_use]
    pub fn dropped_metadata(&self) -> &[DroppedMetadata] {
        &self.dropped
    }
}

impl Applier {
    /// Gives objects the labels of their owner, their normal form, the common labels and annotations, and their order.
    ///
    /// # Errors
    /// An object without apiVersion, kind or name.
    pub fn prepare(
        &self,
        objects: Vec<Value>,
        labels: &BTreeMap<String, String>,
        annotations: &BTreeMap<String, String>,
    ) -> Result<PreparedObjects, Error> {
        let owner_labels = self.owner.labels();
        let mut items = Vec::with_capacity(objects.len());
        let mut dropped = Vec::new();
        for mut object in objects {
            let fields = drop_invalid_metadata(&mut object);
            merge_metadata(&mut object, &owner_labels, &BTreeMap::new());
            normalize(&mut object);
            merge_metadata(&mut object, labels, annotations);
            let target = ObjectRef::of(&object)?;
            dropped.extend(fields.into_iter().map(|field| DroppedMetadata { target: target.clone(), field }));
            let stage = apply_order::stage(&target, &self.options.custom_stages);
            items.push(Item { target, object, stage, text: OnceLock::new() });
        }
        items.sort_by(|a, b| {
            a.stage.cmp(&b.stage).then_with(|| apply_order::compare(&a.target.id, &b.target.id))
        });
        Ok(PreparedObjects { objects: items, dropped })
    }
}
