//! Limits of one execution.

use std::fmt;
use std::rc::Rc;

/// Limits of one [`execute`](crate::TemplateSet::execute). The defaults suffice for every real chart.
#[derive(Clone)]
pub struct Limits {
    /// Maximum evaluation steps: nodes walked, elements visited.
    pub steps: u64,
    /// Maximum depth of `template`, `include` and `tpl` calls.
    pub depth: u32,
    /// Maximum bytes of stack, counted from the start of the execution. The default fits a thread with Rust's
    /// usual 2 MiB; [`on_deep_stack`](crate::on_deep_stack) allows more.
    pub stack: usize,
    /// Maximum bytes of output, including that of `include`.
    pub output: u64,
    /// Maximum bytes of a single value (a string, a list) that a function creates.
    pub value: u64,
    /// Maximum bytes of all results of functions together.
    pub allocation: u64,
    /// Called every few thousand steps; `true` stops the execution. The caller measures the time.
    pub expired: Option<Rc<dyn Fn() -> bool>>,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            steps: 50_000_000,
            depth: 10_000,
            stack: 1 << 20,
            output: 256 << 20,
            value: 32 << 20,
            allocation: 4 << 30,
            expired: None,
        }
    }
}

impl fmt::Debug for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limits")
            .field("steps", &self.steps)
            .field("depth", &self.depth)
            .field("stack", &self.stack)
            .field("output", &self.output)
            .field("value", &self.value)
            .field("allocation", &self.allocation)
            .field("expired", &self.expired.is_some())
            .finish()
    }
}

/// Suffix of the error for [`Limits::stack`].
pub(crate) const TOO_DEEP: &str = "templates and values are nested too deeply";

/// Stack size of a thread made by [`on_deep_stack`].
const DEEP_STACK: usize = 192 << 20;

/// The part of it for templates; the rest is for the functions they call.
pub const DEEP_STACK_BUDGET: usize = 176 << 20;

/// Runs `work` on a thread with a deep stack, for templates nested as deeply as Helm allows (a thousand
/// `include`s of one name). Pages are only allocated when used. Set [`Limits::stack`] to
/// [`DEEP_STACK_BUDGET`] inside.
///
/// # Errors
/// The thread cannot be started.
pub fn on_deep_stack<T: Send>(work: impl FnOnce() -> T + Send) -> std::io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("template".to_owned())
            .stack_size(DEEP_STACK)
            .spawn_scoped(scope, work)?;
        match thread.join() {
            Ok(value) => Ok(value),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
