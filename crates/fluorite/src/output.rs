//! The two streams of a command: data on stdout, messages for people on stderr.

use std::io::{BufWriter, Write};

/// Writes data to stdout. A reader that closed the pipe (`| head`) is not an error.
pub(crate) fn data(bytes: &[u8]) -> anyhow::Result<()> {
    stream(|out| out.write_all(bytes))
}

/// Writes data to stdout piece by piece, as [`data`] does.
pub(crate) fn stream(write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> anyhow::Result<()> {
    // The capacity of a pipe.
    let mut out = BufWriter::with_capacity(64 << 10, std::io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

/// Prints a message for people.
pub(crate) fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "► {text}");
}

/// Prints the error of a command, the chain of causes on one line as `flux` does.
pub(crate) fn failure(error: &anyhow::Error) {
    let _ = writeln!(std::io::stderr(), "✗ {error:#}");
}
