//! Questions to the person at the terminal.

use std::io::{BufRead, IsTerminal, Write};

use anyhow::bail;

/// Asks a yes-or-no question; anything but yes ends the command.
///
/// # Errors
/// The answer is no, or nobody can answer.
pub(crate) fn confirm(question: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    let _ = write!(out, "{question}? [y/N] ");
    let _ = out.flush();
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    if !std::io::stdin().is_terminal() {
        let _ = writeln!(out);
    }
    match read {
        Ok(n) if n > 0 && matches!(answer.trim(), "y" | "Y" | "yes") => Ok(()),
        _ => bail!("aborting"),
    }
}
