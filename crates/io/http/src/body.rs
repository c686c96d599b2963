//! A body handed to code that reads synchronously, such as a parser on the blocking pool.

use std::io::{self, Read};

use bytes::Bytes;
use tokio::sync::mpsc;

/// Reads what an async task receives. A few pieces wait at most, so memory stays flat whatever the size of the body.
#[derive(Debug)]
pub struct BodyReader {
    pieces: mpsc::Receiver<io::Result<Bytes>>,
    current: Bytes,
}

impl BodyReader {
    /// A reader and the sending side that feeds it, for other transports than HTTP.
    pub fn channel() -> (mpsc::Sender<io::Result<Bytes>>, Self) {
        let (sender, receiver) = mpsc::channel(4);
        (sender, Self::new(receiver))
    }

    pub(crate) fn new(pieces: mpsc::Receiver<io::Result<Bytes>>) -> Self {
        Self { pieces, current: Bytes::new() }
    }
}

impl Read for BodyReader {
    /// Must not be called on an async worker; it waits for the network.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            match self.pieces.blocking_recv() {
                Some(piece) => self.current = piece?,
                None => return Ok(0),
            }
        }
        let n = self.current.len().min(buffer.len());
        buffer[..n].copy_from_slice(&self.current.split_to(n));
        Ok(n)
    }
}
