//! `fluorite up` and `fluorite down`: the controllers next to the embedded API server (or on a cluster of the user's),
//! delivering a directory, a Git repository or the built-in example.
//!
//! The binary parses the arguments and supplies the controllers; everything else is here.

mod bootstrap_objects;
mod controllers;
mod directory;
mod down;
mod example;
mod output;
mod path_detection;
mod provisional_kinds;
mod source;
mod source_trigger;
mod state_dir;
mod up;
mod view;

pub use controllers::{AddControllers, Component, SharedParts};
pub use down::down;
pub use state_dir::default_state_dir;
pub use up::Options;
