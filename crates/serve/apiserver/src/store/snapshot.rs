//! The whole state in one file, written beside the old one and renamed over it.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use std::sync::Arc;

use super::{Item, Write, wal};

const NAME: &str = "snapshot";
const MAGIC: &[u8; 8] = b"FLSNAP\0\x01";

/// Writes the state as of `revision`; when it returns, the log up to that revision is not needed any more.
pub(super) fn save(dir: &Path, revision: u64, all: &[(Arc<str>, Item)]) -> io::Result<()> {
    let temporary = dir.join("snapshot.tmp");
    let mut out = BufWriter::with_capacity(1 << 18, File::create(&temporary)?);
    out.write_all(MAGIC)?;
    out.write_all(&revision.to_le_bytes())?;
    out.write_all(&(all.len() as u64).to_le_bytes())?;
    let mut frame = Vec::new();
    for (table, (key, entry)) in all {
        frame.clear();
        let write = Write {
            table: table.clone(),
            key: key.clone(),
            revision: entry.revision,
            delete: false,
            entry: entry.clone(),
        };
        wal::encode(&write, false, &mut frame);
        out.write_all(&frame)?;
    }
    let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.sync_all()?;
    std::fs::rename(&temporary, dir.join(NAME))?;
    File::open(dir)?.sync_all()
}

/// Reads the snapshot, if there is one: its revision and its objects.
pub(super) fn load(dir: &Path) -> io::Result<Option<(u64, Vec<Write>)>> {
    let bytes = match std::fs::read(dir.join(NAME)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let broken = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let rest = bytes.strip_prefix(MAGIC.as_slice()).ok_or_else(|| broken("unknown file header"))?;
    let (head, mut rest) = rest.split_at_checked(16).ok_or_else(|| broken("cut off in the header"))?;
    let number = |b: &[u8]| u64::from_le_bytes(b.try_into().expect("eight bytes"));
    let (revision, count) = (number(&head[..8]), number(&head[8..]));
    let mut all = Vec::new();
    for _ in 0..count {
        all.push(wal::decode(&mut rest).ok_or_else(|| broken("a record is damaged"))?);
    }
    Ok(Some((revision, all)))
}
