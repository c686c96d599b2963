//! A set of templates that call each other: parsed once, executed many times, from any thread.

use std::any::Any;
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::context::Context;
use crate::error::Error;
use crate::func::Functions;
use crate::limits::Limits;
use crate::parse::node::Template;
use crate::parse::{Names, ParseOptions, Workspace, parse};
use crate::value::{Str, Value};

/// Result of a missing key (Go's option `missingkey`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingKey {
    /// No value; prints `<no value>`.
    #[default]
    Invalid,
    /// The zero value of the map's element type.
    Zero,
    /// An error.
    Error,
}

pub(super) type Named = FxHashMap<Str, Arc<Template>>;

/// Size of texts from which parsing them on two threads pays off.
const MIN_PARALLEL_BYTES: usize = 512 << 10;

/// Templates by name and the functions they may call.
#[derive(Clone, Debug)]
pub struct TemplateSet {
    pub(super) templates: Named,
    pub(super) functions: Arc<Functions>,
    pub(super) missing_key: MissingKey,
    left: Vec<u8>,
    right: Vec<u8>,
    names: Names,
    /// Parsed texts that are not part of the set yet, by name.
    pre_parsed: FxHashMap<Str, (Str, Vec<Arc<Template>>)>,
}

impl TemplateSet {
    /// An empty set; templates parsed into it may call `functions` and Go's built-ins.
    pub fn new(functions: Arc<Functions>) -> Self {
        TemplateSet {
            templates: Named::default(),
            functions,
            missing_key: MissingKey::default(),
            left: b"{{".to_vec(),
            right: b"}}".to_vec(),
            names: Names::default(),
            pre_parsed: FxHashMap::default(),
        }
    }

    /// Sets the action delimiters for texts parsed from now on; an empty string is the default delimiter.
    pub fn set_delimiters(&mut self, left: &str, right: &str) {
        self.left = if left.is_empty() { b"{{".to_vec() } else { left.as_bytes().to_vec() };
        self.right = if right.is_empty() { b"}}".to_vec() } else { right.as_bytes().to_vec() };
    }

    /// Sets the option `missingkey`.
    pub fn set_missing_key(&mut self, missing_key: MissingKey) {
        self.missing_key = missing_key;
    }

    /// Parses a text under a name, with the templates it defines. A later definition replaces an earlier one
    /// of the same name unless it is blank.
    ///
    /// # Errors
    /// Invalid syntax, an unknown function or variable, or a name defined twice in the text.
    pub fn parse(&mut self, name: &str, text: impl Into<Str>) -> Result<(), Error> {
        let parsed = self.parse_in_turn(&[(name, &text.into())]).map_err(|(_, error)| error)?;
        self.adopt(parsed);
        Ok(())
    }

    /// Parses texts that will probably be passed to [`parse_all`](Self::parse_all). They do not become part
    /// of the set, and their errors are reported only by `parse_all`.
    pub fn pre_parse(&mut self, texts: impl IntoIterator<Item = (Str, Str)>) {
        let mut work = Workspace::with_names(std::mem::take(&mut self.names));
        for (name, text) in texts {
            if let Ok(templates) = self.parse_texts(&name, &text, &mut work) {
                self.pre_parsed.insert(name, (text, templates));
            }
        }
        self.names = work.names;
    }

    /// Adds the pre-parsed texts of another set, which must have the same functions and delimiters.
    pub fn merge_pre_parsed(&mut self, other: Self) {
        self.pre_parsed.extend(other.pre_parsed);
    }

