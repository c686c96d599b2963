//! The built-in kinds: their defaults, validation and tables.
//!
//! [`behaviour`] hands the server the rules of one kind; what is not listed follows the rules most types share.

use std::sync::Arc;

use crate::resource::{Behaviour, Plain};

/// The rules of a built-in kind.
#[must_use]
pub fn behaviour(_group: &str, _version: &str, _kind: &str) -> Arc<dyn Behaviour> {
    Arc::new(Plain)
}
