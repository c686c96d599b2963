//! Clock, randomness and cluster access for functions. The caller implements them, so this crate stays pure.

use std::fmt;
use std::rc::Rc;

use fl_gotemplate::{CallError, Context, Value};

/// Access of template functions to the world outside a render.
pub trait Host {
    /// Unix time in seconds and nanoseconds.
    fn now(&self) -> (i64, u32);

    /// Fills a buffer with cryptographically secure random bytes.
    fn random(&self, buffer: &mut [u8]);

    /// The IANA name of the local time zone.
    fn local_zone(&self) -> &str {
        "UTC"
    }

    /// `lookup`: an object, a list object, or an empty map if there is none. Without a cluster Helm returns
    /// an empty map.
    ///
    /// # Errors
    /// The message of the failed request.
    fn lookup(
        &self,
        _api_version: &str,
        _kind: &str,
        _namespace: &str,
        _name: &str,
    ) -> Result<Value, String> {
        Ok(Value::dict())
    }
}

/// Strictness of Helm's functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// `helm template` and installs.
    #[default]
    Render,
    /// `helm lint`: `required` and `fail` do not stop the render.
    Lint,
}

/// The host object of a render: pass it to [`TemplateSet::execute`](fl_gotemplate::TemplateSet::execute) as
/// `Some(Rc::new(context))`.
#[derive(Clone)]
pub struct HostContext {
    host: Rc<dyn Host>,
    mode: Mode,
}

impl HostContext {
    /// Creates the context of a render.
    pub fn new(host: Rc<dyn Host>, mode: Mode) -> Self {
        HostContext { host, mode }
    }

    /// The mode.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The host.
    pub fn host(&self) -> &dyn Host {
        self.host.as_ref()
    }

    /// The context of a running function.
    ///
    /// # Errors
    /// The execution was started without one.
    pub fn of(cx: &Context<'_>) -> Result<Rc<HostContext>, CallError> {
        cx.host::<HostContext>()
            .ok_or_else(|| CallError::new("not available here: the template runs without a host"))
    }
}

impl fmt::Debug for HostContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("mode", &self.mode).finish_non_exhaustive()
    }
}
