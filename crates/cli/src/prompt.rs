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

/// Reads a line such as a password that was piped in.
///
/// # Errors
/// Nothing was piped in.
pub(crate) fn line(question: &str) -> anyhow::Result<String> {
    let mut out = std::io::stdout().lock();
    let _ = write!(out, "{question}");
    let _ = out.flush();
    let mut answer = String::new();
    match std::io::stdin().lock().read_line(&mut answer) {
        Ok(0) => bail!("could not read from stdin: EOF"),
        Err(error) => bail!("could not read from stdin: {error}"),
        Ok(_) => {}
    }
    let _ = writeln!(out);
    Ok(answer.trim_end_matches(['\r', '\n']).to_owned())
}
