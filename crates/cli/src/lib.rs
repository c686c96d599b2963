//! The commands of flux: what they do and how they show it.
//!
//! - The command line is data: [`Flux`] mounts the tree of commands, flags and examples below any clap program.
//! - The kinds flux works on are rows of one table; `get`, `reconcile`, `suspend`, `resume`, `delete` and `export` are one
//!   function each over that table.
//! - Objects are plain JSON between the API server and the view; a view is a table, YAML, JSON or names.
//! - Progress goes to stderr with flux's signs, data to stdout. Exit codes are flux's.
//!
//! ```no_run
//! fn definition(wanted: &fl_cli::Wanted) -> clap::Command {
//!     fl_cli::Flux::augment(clap::Command::new("flux"), "flux", wanted)
//! }
//! let code = fl_cli::program(definition, |_| std::process::ExitCode::FAILURE);
//! ```

mod call;
mod cluster;
mod commands;
mod complete;
mod connect;
mod discovery;
mod dyff;
mod flag;
mod go_shape;
mod image;
mod kinds;
mod ksbuild;
mod mount;
mod node;
mod pack;
mod prompt;
mod say;
mod ssh;
mod table;
mod text;
mod throttle;

/// The flux release whose behaviour this is.
pub const VERSION: &str = "v2.9.5";

/// What `flux --version` says behind the program's name.
pub const VERSION_LINE: &str = "version 2.9.5";

/// What `fluorite up` writes as the manager of the objects it makes, and the commands look for.
pub const UP_MANAGER: &str = "fluorite-up";

pub use flag::csv as list_items;
pub use mount::{Definition, Flux, Wanted, program};
