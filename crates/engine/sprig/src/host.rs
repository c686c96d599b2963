//! What functions need from outside: the clock, randomness, the cluster. The caller provides it, so this crate stays pure.

use std::fmt;
use std::rc::Rc;

use fl_gotemplate::{CallError, Context, Value};

/// The world outside a render.
pub trait Outside {
    /// Seconds and nanoseconds since 1970 in UTC.
    fn now(&self) -> (i64, u32);

    /// Fills a buffer with bytes fit for secrets.
    fn random(&self, buffer: &mut [u8]);

    /// The IANA name of the local time zone.
    fn local_zone(&self) -> &str {
        "UTC"
    }

    /// `lookup`: an object, a list object, or an empty map when there is none. Without a cluster Helm answers with an
    /// empty map.
    ///
    /// # Errors
    /// The text of the failure.
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

/// How strictly Helm's functions behave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// `helm template` and installs.
    #[default]
    Render,
    /// `helm lint`: `required` and `fail` only note their text.
    Lint,
}

/// The host object of a render: give it to [`TemplateSet::execute`](fl_gotemplate::TemplateSet::execute) as
/// `Some(Rc::new(host))`.
#[derive(Clone)]
pub struct Host {
    outside: Rc<dyn Outside>,
    mode: Mode,
}

impl Host {
    /// A host over the given world.
    pub fn new(outside: Rc<dyn Outside>, mode: Mode) -> Self {
        Host { outside, mode }
    }

    /// The mode.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The world.
    pub fn outside(&self) -> &dyn Outside {
        self.outside.as_ref()
    }

    /// The host of a running function.
    ///
    /// # Errors
    /// When the execution was started without one.
    pub fn of(cx: &Context<'_>) -> Result<Rc<Host>, CallError> {
        cx.host::<Host>()
            .ok_or_else(|| CallError::new("not available here: the template runs without a host"))
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("mode", &self.mode).finish_non_exhaustive()
    }
}
