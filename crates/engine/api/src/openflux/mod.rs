//! Open Flux: artifacts as resources of their own, and the HTTP source that showed the idea.

pub mod artifact;
pub mod http;

pub use artifact::{Artifact, ArtifactSpec};
pub use http::{Http, HttpSpec, HttpStatus};
