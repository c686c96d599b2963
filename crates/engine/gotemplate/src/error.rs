//! Errors, worded as Go words them.

/// What went wrong while parsing or executing a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// `template: NAME:LINE: …`
    #[error("{0}")]
    Parse(String),
    /// `template: NAME:LINE:COL: executing "NAME" at <…>: …`
    #[error("{0}")]
    Exec(String),
    /// Steps, depth, output or time ran out; the text names the template and place.
    #[error("{0}")]
    Budget(String),
}

impl Error {
    /// Whether a budget stopped the work.
    pub fn is_budget(&self) -> bool {
        matches!(self, Error::Budget(_))
    }
}
