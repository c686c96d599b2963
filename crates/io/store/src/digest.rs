//! Bytes counted and hashed while they pass.

use std::io::{self, Write};

use fl_types::{Algorithm, Digest};
use sha2::Digest as _;

use crate::Error;

enum Sum {
    Sha1(sha1::Sha1),
    Sha256(sha2::Sha256),
    Sha384(sha2::Sha384),
    Sha512(sha2::Sha512),
    Blake3(Box<blake3::Hasher>),
}

/// Passes bytes on to `W` and hashes them.
pub struct DigestWriter<W> {
    out: W,
    sum: Sum,
    algorithm: Algorithm,
    size: u64,
}

impl<W> std::fmt::Debug for DigestWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DigestWriter")
            .field("algorithm", &self.algorithm)
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

impl<W: Write> DigestWriter<W> {
    pub fn new(out: W, algorithm: &Algorithm) -> Result<Self, Error> {
        let sum = match algorithm {
            Algorithm::Sha1 => Sum::Sha1(sha1::Sha1::new()),
            Algorithm::Sha256 => Sum::Sha256(sha2::Sha256::new()),
            Algorithm::Sha384 => Sum::Sha384(sha2::Sha384::new()),
            Algorithm::Sha512 => Sum::Sha512(sha2::Sha512::new()),
            Algorithm::Blake3 => Sum::Blake3(Box::new(blake3::Hasher::new())),
            Algorithm::Other(name) => return Err(Error::Algorithm(name.clone())),
        };
        Ok(Self { out, sum, algorithm: algorithm.clone(), size: 0 })
    }

    /// The inner writer, the digest of all bytes and their number.
    pub fn finish(self) -> Result<(W, Digest, u64), Error> {
        let hex = match self.sum {
            Sum::Sha1(h) => hex(&h.finalize()),
            Sum::Sha256(h) => hex(&h.finalize()),
            Sum::Sha384(h) => hex(&h.finalize()),
            Sum::Sha512(h) => hex(&h.finalize()),
            Sum::Blake3(h) => hex(h.finalize().as_bytes()),
        };
        let name = self.algorithm.name().to_owned();
        let digest = Digest::new(self.algorithm, hex).map_err(|_| Error::Algorithm(name))?;
        Ok((self.out, digest, self.size))
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, b| {
        let _ = write!(text, "{b:02x}");
        text
    })
}

impl<W: Write> Write for DigestWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.out.write(bytes)?;
        let taken = &bytes[..n];
        match &mut self.sum {
            Sum::Sha1(h) => h.update(taken),
            Sum::Sha256(h) => h.update(taken),
            Sum::Sha384(h) => h.update(taken),
            Sum::Sha512(h) => h.update(taken),
            Sum::Blake3(h) => drop(h.update(taken)),
        }
        self.size += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