    /// Like [`parse`](Self::parse) for each of the texts in order. Large inputs are split between two
    /// threads.
    ///
    /// # Errors
    /// The first error and the index of its text.
    pub fn parse_all(&mut self, texts: &[(&str, &Str)]) -> Result<(), (usize, Error)> {
        let bytes = |texts: &[(&str, &Str)]| texts.iter().map(|(_, text)| text.len()).sum::<usize>();
        let all = bytes(texts);
        let alone = all < MIN_PARALLEL_BYTES || !self.pre_parsed.is_empty();
        if alone || std::thread::available_parallelism().is_ok_and(|n| n.get() == 1) {
            return self.parse_in_turn(texts).map(|parsed| self.adopt(parsed));
        }
        let mut before = 0;
        let middle = texts.iter().position(|(_, text)| {
            before += text.len();
            before > all / 2
        });
        let (first, second) = texts.split_at(middle.unwrap_or(texts.len()));
        let mut helper = TemplateSet { templates: Named::default(), names: Names::default(), ..self.clone() };
        let (here, there) = std::thread::scope(|scope| {
            let there = std::thread::Builder::new().spawn_scoped(scope, || helper.parse_in_turn(second));
            let here = self.parse_in_turn(first);
            (here, there.map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))))
        });
        self.adopt(here?);
        let there = there.unwrap_or_else(|_| self.parse_in_turn(second));
        self.adopt(there.map_err(|(at, error)| (first.len() + at, error))?);
        Ok(())
    }

    fn parse_in_turn(&mut self, texts: &[(&str, &Str)]) -> Result<Vec<Arc<Template>>, (usize, Error)> {
        let mut work = Workspace::with_names(std::mem::take(&mut self.names));
        let mut pre_parsed = std::mem::take(&mut self.pre_parsed);
        let mut all = Vec::with_capacity(texts.len());
        for (at, (name, text)) in texts.iter().enumerate() {
            let parsed = match pre_parsed.remove(name.as_bytes()) {
                Some((known, templates)) if std::ptr::eq(known.as_bytes(), text.as_bytes()) => templates,
                _ => self.parse_texts(&Str::from(*name), text, &mut work).map_err(|error| (at, error))?,
            };
            all.extend(parsed);
        }
        self.names = work.names;
        Ok(all)
    }

    fn adopt(&mut self, parsed: Vec<Arc<Template>>) {
        parsed.into_iter().for_each(|template| adopt(&mut self.templates, template));
    }

    pub(super) fn parse_texts(
        &self,
        name: &Str,
        text: &Str,
        work: &mut Workspace,
    ) -> Result<Vec<Arc<Template>>, Error> {
        let options = ParseOptions { functions: &self.functions, left: &self.left, right: &self.right };
        parse(name, text, &options, work)
    }

    /// Whether a template of this name exists.
    pub fn contains(&self, name: &str) -> bool {
        self.templates.contains_key(name.as_bytes())
    }

    /// Names of all templates, unordered.
    pub fn names(&self) -> impl Iterator<Item = &Str> + '_ {
        self.templates.keys()
    }

    /// Executes a template and appends its output. Functions get `host` through [`Context::host`].
    ///
    /// # Errors
    /// Go's execution errors, and [`Error::Budget`] if a limit is reached; `out` then contains the output so
    /// far.
    pub fn execute(
        &self,
        name: &str,
        data: Value,
        limits: &Limits,
        host: Option<Rc<dyn Any>>,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let mut cx = Context::new(self, limits.clone(), host);
        cx.run_named(&Str::from(name), data, out)
    }

    /// Creates a context for several executions that share limits and recursion counts (all templates of a
    /// chart).
    pub fn context(&self, limits: &Limits, host: Option<Rc<dyn Any>>) -> Context<'_> {
        Context::new(self, limits.clone(), host)
    }
}

/// Adds a template as Go does: a blank one never replaces another.
pub(super) fn adopt(templates: &mut Named, template: Arc<Template>) {
    if templates.contains_key(&template.name) && template.is_blank() {
        return;
    }
    templates.insert(template.name.clone(), template);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pre_parsed_texts_are_used_only_on_request() {
        let [a, b, broken] = ["{{template `b`}}", "{{define `b`}}2{{end}}", "{{"].map(Str::from);
        let mut set = TemplateSet::new(Arc::new(Functions::new()));
        let names = ["a", "b.tpl", "c", "d"].map(Str::from);
        set.pre_parse(names.into_iter().zip([&broken, &b, &broken, &a].map(Str::clone)));
        assert_eq!(set.names().count(), 0);
        let failed = set.clone().parse_all(&[("b.tpl", &b), ("c", &broken), ("a", &broken)]);
        let (at, error) = failed.expect_err("two are broken");
        assert!(at == 1 && error.to_string().contains("template: c:1"), "{error}");
        // The text of the first differs from the pre-parsed one, the second is equal, the third is new.
        set.parse_all(&[("a", &a), ("b.tpl", &b), ("e", &Str::from("5"))]).expect("all are fine");
        let mut out = Vec::new();
        set.execute("a", Value::Nil, &Limits::default(), None, &mut out).expect("it runs");
        assert_eq!(out, b"2");
        assert!(set.contains("e") && !set.contains("c") && !set.contains("d"));
    }
}
