//! Server-side apply with managed fields, strategic merge patch, JSON patch and merge patch, as in the API
//! server.
//!
//! [`apply`] merges an applied configuration and tracks field managers; [`update`] tracks them for all other
//! writes. The patch formats are in [`patch`]. All functions are pure.

mod managed;
pub mod patch;
mod path;
mod scale;
mod set;
mod typed;
mod updater;

pub use managed::{ManagedFieldsError, ignore_time_only_changes, manager_name};
pub use path::{PathElement, PathElementError, print_path};
pub use scale::{scale_to_parent, scale_to_subresource};
pub use set::{FieldsError, Set};
pub use updater::{ApplyError, Conflict, ConflictError, OneVersion, Request, Versions, apply, update};

/// The error message of apply for an object that does not match its schema; `None` if it does.
#[must_use]
pub fn mismatch(object: &serde_json::Value, schema: &fl_schema::Schema) -> Option<String> {
    typed::check(object, typed::Ty::root(schema))
}
