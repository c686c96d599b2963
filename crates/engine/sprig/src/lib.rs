//! The template functions that Helm offers: Sprig and Helm's own.
//!
//! [`functions`] gives the table for a [`TemplateSet`](fl_gotemplate::TemplateSet); [`Host`] carries what they need from
//! outside (clock, randomness, cluster) and goes into the execution.

mod host;

pub use host::{Host, Mode, Outside};

use fl_gotemplate::Functions;

/// Every function that Helm's templates may call, `include` and `tpl` too.
pub fn functions() -> Functions {
    Functions::new()
}
