//! Packs made here byte by byte: whole objects, deltas of both kinds, and all that can be wrong with them.

#![allow(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use std::io::{Cursor, Write};

use fl_git::{Error, HashKind, Hasher, Limits, ObjectId, ObjectKind, Pack};
use flate2::Compression;
use flate2::write::ZlibEncoder;

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn entry(kind: u8, size: u64, before: &[u8], content: &[u8]) -> Vec<u8> {
    let mut out = vec![(kind << 4) | (size & 15) as u8];
    let mut rest = size >> 4;
    while rest > 0 {
        *out.last_mut().unwrap() |= 0x80;
        out.push((rest & 0x7f) as u8);
        rest >>= 7;
    }
    out.extend_from_slice(before);
    out.extend(deflate(content));
    out
}

fn pack(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut out = b"PACK\0\0\0\x02".to_vec();
    out.extend_from_slice(&(entries.len() as u32).to_be_bytes());
    entries.iter().for_each(|e| out.extend_from_slice(e));
    let mut hasher = Hasher::new(HashKind::Sha1);
    hasher.update(&out);
    out.extend_from_slice(hasher.finish().unwrap().as_bytes());
    out
}

fn id(kind: ObjectKind, content: &[u8]) -> ObjectId {
    let mut hasher = Hasher::for_object(HashKind::Sha1, kind, content.len() as u64);
    hasher.update(content);
    hasher.finish().unwrap()
}

fn open(bytes: Vec<u8>) -> Result<Pack<Cursor<Vec<u8>>>, Error> {
    Pack::open(Cursor::new(bytes), HashKind::Sha1, Limits::default())
}

/// A delta that keeps the first `keep` bytes of its base and appends a letter.
fn append(base: usize, keep: usize, letter: u8) -> Vec<u8> {
    vec![base as u8, (keep + 1) as u8, 0x90, keep as u8, 1, letter]
}

#[test]
fn whole_objects_and_deltas_of_both_kinds() {
    let base = entry(3, 5, &[], b"hello");
    let first = append(5, 5, b'!');
    let by_offset = entry(6, first.len() as u64, &[base.len() as u8], &first);
    let second = append(6, 6, b'?');
    let by_id = entry(7, second.len() as u64, id(ObjectKind::Blob, b"hello!").as_bytes(), &second);
    // A delta may stand before its base when it names it by id.
    for order in [vec![base.clone(), by_offset.clone(), by_id.clone()], vec![by_id, base, by_offset]] {
        let mut pack = open(pack(&order)).unwrap();
        assert_eq!(pack.len(), 3);
        let got = pack.read(&id(ObjectKind::Blob, b"hello!?")).unwrap();
        assert_eq!(got, (ObjectKind::Blob, b"hello!?".to_vec()));
        let wrong = pack.read_kind(&id(ObjectKind::Blob, b"hello"), ObjectKind::Tree);
        assert!(matches!(wrong, Err(Error::WrongKind { .. })));
        assert!(matches!(pack.read(&id(ObjectKind::Blob, b"other")), Err(Error::NotFound(_))));
    }
}

#[test]
fn a_blob_larger_than_the_window_is_read_back_whole() {
    let big: Vec<u8> = (0..300_000u32).map(|i| (i * 7919 % 251) as u8).collect();
    let mut pack = open(pack(&[entry(3, big.len() as u64, &[], &big), entry(3, 1, &[], b"x")])).unwrap();
    assert_eq!(pack.read(&id(ObjectKind::Blob, &big)).unwrap().1, big);
}

/// E01: a wrong checksum, an object that claims exabytes, deltas without a base.
#[test]
fn damaged_packs_are_refused_and_say_where() {
    let good = pack(&[entry(3, 5, &[], b"hello")]);
    let mut flipped = good.clone();
    let last = flipped.len() - 1;
    flipped[last] ^= 1;
    let mut trailing = good.clone();
    trailing.push(0);
    let far = append(5, 5, b'!');
    let cases = [
        (Vec::new(), "does not begin"),
        (b"PACK\0\0\0\x09\0\0\0\0".to_vec(), "does not begin"),
        (good[..good.len() / 2].to_vec(), "byte"),
        (flipped, "checksum"),
        (trailing, "checksum"),
        (pack(&[entry(3, 4, &[], b"hello")]), "longer"),
        (pack(&[entry(3, 9, &[], b"hello")]), "shorter"),
        (pack(&[entry(5, 5, &[], b"hello")]), "type 5"),
        (pack(&[entry(6, far.len() as u64, &[100], &far)]), "outside"),
        (pack(&[entry(7, far.len() as u64, &[9; 20], &far)]), "no base"),
        (pack(&[entry(3, (1 << 60) - 1, &[], b"hello")]), "shorter"),
    ];
    for (bytes, why) in cases {
        let error = open(bytes).err().map(|e| e.to_string()).unwrap_or_default();
        assert!(error.contains(why), "`{error}` should say {why}");
    }
}

/// E01: chains, sizes and counts are bounded.
#[test]
fn long_chains_large_objects_and_many_objects_hit_their_limits() {
    let mut entries = vec![entry(3, 1, &[], b"a")];
    for _ in 0..50 {
        let delta = append(1, 0, b'a').to_vec();
        let delta = vec![delta[0], 1, 1, b'a'];
        let back = entries.last().unwrap().len() as u8;
        entries.push(entry(6, 4, &[back], &delta));
    }
    let limits = |f: fn(&mut Limits)| {
        let mut limits = Limits::default();
        f(&mut limits);
        Pack::open(Cursor::new(pack(&entries)), HashKind::Sha1, limits)
            .err()
            .map(|e| e.to_string())
            .unwrap_or_default()
    };
    assert!(limits(|l| l.chain = 20).contains("chain is too long"));
    assert!(limits(|l| l.objects = 20).contains("limit is 20"));
    assert!(limits(|l| l.object = 2).contains("limit"), "a delta of four bytes is over a limit of two");
    assert_eq!(limits(|_| {}), "");
}
