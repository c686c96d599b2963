//! Errors with their position.

/// The stage that reported an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Bytes to characters: encoding, control characters.
    Reader,
    /// Characters to tokens.
    Scanner,
    /// Tokens to nodes.
    Parser,
    /// Nodes to values: aliases, merge keys, tags that do not match.
    Decoder,
    /// A duplicate key.
    Duplicate,
    /// Values to JSON, after the whole text was parsed.
    Converter,
    /// Values to text.
    Emitter,
}

/// An error. Lines and columns count from 1; columns count characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct Error {
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// The message; that of Go's libraries where they have one.
    pub message: String,
    /// The stage that reported the error.
    pub stage: Stage,
    /// Zero-based line where the unfinished construct began, if known.
    context_line: Option<u32>,
}

impl Error {
    /// An error at a zero-based position.
    pub(crate) fn at(stage: Stage, line: u32, column: u32, message: impl Into<String>) -> Self {
        Self { line: line + 1, column: column + 1, message: message.into(), stage, context_line: None }
    }

    pub(crate) fn with_context(mut self, line: u32) -> Self {
        self.context_line = Some(line);
        self
    }

    /// The message of Go's library of `dialect`, with its line numbers.
    ///
    /// Go reports the zero-based line for errors of the parser (one less than an editor shows), and `yaml.v3`
    /// prefers the line where the unfinished construct began. Line zero is omitted.
    #[must_use]
    pub fn go_text(&self, dialect: crate::Dialect) -> String {
        let problem = self.line - 1;
        let context = self.context_line.unwrap_or(0);
        let bump = u32::from(self.stage == Stage::Scanner);
        let line = match (self.stage, dialect) {
            (Stage::Scanner | Stage::Parser, crate::Dialect::V3) if context != 0 => context + bump,
            (Stage::Scanner | Stage::Parser, _) if problem != 0 => problem + bump,
            (Stage::Scanner | Stage::Parser, _) => context,
            _ => 0,
        };
        if self.stage == Stage::Duplicate {
            return format!("yaml: unmarshal errors:\n  line {}: {}", self.line, self.message);
        }
        if self.stage == Stage::Converter {
            return self.message.clone();
        }
        if line == 0 {
            format!("yaml: {}", self.message)
        } else {
            format!("yaml: line {line}: {}", self.message)
        }
    }
}
