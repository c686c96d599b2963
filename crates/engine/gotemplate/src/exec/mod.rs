//! Execution: template sets, the context functions see, and the walk over the tree.

mod args;
mod context;
mod eval;
mod fields;
mod set;
mod walk;

pub use context::Context;
pub use set::{MissingKey, TemplateSet};
