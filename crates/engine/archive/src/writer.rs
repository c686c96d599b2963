//! Writes entries one by one, each streamed from a reader.

use std::io::{self, Read, Write};

use crate::header::{self, BLOCK, Mode};

/// Why an archive could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(
        "{name:?} cannot be archived: an entry's name is relative, not empty, and has no NUL and no `..`"
    )]
    Name { name: String },
    #[error("{name} was announced with {announced} bytes but has {found}")]
    Size { name: String, announced: u64, found: u64 },
    #[error("cannot write the archive")]
    Io(#[from] io::Error),
}

/// Writes tar bytes into `W`. An archive contains directories and regular files only.
#[derive(Debug)]
pub struct TarWriter<W: Write> {
    out: W,
}

impl<W: Write> TarWriter<W> {
    pub fn new(out: W) -> Self {
        Self { out }
    }

    /// Adds a directory; the root of the tree is `.`.
    pub fn directory(&mut self, name: &str) -> Result<(), Error> {
        check(name)?;
        Ok(self.out.write_all(&header::blocks(name, Mode::Directory, 0))?)
    }

    /// Adds a file of exactly `size` bytes from `content`.
    pub fn file(&mut self, name: &str, mode: Mode, size: u64, content: &mut dyn Read) -> Result<(), Error> {
        check(name)?;
        self.out.write_all(&header::blocks(name, mode, size))?;
        let found = io::copy(&mut content.take(size), &mut self.out)?;
        let surplus = content.read(&mut [0])? as u64;
        if found != size || surplus > 0 {
            return Err(Error::Size { name: name.to_owned(), announced: size, found: found + surplus });
        }
        let fill = size.next_multiple_of(BLOCK as u64) - size;
        Ok(self.out.write_all(&[0; BLOCK][..usize::try_from(fill).unwrap_or(0)])?)
    }

    /// Ends the archive and returns the inner writer.
    pub fn finish(mut self) -> Result<W, Error> {
        self.out.write_all(&[0; 2 * BLOCK])?;
        Ok(self.out)
    }
}

fn check(name: &str) -> Result<(), Error> {
    let bad =
        name.is_empty() || name.starts_with('/') || name.contains('\0') || name.split('/').any(|s| s == "..");
    if bad { Err(Error::Name { name: name.to_owned() }) } else { Ok(()) }
}
