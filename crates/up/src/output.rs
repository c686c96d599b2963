//! The two streams of a command: data on stdout, messages for people on stderr.

use std::io::Write as _;

/// Writes data to stdout. A reader that closed the pipe (`| head`) is not an error.
pub(crate) fn data(bytes: &[u8]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

/// Prints a message for people.
pub(crate) fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "► {text}");
}
