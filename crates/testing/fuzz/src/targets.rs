//! The targets: one function per parser of outside bytes. Add a row here and seeds in `fuzz/seeds/<name>/`.

/// Name and function of every target.
pub(crate) const ALL: &[(&str, fn(&[u8]))] = &[];
