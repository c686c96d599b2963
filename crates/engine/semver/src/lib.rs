//! Semantic versions and ranges with the rules of Masterminds/semver v3, which Helm and Flux use.
//!
//! These are not Cargo's rules: `1.2` is a version when read leniently, `>=1.2 <2 || ~3` is a range, and a range only
//! matches pre-releases when it names one itself.
//!
//! ```
//! use fl_semver::{Constraints, Version};
//!
//! let range = Constraints::parse("^1.2 || 3.0 - 3.5")?;
//! assert!(range.check(&Version::parse("v1.9")?));
//! assert!(!range.check(&Version::parse("1.9.0-rc.1")?));
//! # Ok::<(), fl_semver::Error>(())
//! ```

mod constraint;
mod error;
mod range;
mod scan;
mod version;

pub use constraint::Mismatch;
pub use error::Error;
pub use range::Constraints;
pub use version::Version;
