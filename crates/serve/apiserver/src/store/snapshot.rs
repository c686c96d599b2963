//! A snapshot: the whole state at the beginning of a generation.

use std::io;
use std::sync::Arc;

use super::files::{Files, write_all_at};
use super::format::{self, Block, Chain, HEADER, Header};
use super::{Item, Write};

const BLOCK_BYTES: usize = 256 << 10;
/// The table of the record that ends a snapshot; its revision is the number of objects.
const TRAILER: &str = "";

fn trailer(objects: u64) -> Write {
    let entry = super::Entry { revision: objects, bytes: bytes::Bytes::new() };
    let (table, key) = (Arc::from(TRAILER), Arc::from(""));
    Write { table, key, revision: objects, delete: true, entry: Arc::new(entry) }
}

/// Writes the file and makes its contents durable; its name is durable after the directory is synced.
pub(super) fn write(
    files: &dyn Files,
    name: &str,
    header: &Header,
    all: &[(Arc<str>, Item)],
) -> io::Result<()> {
    let mut file = files.create(name)?;
    write_all_at(&mut *file, &header.encode(), 0)?;
    let (mut chain, mut position, mut block) = (Chain::new(header), HEADER as u64, Block::default());
    let mut flush = |block: &mut Block| {
        let bytes = block.seal(&mut chain, 0);
        write_all_at(&mut *file, bytes, position)?;
        position += bytes.len() as u64;
        block.clear();
        io::Result::Ok(())
    };
    for (table, (key, entry)) in all {
        let (table, key, entry) = (table.clone(), key.clone(), entry.clone());
        block.push(&Write { table, key, revision: entry.revision, delete: false, entry });
        if block.len() >= BLOCK_BYTES {
            flush(&mut block)?;
        }
    }
    block.push(&trailer(all.len() as u64));
    flush(&mut block)?;
    file.sync()
}

/// Reads the objects of a snapshot; the error says what is wrong with the file.
pub(super) fn read(bytes: &[u8], header: &Header) -> Result<Vec<Write>, String> {
    header.check(bytes)?;
    let (mut chain, mut at, mut all) = (Chain::new(header), HEADER, Vec::new());
    while at < bytes.len() {
        let Some(block) = format::next(bytes, at, &mut chain) else {
            return Err(format!("the block at byte {at} is damaged"));
        };
        all.extend(block.records()?);
        at = block.end;
    }
    let end = all.pop().filter(|end| end.delete && &*end.table == TRAILER);
    if end.is_none_or(|end| end.revision != all.len() as u64) || all.iter().any(|write| write.delete) {
        return Err("its end is missing: it is damaged".to_owned());
    }
    Ok(all)
}
