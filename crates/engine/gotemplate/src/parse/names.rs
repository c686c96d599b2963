//! Names and short texts of templates, each kept once.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::node::{Callee, Number, Word};
use crate::value::Str;

/// Longer texts are seldom equal; looking them up would cost more than it saves.
const LONGEST: usize = 64;

/// All names seen while parsing a set of templates: `.Values.global` in a thousand places is kept once, not a thousand
/// times, and what a function's name stands for is looked up once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    texts: FxHashSet<Str>,
    chains: FxHashMap<Str, Arc<[Str]>>,
    words: FxHashMap<Str, Arc<Word>>,
    numbers: FxHashMap<Str, Arc<Number>>,
}

impl Names {
    /// The text, shared with earlier equal ones.
    pub(crate) fn share(&mut self, text: &[u8]) -> Str {
        if text.len() > LONGEST {
            return Str::from(text);
        }
        if let Some(known) = self.texts.get(text) {
            return known.clone();
        }
        let new = Str::from(text);
        self.texts.insert(new.clone());
        new
    }

    /// The fields of `.a.b.c`, or the variable and the fields of `$a.b.c`.
    pub(crate) fn chain(&mut self, text: &[u8]) -> Arc<[Str]> {
        if let Some(known) = self.chains.get(text) {
            return Arc::clone(known);
        }
        let names = text.strip_prefix(b".").unwrap_or(text).split(|b| *b == b'.');
        let names: Vec<Str> = names.map(|name| self.share(name)).collect();
        let names: Arc<[Str]> = names.into();
        self.chains.insert(text.into(), Arc::clone(&names));
        names
    }

    /// The function of this name; `find` tells what it is when it is met for the first time.
    pub(crate) fn word(
        &mut self,
        name: &[u8],
        find: impl FnOnce(&str) -> Option<Callee>,
    ) -> Option<Arc<Word>> {
        if let Some(known) = self.words.get(name) {
            return Some(Arc::clone(known));
        }
        let callee = find(std::str::from_utf8(name).ok()?)?;
        let word = Arc::new(Word { name: self.share(name), callee });
        self.words.insert(word.name.clone(), Arc::clone(&word));
        Some(word)
    }

    /// The number that a text stands for; `read` tells when it is met for the first time.
    pub(crate) fn number(
        &mut self,
        text: &[u8],
        read: impl FnOnce() -> Result<Number, String>,
    ) -> Result<Arc<Number>, String> {
        if let Some(known) = self.numbers.get(text) {
            return Ok(Arc::clone(known));
        }
        let number = Arc::new(read()?);
        self.numbers.insert(text.into(), Arc::clone(&number));
        Ok(number)
    }
}
