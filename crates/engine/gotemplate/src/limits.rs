//! Budgets: what one execution may use before it is stopped.

use std::fmt;
use std::rc::Rc;

/// Limits of one [`execute`](crate::TemplateSet::execute). The defaults let every real chart through.
#[derive(Clone)]
pub struct Limits {
    /// Evaluation steps: nodes walked, elements visited.
    pub steps: u64,
    /// Nested `template`, `include` and `tpl` calls.
    pub depth: u32,
    /// Bytes of stack that the execution may use from where it starts. The default fits a thread with Rust's usual
    /// 2 MiB; [`on_deep_stack`](crate::on_deep_stack) gives room for more.
    pub stack: usize,
    /// Bytes written, those of `include` too.
    pub output: u64,
    /// Size of the largest single value (a string, a list) that a function may make, in bytes.
    pub value: u64,
    /// Bytes of all results of functions together.
    pub allocation: u64,
    /// Asked every few thousand steps; true stops the execution. Time is measured by the caller, not here.
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

/// What a budget error ends with when [`Limits::stack`] was the limit.
pub(crate) const TOO_DEEP: &str = "templates and values are nested too deeply";

/// Stack of a thread made by [`on_deep_stack`].
const DEEP_STACK: usize = 192 << 20;

/// The part of it that templates may use; the rest is for what they call.
pub const DEEP_STACK_BUDGET: usize = 176 << 20;

/// Runs `work` on a thread with a deep stack, for templates that nest as far as Helm lets them (a thousand `include`s of
/// one name). The pages are only touched when used. Set [`Limits::stack`] to [`DEEP_STACK_BUDGET`] inside.
///
/// # Errors
/// When the thread cannot be started.
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
