//! What people read: progress on stderr with a sign, data on stdout.

use std::io::Write;

/// `► text`: something is being done.
pub(crate) fn action(text: impl AsRef<str>) {
    line("►", text.as_ref());
}

/// `✚ text`: something is being made.
pub(crate) fn generate(text: impl AsRef<str>) {
    line("✚", text.as_ref());
}

/// `◎ text`: something is being waited for.
pub(crate) fn waiting(text: impl AsRef<str>) {
    line("◎", text.as_ref());
}

/// `✔ text`: something went well.
pub(crate) fn success(text: impl AsRef<str>) {
    line("✔", text.as_ref());
}

/// `⚠️ text`: something to know.
pub(crate) fn warning(text: impl AsRef<str>) {
    line("⚠️", text.as_ref());
}

/// `✗ text`: something failed.
pub(crate) fn failure(text: impl AsRef<str>) {
    line("✗", text.as_ref());
}

// A reader that went away must not turn a finished job into a failure: errors of the streams are dropped.
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

/// A line on a terminal that says what is going on, until it is dropped.
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
            // Back to the first column, and nothing left of the line.
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
