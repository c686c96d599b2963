//! Progress on stderr with flux's signs, data on stdout.

use std::io::Write;

/// `► text`: an action.
pub(crate) fn action(text: impl AsRef<str>) {
    line("►", text.as_ref());
}

/// `✚ text`: a generated object.
pub(crate) fn generate(text: impl AsRef<str>) {
    line("✚", text.as_ref());
}

/// `◎ text`: waiting.
pub(crate) fn waiting(text: impl AsRef<str>) {
    line("◎", text.as_ref());
}

/// `✔ text`: success.
pub(crate) fn success(text: impl AsRef<str>) {
    line("✔", text.as_ref());
}

/// `⚠️ text`: a warning.
pub(crate) fn warning(text: impl AsRef<str>) {
    line("⚠️", text.as_ref());
}

/// `✗ text`: a failure.
pub(crate) fn failure(text: impl AsRef<str>) {
    line("✗", text.as_ref());
}

// A closed stream must not fail a finished command: write errors are ignored.
fn line(sign: &str, text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{sign} {text}");
}

/// Text to stderr as it is.
pub(crate) fn note(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Data to stdout as it is.
pub(crate) fn data(text: &str) {
    bytes(text.as_bytes());
}

/// Bytes to stdout as they are.
pub(crate) fn bytes(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(bytes);
    let _ = out.flush();
}

/// A line of data to stdout.
pub(crate) fn data_line(text: &str) {
    data(&format!("{text}\n"));
}

/// A progress line on a terminal, cleared on drop.
pub(crate) struct Progress {
    shown: bool,
}

impl Progress {
    pub(crate) fn start(text: &str) -> Self {
        use std::io::{IsTerminal as _, Write as _};
        let mut out = std::io::stderr();
        let shown = out.is_terminal() && write!(out, "◎ {text}").and_then(|()| out.flush()).is_ok();
        Progress { shown }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        use std::io::Write as _;
        if self.shown {
            // Back to the first column; clear the line.
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
