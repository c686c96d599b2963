//! Untrusted archives: headers, extensions, names, and their combinations.

use fl_archive::{EntryKind, ReadError, ReadLimits, TreeBuilder, read_tar, read_tar_gz};

use super::Target;

pub(crate) const TARGETS: &[Target] = &[("archive-tar", plain), ("archive-tar-gz", packed)];

const LIMITS: ReadLimits =
    ReadLimits { entries: 1000, bytes: 1 << 20, header_bytes: 4096, ratio_checked_after: 1 << 20 };

/// Reads a whole archive and holds what every reader of it relies on.
fn check(read: impl FnOnce(&mut TreeBuilder<usize>) -> Result<(), ReadError>) {
    let mut listing = TreeBuilder::new(&LIMITS);
    if read(&mut listing).is_err() {
        return;
    }
    let Ok(tree) = listing.finish() else { return };
    let mut bytes = 0;
    for (name, found) in tree.iter() {
        assert!(!name.is_empty() && !name.starts_with('/') && name.len() <= 4096);
        assert!(name.split('/').all(|part| !matches!(part, "" | "." | "..")), "{name}");
        if let Some((parent, _)) = name.rsplit_once('/') {
            assert!(matches!(tree.get(parent), Some(None)), "{name} has no directory");
        }
        bytes += found.map_or(0, |(size, _)| *size);
    }
    assert!(bytes as u64 <= LIMITS.bytes);
}

fn add(
    listing: &mut TreeBuilder<usize>,
    entry: &fl_archive::Entry,
    content: &mut dyn std::io::Read,
) -> Result<(), ReadError> {
    match entry.kind {
        EntryKind::Directory => listing.directory(&entry.name),
        EntryKind::File { executable } => {
            let mut data = Vec::new();
            content.read_to_end(&mut data)?;
            listing.file(&entry.name, executable, data.len())
        }
        _ => Ok(()),
    }
}

/// Every block is given the checksum of a header, so that mutations reach beyond it.
fn plain(input: &[u8]) {
    let mut tar = input.to_vec();
    for block in tar.chunks_exact_mut(512).filter(|b| b.iter().any(|byte| *byte != 0)) {
        block[148..156].copy_from_slice(b"        ");
        let sum: u32 = block.iter().map(|b| u32::from(*b)).sum();
        block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    }
    check(|listing| read_tar(tar.as_slice(), &LIMITS, |entry, content| add(listing, entry, content)));
}

fn packed(input: &[u8]) {
    check(|listing| read_tar_gz(input, &LIMITS, |entry, content| add(listing, entry, content)));
}
