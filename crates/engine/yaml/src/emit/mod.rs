//! Emitters with the same output as Go's libraries.

mod analyze;
mod scalar;
mod sigs;
mod v3;

pub use sigs::{refolded, to_sigs_yaml, to_sigs_yaml_in_order, write_sigs_yaml};
pub use v3::write_v3_yaml;
