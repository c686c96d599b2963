//! The build of a Kustomization, from files to objects, as kustomize-controller does it.
//!
//! 1. [`render`]: generate the kustomization.yaml (the directory's own with the overrides of the spec, or one that lists all
//!    manifests), decrypt the files that generators and patches refer to, run `kustomize build`.
//! 2. [`finish`]: decrypt each object and substitute its variables.
//!
//! The Kustomization controller and `flux build kustomization` call the same functions. Everything outside is behind a trait:
//! the files ([`SourceFiles`]), remote bases ([`RemoteBases`]), keys and key services ([`Decrypt`]).

mod build;
mod decrypt;
mod error;
mod files;
mod generate;
mod kustomization_fields;
mod spec_overrides;
mod substitute;

pub use build::{Request, finish, render};
pub use decrypt::{Decrypt, is_encrypted_secret};
pub use error::{BuildError, GenerateError, KustomizeError, ObjectDecryptError, SourceDecryptError};
pub use files::{RemoteBases, Rendered, SharedBuild, SharedBuilds, SourceFiles, clean};
pub use generate::{EntryFilter, KUSTOMIZATION_FILES};
pub use substitute::{ReportDerived, SubstituteError};
