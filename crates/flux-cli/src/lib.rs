//! The commands of flux: what they do and how they show it.
//!
//! - The command line is data: [`Flux`] mounts the tree of commands, flags and examples below any clap program.
//! - The kinds flux works on are rows of one table; `get`, `reconcile`, `suspend`, `resume`, `delete` and `export` are one
//!   function each over that table.
//! - Objects are plain JSON between the API server and the view; a view is a table, YAML, JSON or names.
//! - Progress goes to stderr with flux's signs, data to stdout. ExitError codes are flux's.
//!
//! ```no_run
//! fn definition(wanted: &fl_flux_cli::Wanted) -> clap::Command {
//!     fl_flux_cli::Flux::augment(clap::Command::new("flux"), "flux", wanted)
//! }
//! let code = fl_flux_cli::program(definition, |_| std::process::ExitCode::FAILURE);
//! ```

mod args;
mod artifact_layer;
mod cluster;
mod command;
mod commands;
mod completion;
mod discovery;
mod dispatch;
mod dyff;
mod flag;
mod format;
mod go_shape;
mod image;
mod ksbuild;
mod kubeconfig;
mod logger;
mod prompt;
mod resource_kinds;
mod ssh;
mod table;

/// The flux release whose behaviour this is.
pub const VERSION: &str = "v2.9.5";

/// Output of `flux --version` behind the name of the program.
pub const VERSION_LINE: &str = "version 2.9.5";

pub use dispatch::{Definition, Flux, Wanted, program};
pub use flag::csv as list_items;
