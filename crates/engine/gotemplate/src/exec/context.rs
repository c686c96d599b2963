//! Execution context, and what functions can do with it.

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

/// The context of an execution: limits, visible templates, and the caller's host object.
pub struct Context<'a> {
    set: &'a TemplateSet,
    /// Templates defined by `tpl` texts, innermost last; they hide those of the set while the text is
    /// executed.
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
    /// Name of the variable that every template starts with.
    pub(super) dollar: Str,
}

/// Steps between two checks of the deadline.
const STEPS_PER_DEADLINE_CHECK: u64 = 4096;

/// Maximum number of parsed `tpl` texts in the cache. Values repeat the same texts many times; a malicious
/// one could generate new texts without end.
const MAX_CACHED_TEXTS: usize = 4096;

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

    /// The host object of the execution, if it has this type.
    pub fn host<T: 'static>(&self) -> Option<Rc<T>> {
        Rc::clone(self.host.as_ref()?).downcast().ok()
    }

    pub(super) fn missing_key(&self) -> MissingKey {
        self.set.missing_key
    }

    /// Changes the use count of a name by `change` and returns the new count. Helm counts nested `include`s
    /// by name.
    pub fn count_name(&mut self, name: &Str, change: i32) -> u32 {
        let count = self.names.entry(name.clone()).or_default();
        *count = count.saturating_add_signed(change);
        *count
    }

    /// Counts evaluation steps.
    ///
    /// # Errors
    /// No steps are left, or the deadline has passed.
    pub fn step(&mut self, steps: u64) -> Result<(), CallError> {
        let before = self.steps / STEPS_PER_DEADLINE_CHECK;
        self.steps = self.steps.saturating_add(steps);
        if self.steps > self.limits.steps {
            return Err(CallError::budget(format!("exceeded the budget of {} steps", self.limits.steps)));
        }
        if self.steps / STEPS_PER_DEADLINE_CHECK != before
            && let Some(expired) = &self.limits.expired
            && expired()
        {
            return Err(CallError::budget("exceeded the time given to it"));
        }
        Ok(())
    }

    /// Accounts for a value of `bytes` bytes before it is created.
    ///
    /// # Errors
    /// The value, or all values together, exceed the limit.
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

    /// Maximum size in bytes of a value that a function may create.
    pub fn max_value_bytes(&self) -> u64 {
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

    /// Fails before the stack or the call depth is exhausted.
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

    /// Executes a named template as Go's `ExecuteTemplate` does, and returns its output.
    ///
    /// # Errors
    /// The error of the template.
    pub fn execute_template(&mut self, name: &Str, data: Value) -> Result<Vec<u8>, CallError> {
        let mut out = Vec::new();
        self.run_named(name, data, &mut out)?;
        Ok(out)
    }

    /// Executes a named template of the set and appends to `out`.
    ///
    /// # Errors
    /// Go's execution errors, a limit, or an unknown name.
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

    /// Parses and executes `text` under `name`, as Helm's `tpl` does. The templates it defines are visible
    /// only while it is executed; those of the set stay visible.
    ///
    /// # Errors
    /// `Ok(Err(…))` is a parse error, `Err` an execution error.
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
                if self.texts.len() < MAX_CACHED_TEXTS {
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

    /// Blank definitions of a text do not hide existing ones.
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

/// An approximation of the stack pointer. The address of a local is enough to measure depth and needs no
/// unsafe code.
#[inline(never)]
fn stack_pointer() -> usize {
    let here = 0u8;
    std::ptr::from_ref(&here) as usize
}
