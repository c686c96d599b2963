//! Trees to YAML, byte for byte as Go's libraries print.

mod analyze;
mod scalar;
mod sigs;

pub use sigs::{to_sigs_yaml, write_sigs_yaml};
