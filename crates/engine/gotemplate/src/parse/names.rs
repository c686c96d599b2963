//! Interned names and short texts of templates.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::node::{Callee, Number, Word};
use super::number::NumberError;
use crate::value::Str;

/// Maximum length of interned texts: longer ones are rarely equal, and looking them up costs more than it
/// saves.
const MAX_INTERNED_LEN: usize = 64;

/// All names seen while parsing a set of templates. `.Values.global` in a thousand places is stored once, and
/// each function name is looked up once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    texts: FxHashSet<Str>,
    chains: FxHashMap<Str, Arc<[Str]>>,
    words: FxHashMap<Str, Arc<Word>>,
    numbers: FxHashMap<Str, Arc<Number>>,
}

impl Names {
    /// The text, shared with equal ones.
    pub(crate) fn share(&mut self, text: &[u8]) -> Str {
        if text.len() > MAX_INTERNED_LEN {
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

    /// The function of this name; `find` is called on its first use.
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

    /// The number of this text; `read` is called on its first use.
    pub(crate) fn number(
        &mut self,
        text: &[u8],
        read: impl FnOnce() -> Result<Number, NumberError>,
    ) -> Result<Arc<Number>, NumberError> {
        if let Some(known) = self.numbers.get(text) {
            return Ok(Arc::clone(known));
        }
        let number = Arc::new(read()?);
        self.numbers.insert(text.into(), Arc::clone(&number));
        Ok(number)
    }
}
