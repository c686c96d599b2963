//! Types of the Kubernetes core API that custom resources embed.

pub mod persistent_volume_claim;
pub mod projected_volume;
pub mod reference;
pub mod volume;
