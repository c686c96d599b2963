//! Packet lines, protocol messages, packs and objects of Git.

use std::io::Cursor;

use fl_git::{Advertisement, FetchResponse, HashKind, Hasher, Limits, Pack};

use super::Target;

pub(crate) const TARGETS: &[Target] =
    &[("git-pack", pack), ("git-messages", messages), ("git-objects", objects)];

/// The trailer is made right, so that mutations reach beyond the checksum.
fn pack(input: &[u8]) {
    let body = &input[..input.len().saturating_sub(20)];
    let mut hasher = Hasher::new(HashKind::Sha1);
    hasher.update(body);
    let Ok(trailer) = hasher.finish() else { return };
    let limits = Limits { object: 1 << 20, objects: 10_000, chain: 100 };
    let _ = Pack::open(Cursor::new([body, trailer.as_bytes()].concat()), HashKind::Sha1, limits);
}

fn messages(input: &[u8]) {
    let _ = Advertisement::read(input);
    let _ = fl_git::read_refs(input, 1000);
    let mut pack = Vec::new();
    let _ = FetchResponse::read(input, &mut pack, 1 << 20);
    assert!(pack.len() <= 1 << 20);
}

fn objects(input: &[u8]) {
    let _ = fl_git::parse_tag(input);
    if let Ok(entries) = fl_git::parse_tree(input, HashKind::Sha1) {
        assert!(entries.iter().all(|e| e.name != ".." && !e.name.contains('/')));
    }
    if let Ok(commit) = fl_git::parse_commit(input) {
        assert!(commit.signed_payload.len() <= input.len());
    }
    let _ = fl_git::check_ref_name(&String::from_utf8_lossy(input));
}
