//! Merging as the API server does it: server-side apply with managed fields, strategic merge, JSON patch.
//!
//! [`apply`] merges an applied configuration and keeps track of who owns what; [`update`] does the tracking for every
//! other write. The patch formats are in [`patch`]. Pure functions of JSON values and a [`fl_schema::Schema`].

mod engine;
mod managed;
pub mod patch;
mod path;
mod scale;
mod set;
mod typed;

pub use engine::{ApplyError, Conflict, ConflictError, OneVersion, Request, Versions, apply, update};
pub use managed::{ignore_time_only_changes, manager_name};
pub use path::{PathElement, print_path};
pub use scale::{scale_to_parent, scale_to_subresource};
pub use set::Set;

/// What of an object a schema does not allow, in the words of the merge; `None` when it fits.
#[must_use]
pub fn misfit(object: &serde_json::Value, schema: &fl_schema::Schema) -> Option<String> {
    typed::check(object, typed::Ty::root(schema))
}
