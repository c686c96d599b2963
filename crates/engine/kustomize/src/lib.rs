//! An engine that builds kustomizations with the same output as kustomize 5.8.
//!
//! [`build`] takes a file tree ([`Disk`], [`Memory`] or another [`Files`]), a directory and [`Options`]. It
//! starts no process, opens no connection and reads only files that kustomizations refer to, which
//! [`Output::reads`] lists.
//!
//! ```
//! use fl_kustomize::{Memory, Options, build};
//! let mut files = Memory::new();
//! files
//!     .add("/app/kustomization.yaml", "namePrefix: my-\nresources: [service.yaml]\n")
//!     .add("/app/service.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n");
//! let output = build(&files, "/app".as_ref(), &Options::default()).unwrap();
//! assert_eq!(output.to_yaml().unwrap(), "apiVersion: v1\nkind: Service\nmetadata:\n  name: my-web\n");
//! ```
//!
//! A build processes the resources of a kustomization, then its generators, components, transformers and
//! validators; after the root also hashes, references and variables. Identities and their history are in
//! `resource`, the fields of transformers in `config`, merge keys and scopes in `schema`.

mod build;
mod config;
mod decode;
mod embedded_data;
mod error;
mod field_error;
mod fieldspec;
mod files;
mod generate;
mod input;
mod kustomization;
mod merge;
mod path;
mod resid;
mod resmap;
mod resource;
mod schema;
mod selector;
mod transform;
mod tree;

pub use build::{
    ChartRelease, ChartSource, Charts, Fetcher, LoadRestrictor, Options, Output, Reorder, Repository, build,
};
pub use config::Conflict;
pub use error::{Error, ErrorKind, HostError, Place, PrintError};
pub use files::{Disk, Files, Memory};
pub use transform::json_patch::{JsonPatch, JsonPatchError};
