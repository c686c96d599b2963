//! The one apply path: from wanted objects to a cluster that has them.
//!
//! Kustomizations, Helm releases, the operator and the command line all go through here.
//!
//! - [`Cluster`] is the objects of one API server under one identity, over [`fl_client`]. [`Cluster::impersonating`] changes the
//!   identity.
//! - [`ObjectRef`] and [`ObjectId`] name objects, the latter as Flux's inventory writes them ([`Inventory`]).
//! - [`Applier`] takes wanted objects through [`Prepared`] to [`Applied`]: owner labels, normal form, stages, a dry-run of every
//!   changed object before the first is written, take-over from earlier field managers,
//!   recreation where a field is immutable.
//! - [`Pruner`] deletes what is no longer wanted. A delete takes an [`Owned`] object, which only a proof of ownership makes;
//!   a read that failed is [`Known::Unknown`] and proves nothing.
//! - [`Waiter`] waits for health ([`HealthRules`]: kstatus and CEL) on watches, and for termination.
//! - [`ChangeSet`] is what happened, as data and as Flux prints it.

mod apply;
mod changes;
mod cluster;
mod drift;
mod error;
mod ignore;
mod intact;
mod inventory;
mod managers;
mod mask;
mod metadata;
mod normalize;
mod object;
mod order;
mod owned;
mod prune;
mod remember;
mod sight;
mod wait;

pub use apply::{Applied, Applier, ApplyFailure, DroppedMetadata, Force, Options, Owner, Prepared};
pub use changes::{Action, Change, ChangeSet};
pub use cluster::{Cluster, Delete, Observer, Propagation};
pub use drift::has_drifted;
pub use error::Error;
pub use fl_client::{Answer, ApiError, Known, Patch, Write};
pub use ignore::{IgnoreError, IgnoreRules};
pub use inventory::Inventory;
pub use managers::{FieldManager, Operation, take_over};
pub use mask::{Masked, mask_secret};
pub use metadata::{
    annotation, annotations, any_in_metadata, drop_invalid_metadata, label, labels, merge_metadata,
};
pub use normalize::normalize;
pub use object::{ObjectId, ObjectRef};
pub use order::{Stage, compare, is_custom_resource_definition, sort, stage};
pub use owned::Owned;
pub use prune::{PruneFailure, Pruner};
pub use remember::{Fingerprint, LiveVersions, Remembered};
pub use sight::Sight;
pub use wait::health::{HealthRuleError, HealthRules, Verdict};
pub use wait::{WaitError, WaitOptions, Waiter, jobs_with_ttl};
