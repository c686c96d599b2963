//! Questions to the person at the terminal.

use std::io::{BufRead, IsTerminal, Write};

use anyhow::bail;

/// What came back on a question.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Yes,
    No,
    /// The input ended.
    Nothing,
}

/// Asks a yes-or-no question; anything but yes ends the command.
///
/// # Errors
/// The answer is no, or stdin is not a terminal.
pub(crate) fn confirm(question: &str) -> anyhow::Result<()> {
    match ask(question) {
        Answer::Yes => Ok(()),
        _ => bail!("aborting"),
    }
}

/// Asks a yes-or-no question.
pub(crate) fn ask(question: &str) -> Answer {
    let mut out = std::io::stdout().lock();
    let _ = write!(out, "{question}? [y/N] ");
    let _ = out.flush();
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    if !std::io::stdin().is_terminal() {
        let _ = writeln!(out);
    }
    match read {
        Ok(n) if n > 0 && matches!(answer.trim(), "y" | "Y" | "yes") => Answer::Yes,
        Ok(n) if n > 0 => Answer::No,
        _ => Answer::Nothing,
    }
}
