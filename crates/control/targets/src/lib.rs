//! What every controller that applies objects shares.
//!
//! - [`Targets`]: connections to the clusters of `spec.kubeConfig`, bounded and closed when the kubeconfig changes;
//! - [`OwnedObjectWatcher`]: watches the objects that were applied, and enqueues their owner when one drifts.

mod owned_objects;
mod targets;

pub use owned_objects::{CorrectionLoop, OwnedObjectWatcher, OwnerKind};
pub use targets::{MAX_CONNECTIONS, Target, TargetError, TargetOptions, Targets};
