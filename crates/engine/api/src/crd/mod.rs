//! CRDs, generated from the types.

mod definition;
mod structural;

pub use definition::{Column, Definition};
pub use structural::structural_schema;

/// Durations as Flux's CRDs accept them.
pub(crate) const DURATION_PATTERN: &str = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$";
/// Fetch timeouts, which do not accept hours.
pub(crate) const FETCH_TIMEOUT_PATTERN: &str = r"^([0-9]+(\.[0-9]+)?(ms|s|m))+$";
