//! A kustomize engine: files in, objects out, the same bytes as kustomize 5.8.
//!
//! [`build`] takes a tree of files ([`Disk`], [`Memory`] or your own [`Files`]), a directory and [`Options`]. It starts no process,
//! opens no connection and reads only what the kustomizations name; [`Output::reads`] says what that was.
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
//! How a build runs (`build`): a kustomization's resources, then its generators, components, transformers and validators; after the
//! outermost one hashes, references and variables. Identities and their history live in `resource`, the fields each transformer
//! touches in `config`, merge keys and scopes in `schema`.

mod build;
mod config;
mod decode;
mod error;
mod fieldspec;
mod files;
mod generate;
mod ident;
mod input;
mod kustomization;
mod merge;
mod path;
mod resmap;
mod resource;
mod schema;
mod selector;
mod transform;
mod tree;
mod written;

pub use build::{
    ChartRelease, ChartSource, Charts, Fetcher, LoadRestrictor, Options, Output, Reorder, Repository, build,
};
pub use config::Conflict;
pub use error::{Error, ErrorKind, Place};
pub use files::{Disk, Files, Memory};
pub use transform::json_patch::{JsonPatch, JsonPatchError};
