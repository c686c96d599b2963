//! One object: small ones are kept in memory, others in a file without a name.

use std::io::{self, Read, Seek, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Buf, Bytes};
use fl_http::{HeldBytes, Lease, Response, SpoolFile, header};

use crate::Error;

/// Objects up to this size are kept in memory.
const SMALL: u64 = 64 << 10;

/// An object that was fetched.
#[derive(Debug)]
pub struct Object {
    /// As the listing would have it at the time of fetching.
    pub etag: String,
    pub size: u64,
    pub content: Content,
}

/// The bytes of an object.
#[derive(Debug)]
pub enum Content {
    Memory(bytes::buf::Reader<Bytes>, Option<HeldBytes>),
    File(SpoolFile),
}

impl Content {
    pub fn of(bytes: impl Into<Bytes>) -> Self {
        Content::Memory(bytes.into().reader(), None)
    }
}

impl Read for Content {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Content::Memory(bytes, _) => bytes.read(buffer),
            Content::File(file) => file.read(buffer),
        }
    }
}

/// Bytes that the objects of one fetch may have together, and the lease that counts those which are held at once.
#[derive(Debug)]
pub struct Budget {
    limit: u64,
    left: AtomicU64,
    lease: Lease,
}

impl Budget {
    pub fn new(limit: u64, lease: Lease) -> Self {
        Self { limit, left: AtomicU64::new(limit), lease }
    }

    /// Takes some of it.
    ///
    /// # Errors
    /// There is not as much left.
    pub fn take(&self, bytes: u64) -> Result<(), Error> {
        self.left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(bytes))
            .map(drop)
            .map_err(|_| Error::TooLarge(self.limit))
    }
}

/// Reads the body of an answer.
pub(crate) async fn read(response: Response, etag: String, budget: &Arc<Budget>) -> Result<Object, Error> {
    let length = response.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|v| v.to_str().ok()).and_then(|v| v.parse::<u64>().ok());
    if let Some(length) = length.filter(|l| *l <= SMALL) {
        budget.take(length)?;
        let mut held = budget.lease.hold();
        held.add(length).await?;
        let bytes = response.bytes(SMALL).await?;
        let (size, content) = (bytes.len() as u64, Content::Memory(bytes.reader(), Some(held)));
        return Ok(Object { etag, size, content });
    }
    let (mut body, budget) = (response.reader(u64::MAX), budget.clone());
    let kept = tokio::task::spawn_blocking(move || {
        let mut file = budget.lease.spool().map_err(Error::Spool)?;
        let (mut size, mut piece) = (0, vec![0; SMALL as usize]);
        loop {
            let n = body.read(&mut piece).map_err(|e| Error::Broken(e.to_string()))?;
            if n == 0 {
                break;
            }
            budget.take(n as u64)?;
            file.write_all(&piece[..n]).map_err(Error::Spool)?;
            size += n as u64;
        }
        file.rewind().map_err(Error::Spool)?;
        Ok::<_, Error>((file, size))
    });
    let (file, size) = kept.await.map_err(|e| Error::Spool(io::Error::other(e)))??;
    // Cut short without an error: a proxy that closes the connection.
    if length.is_some_and(|l| l != size) {
        return Err(Error::Broken("unexpected EOF".to_owned()));
    }
    Ok(Object { etag, size, content: Content::File(file) })
}
