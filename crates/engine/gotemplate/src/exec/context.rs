//! What an execution carries along, and what functions may do with it.

use std::any::Any;
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::set::{MissingKey, Named, TemplateSet, adopt};
use super::walk::State;
use crate::error::Error;
use crate::func::CallError;
use crate::limits::{Limits, TOO_DEEP};
use crate::parse::node::Template;
use crate::value::{Str, Value};

/// The context of an execution: budgets, the templates in reach, and the caller's host object.
pub struct Context<'a> {
    set: &'a TemplateSet,
    /// Templates that `tpl` texts define, innermost last; they hide those of the set while the text runs.
    overlays: Vec<Rc<Named>>,
    texts: FxHashMap<Str, Rc<Named>>,
    limits: Limits,
    steps: u64,
    allocated: u64,
    written: u64,
    pub(super) depth: u32,
    stack_base: usize,
    host: Option<Rc<dyn Any>>,
    names: FxHashMap<Str, u32>,
    /// The name of the variable that every template starts with.
    pub(super) dollar: Str,
}

/// How many steps pass between two looks at the clock.
const CLOCK_EVERY: u64 = 4096;

/// Texts of `tpl` kept parsed. Values repeat the same texts many times; a hostile one could make endless new ones.
const KEPT_TEXTS: usize = 4096;

impl<'a> Context<'a> {
    pub(super) fn new(set: &'a TemplateSet, limits: Limits, host: Option<Rc<dyn Any>>) -> Self {
        Context {
            set,
            overlays: Vec::new(),
            texts: FxHashMap::default(),
            limits,
            steps: 0,
            allocated: 0,
            written: 0,
            depth: 0,
            stack_base: stack_pointer(),
            host,
            names: FxHashMap::default(),
            dollar: Str::from("$"),
        }
    }

