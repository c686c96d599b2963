//! A stream that is what it claims to be, or an error.

use std::io::{self, Read};

use sha2::{Digest, Sha256, Sha512};

enum Hasher {
    Sha256(Sha256),
    Sha512(Sha512),
}

/// Reads a blob and compares digest and size when it ends. What was read before the end must not be trusted.
pub struct VerifiedBlob<R> {
    inner: R,
    hasher: Option<Hasher>,
    digest: String,
    size: u64,
    seen: u64,
}

impl<R> std::fmt::Debug for VerifiedBlob<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "VerifiedBlob({} of {} bytes of {})", self.seen, self.size, self.digest)
    }
}

impl<R: Read> VerifiedBlob<R> {
    pub fn new(inner: R, digest: &str, size: u64) -> io::Result<Self> {
        let hasher = match digest.split_once(':') {
            Some(("sha256", _)) => Hasher::Sha256(Sha256::new()),
            Some(("sha512", _)) => Hasher::Sha512(Sha512::new()),
            _ => {
                return Err(io::Error::other(format!(
                    "the digest {digest} is of no kind that can be checked"
                )));
            }
        };
        Ok(Self { inner, hasher: Some(hasher), digest: digest.to_owned(), size, seen: 0 })
    }

    /// The digest that is being checked.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Bytes in all, as announced.
    pub fn size(&self) -> u64 {
        self.size
    }

    fn finish(&mut self) -> io::Result<()> {
        let Some(hasher) = self.hasher.take() else { return Ok(()) };
        if self.seen != self.size {
            return Err(io::Error::other(format!(
                "error verifying size; got {}, want {}",
                self.seen, self.size
            )));
        }
        let found = match hasher {
            Hasher::Sha256(h) => format!("sha256:{}", hex(&h.finalize())),
            Hasher::Sha512(h) => format!("sha512:{}", hex(&h.finalize())),
        };
        if found == self.digest {
            Ok(())
        } else {
            Err(io::Error::other(format!("error verifying digest; got {found}, want {}", self.digest)))
        }
    }
}

impl<R: Read> Read for VerifiedBlob<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let n = self.inner.read(buffer)?;
        if n == 0 {
            self.finish()?;
            return Ok(0);
        }
        self.seen += n as u64;
        if self.seen > self.size {
            return Err(io::Error::other(format!("error verifying size; got more than {}", self.size)));
        }
        match &mut self.hasher {
            Some(Hasher::Sha256(h)) => h.update(&buffer[..n]),
            Some(Hasher::Sha512(h)) => h.update(&buffer[..n]),
            None => {}
        }
        Ok(n)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// `sha256:…` of some bytes.
pub fn digest_of(bytes: &[u8]) -> String {
    format!("sha256:{}", hex(&Sha256::digest(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], digest: &str, size: u64) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        VerifiedBlob::new(bytes, digest, size)?.read_to_end(&mut out)?;
        Ok(out)
    }

    #[test]
    fn only_the_right_bytes_come_through() {
        let digest = digest_of(b"hello");
        assert_eq!(read(b"hello", &digest, 5).unwrap(), b"hello");
        for (bytes, digest, size) in [
            (&b"hellO"[..], digest.as_str(), 5),
            (b"hell", &digest, 5),
            (b"hello", &digest, 4),
            (b"hello!", &digest, 5),
            (b"hello", "md5:aa", 5),
            (b"hello", "sha256", 5),
        ] {
            assert!(read(bytes, digest, size).is_err(), "{digest} {size}");
        }
    }
}
