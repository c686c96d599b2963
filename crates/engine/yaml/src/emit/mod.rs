//! Trees to YAML, byte for byte as Go's libraries print.

mod analyze;
mod scalar;
mod sigs;

pub use sigs::{to_sigs_yaml, to_sigs_yaml_in_order, write_sigs_yaml};