    /// The host object given to the execution, when it has this type.
    pub fn host<T: 'static>(&self) -> Option<Rc<T>> {
        Rc::clone(self.host.as_ref()?).downcast().ok()
    }

    pub(super) fn missing_key(&self) -> MissingKey {
        self.set.missing_key
    }

    /// Counts how often a name is in use (Helm counts nested `include`s by name): adds `change`, gives the new count.
    pub fn count_name(&mut self, name: &Str, change: i32) -> u32 {
        let count = self.names.entry(name.clone()).or_default();
        *count = count.saturating_add_signed(change);
        *count
    }

    /// Spends evaluation steps.
    ///
    /// # Errors
    /// When none are left or the time is over.
    pub fn step(&mut self, steps: u64) -> Result<(), CallError> {
        let before = self.steps / CLOCK_EVERY;
        self.steps = self.steps.saturating_add(steps);
        if self.steps > self.limits.steps {
            return Err(CallError::budget(format!("exceeded the budget of {} steps", self.limits.steps)));
        }
        if self.steps / CLOCK_EVERY != before
            && let Some(expired) = &self.limits.expired
            && expired()
        {
            return Err(CallError::budget("exceeded the time given to it"));
        }
        Ok(())
    }

    /// Asks for room for one value of `bytes` bytes, before it is made.
    ///
    /// # Errors
    /// When the value is larger than one may be, or all together are.
    pub fn reserve(&mut self, bytes: u64) -> Result<(), CallError> {
        if bytes > self.limits.value {
            return Err(CallError::budget(format!(
                "a value of {bytes} bytes exceeds the budget of {} bytes",
                self.limits.value
            )));
        }
        self.allocated = self.allocated.saturating_add(bytes);
        if self.allocated > self.limits.allocation {
            return Err(CallError::budget(format!(
                "exceeded the budget of {} bytes for values",
                self.limits.allocation
            )));
        }
        Ok(())
    }

    /// The largest value, in bytes, that a function may make.
    pub fn largest_value(&self) -> u64 {
        self.limits.value
    }

    pub(super) fn wrote(&mut self, bytes: usize) -> Result<(), CallError> {
        self.written = self.written.saturating_add(bytes as u64);
        if self.written > self.limits.output {
            return Err(CallError::budget(format!(
                "exceeded the budget of {} bytes of output",
                self.limits.output
            )));
        }
        Ok(())
    }

    /// Refuses before the stack or the depth of calls is used up.
    pub(super) fn enter(&mut self) -> Result<(), CallError> {
        if self.depth >= self.limits.depth {
            return Err(CallError::budget(format!(
                "exceeded maximum template depth ({})",
                self.limits.depth
            )));
        }
        self.check_stack()
    }

    pub(super) fn check_stack(&self) -> Result<(), CallError> {
        if self.stack_base.abs_diff(stack_pointer()) > self.limits.stack {
            return Err(CallError::budget(TOO_DEEP));
        }
        Ok(())
    }

    pub(super) fn lookup(&self, name: &Str) -> Option<Arc<Template>> {
        self.overlays.iter().rev().find_map(|o| o.get(name)).or_else(|| self.set.templates.get(name)).cloned()
    }

    /// Runs a named template, as Go's `ExecuteTemplate` does, and returns its output.
    ///
    /// # Errors
    /// Those of the template; its text stands in the error.
    pub fn execute_template(&mut self, name: &Str, data: Value) -> Result<Vec<u8>, CallError> {
        let mut out = Vec::new();
        self.run_named(name, data, &mut out)?;
        Ok(out)
    }

    /// Runs a named template of the set into `out`.
    ///
    /// # Errors
    /// Go's execution errors, budgets, or a name that is not there.
    pub fn run_named(&mut self, name: &Str, data: Value, out: &mut Vec<u8>) -> Result<(), Error> {
        let Some(template) = self.lookup(name) else {
            let shown = crate::fmt::quoted(name);
            let text = format!("template: no template {shown} associated with template \"gotpl\"");
            return Err(Error::Exec(text, None));
        };
        self.run(&template, data, out)
    }

    fn run(&mut self, template: &Template, data: Value, out: &mut Vec<u8>) -> Result<(), Error> {
        if let Err(e) = self.enter() {
            return Err(Error::Budget(format!("template: {}: {}", template.name, e.message())));
        }
        self.depth += 1;
        let result = State::new(self, template, out).run(data);
        self.depth -= 1;
        result
    }

    /// Parses `text` under `name`; what it defines is seen while it runs, and only then. The templates of the set stay in
    /// reach. This is what Helm's `tpl` does.
    ///
    /// # Errors
    /// `Ok(Err(…))` is a parse error, `Err` comes from the execution.
    pub fn execute_text(
        &mut self,
        name: &str,
        text: &Str,
        data: Value,
    ) -> Result<Result<Vec<u8>, CallError>, CallError> {
        let name = Str::from(name);
        let overlay = match self.texts.get(text) {
            Some(overlay) => Rc::clone(overlay),
            None => {
                let mut named = Named::default();
                match self.set.parse_texts(&name, text, &mut crate::parse::Workspace::default()) {
                    Ok(parsed) => parsed.into_iter().for_each(|template| adopt(&mut named, template)),
                    Err(error) => return Ok(Err(error.into())),
                }
                let overlay = Rc::new(named);
                if self.texts.len() < KEPT_TEXTS {
                    self.texts.insert(text.clone(), Rc::clone(&overlay));
                }
                overlay
            }
        };
        let Some(template) = overlay.get(&name).cloned() else {
            return Err(CallError::new(format!("template: {name}: {name} is an incomplete template")));
        };
        self.overlays.push(self.visible(overlay));
        let mut out = Vec::new();
        let result = self.run(&template, data, &mut out);
        self.overlays.pop();
        result?;
        Ok(Ok(out))
    }

    /// A text's blank definitions do not hide those already there.
    fn visible(&self, overlay: Rc<Named>) -> Rc<Named> {
        let hides = |(name, t): (&Str, &Arc<Template>)| t.is_blank() && self.lookup(name).is_some();
        if overlay.len() > 1 && overlay.iter().any(hides) {
            return Rc::new(
                overlay.iter().filter(|e| !hides(*e)).map(|(n, t)| (n.clone(), t.clone())).collect(),
            );
        }
        overlay
    }
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("steps", &self.steps)
            .field("depth", &self.depth)
            .finish_non_exhaustive()
    }
}

/// Roughly where the stack is. An address is enough to measure depth and needs no unsafe code.
#[inline(never)]
fn stack_pointer() -> usize {
    let here = 0u8;
    std::ptr::from_ref(&here) as usize
}
