//! CRDs, built from the types.

mod definition;
mod structural;

pub use definition::{Column, Definition};
pub use structural::structural_schema;

/// Durations as Flux's CRDs accept them.
pub(crate) const DURATION_PATTERN: &str = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$";
/// Timeouts of fetches, which do not take hours.
pub(crate) const FETCH_TIMEOUT_PATTERN: &str = r"^([0-9]+(\.[0-9]+)?(ms|s|m))+$";
