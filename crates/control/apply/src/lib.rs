//! The one apply path: from wanted objects to a cluster that has them.
//!
//! Kustomizations, Helm releases, the operator and the command line all go through here.
//!
//! - [`Cluster`] is the objects of one API server under one identity, over [`fl_client`]. [`Cluster::impersonating`] changes the
//!   identity.
//! - [`ObjectRef`] and [`ObjectId`] name objects, the latter as Flux's inventory writes them ([`Inventory`]).
//! - [`Applier`] takes wanted objects through [`PreparedObjects`] to [`Applied`]: owner labels, normal form, stages, a dry-run of every
//!   changed object before the first is written, take-over from earlier field managers,
//!   recreation where a field is immutable.
//! - [`Pruner`] deletes what is no longer wanted. A delete takes an [`Owned`] object, which only a proof of ownership makes;
//!   a read that failed is [`Lookup::Unknown`] and proves nothing.
//! - [`Waiter`] waits for health ([`HealthRules`]: kstatus and CEL) on watches, and for termination.
//! - [`ChangeSet`] is what happened, as data and as Flux prints it.

mod apply;
mod apply_order;
mod change_set;
mod cluster;
mod drift;
mod error;
mod field_managers;
mod ignore;
mod inventory;
mod last_applied;
mod live_object;
mod mask;
mod metadata;
mod normalize;
mod object_ref;
mod ownership;
mod prune;
mod unchanged;
mod wait;

pub use apply::{
    Applied, Applier, ApplyFailure, DroppedMetadata, Force, Options, Owner, PreparedObjects, WriteAhead,
};
pub use apply_order::{Stage, compare, is_custom_resource_definition, sort, stage};
pub use change_set::{Action, Change, ChangeSet};
pub use cluster::{Cluster, Delete, Observer, Propagation};
pub use drift::has_drifted;
pub use error::Error;
pub use field_managers::{FieldManager, Operation, take_over};
pub use fl_client::{Answer, ApiError, Lookup, Patch, Write};
pub use ignore::{IgnoreError, IgnoreRules};
pub use inventory::Inventory;
pub use last_applied::{Fingerprint, LastApplied, LiveVersions};
pub use live_object::LiveObject;
pub use mask::{Masked, mask_secret};
pub use metadata::{
    annotation, annotations, any_in_metadata, drop_invalid_metadata, label, labels, merge_metadata,
};
pub use normalize::normalize;
pub use object_ref::{ObjectId, ObjectRef};
pub use ownership::Owned;
pub use prune::{PruneFailure, Pruner};
pub use wait::health::{HealthRuleError, HealthRules, HealthStatus};
pub use wait::{WaitError, WaitOptions, Waiter, jobs_with_ttl};
