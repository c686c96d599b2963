//! What can be wrong with a YAML text, and where.

/// Which stage of reading or writing refused the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Bytes to characters: encoding, control characters.
    Reader,
    /// Characters to tokens.
    Scanner,
    /// Tokens to nodes.
    Parser,
    /// Nodes to values: aliases, merge keys, tags that do not fit.
    Decoder,
    /// A key that is there twice.
    Duplicate,
    /// Values to what JSON can hold, once the whole text was read.
    Converter,
    /// Values to text.
    Emitter,
}

/// A refusal. Lines and columns count from 1; the column counts characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct Error {
    /// The line of the problem, from 1.
    pub line: u32,
    /// The column of the problem in characters, from 1.
    pub column: u32,
    /// What is wrong, in the words of Go's libraries where they have any.
    pub message: String,
    /// The stage that refused.
    pub stage: Stage,
    /// Where the construct began that could not be finished (zero-based line), when the stage tells.
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

    /// The text that Go's library of `dialect` prints for this problem, with its own way to count lines.
    ///
    /// Go reports the zero-based line for parser problems (so one less than an editor shows), and `yaml.v3` prefers
    /// the line where the unfinished construct began. Line zero is left out.
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
