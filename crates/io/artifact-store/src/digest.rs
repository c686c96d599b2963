//! A writer that counts and hashes what is written.

use std::io::{self, Write};

use fl_types::{Algorithm, Digest};
use sha2::Digest as _;

use crate::Error;

enum Hasher {
    Sha1(sha1::Sha1),
    Sha256(sha2::Sha256),
    Sha384(sha2::Sha384),
    Sha512(sha2::Sha512),
    Blake3(Box<blake3::Hasher>),
}

/// Passes bytes on to `W` and hashes them.
pub struct DigestWriter<W> {
    out: W,
    hasher: Hasher,
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
        let hasher = match algorithm {
            Algorithm::Sha1 => Hasher::Sha1(sha1::Sha1::new()),
            Algorithm::Sha256 => Hasher::Sha256(sha2::Sha256::new()),
            Algorithm::Sha384 => Hasher::Sha384(sha2::Sha384::new()),
            Algorithm::Sha512 => Hasher::Sha512(sha2::Sha512::new()),
            Algorithm::Blake3 => Hasher::Blake3(Box::new(blake3::Hasher::new())),
            Algorithm::Other(name) => return Err(Error::Algorithm(name.clone())),
        };
        Ok(Self { out, hasher, algorithm: algorithm.clone(), size: 0 })
    }

    /// The inner writer, the digest of all bytes and their number.
    pub fn finish(self) -> Result<(W, Digest, u64), Error> {
        let hex = match self.hasher {
            Hasher::Sha1(h) => hex(&h.finalize()),
            Hasher::Sha256(h) => hex(&h.finalize()),
            Hasher::Sha384(h) => hex(&h.finalize()),
            Hasher::Sha512(h) => hex(&h.finalize()),
            Hasher::Blake3(h) => hex(h.finalize().as_bytes()),
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
        match &mut self.hasher {
            Hasher::Sha1(h) => h.update(taken),
            Hasher::Sha256(h) => h.update(taken),
            Hasher::Sha384(h) => h.update(taken),
            Hasher::Sha512(h) => h.update(taken),
            Hasher::Blake3(h) => drop(h.update(taken)),
        }
        self.size += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
