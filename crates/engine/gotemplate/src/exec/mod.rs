//! Execution: template sets, the context of functions, and the walk over the tree.

mod args;
mod context;
mod eval;
mod fields;
mod set;
mod walk;

pub use context::Context;
pub use set::{MissingKey, TemplateSet};
