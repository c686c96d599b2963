//! Names and short texts of templates, each kept once.

use rustc_hash::FxHashSet;

use crate::value::Str;

/// Longer texts are seldom equal; looking them up would cost more than it saves.
const LONGEST: usize = 64;

/// All names seen while parsing a set of templates: `.Values.global` in a thousand places is two names, not two thousand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(FxHashSet<Str>);

impl Names {
    /// The text, shared with earlier equal ones.
    pub(crate) fn share(&mut self, text: &[u8]) -> Str {
        if text.len() > LONGEST {
            return Str::from(text);
        }
        if let Some(known) = self.0.get(text) {
            return known.clone();
        }
        let new = Str::from(text);
        self.0.insert(new.clone());
        new
    }
}
