//! A07: archives that readers may understand differently, with the result of Flux's reader for each
//! (`golden/fuzzed.txt`, see its README). We must read the same list of files, or reject the archive.

#![allow(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use std::io::Write;

use fl_archive::{EntryKind, ReadError, ReadLimits, TreeBuilder, read_tar};
use sha2::{Digest, Sha256};

const BLOCK: usize = 512;
const ARCHIVES: u64 = 6000;

/// A seeded random number generator, the same on every platform.
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((x ^ x >> 31) % n as u64).unwrap()
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

const NAMES: &[&str] = &[
    "a", "b", "a/", "a/b", "./a", "A", "d/e/f", "d/e", "x.yaml", "dir/", "dir", "dir/y", "a//c", "e", "f",
    "g/h", "grün",
];
const MALICIOUS: &[&str] = &["./", ".", "../x", "/x", "a\\b", "..", "a/..", "a../b", "a/../b", ""];

fn name(random: &mut Rng) -> String {
    match random.below(60) {
        0 => random.pick(MALICIOUS).to_owned(),
        1..=5 => format!("{}/{}", "l".repeat(90 + random.below(60)), random.pick(NAMES)),
        _ => random.pick(NAMES).to_owned(),
    }
}

fn seal(block: &mut [u8]) {
    block[148..156].copy_from_slice(b"        ");
    let sum: u32 = block.iter().map(|b| u32::from(*b)).sum();
    block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
}

fn block(random: &mut Rng, name: &str, kind: u8, size: usize) -> Vec<u8> {
    let mut block = vec![0u8; BLOCK];
    let shown = &name.as_bytes()[..name.len().min(100)];
    block[..shown.len()].copy_from_slice(shown);
    let mode = match random.below(12) {
        0 => random.pick(&["0040755", "0120777", "0010644", "0100644", "0000000"]),
        1 => random.pick(&["   644 ", "\0\x00644\0 ", "0000755"]),
        2..=4 => "0000755",
        _ => "0000644",
    };
    block[100..107].copy_from_slice(mode.as_bytes());
    block[108..115].copy_from_slice(b"0000000");
    block[116..123].copy_from_slice(b"0000000");
    block[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
    block[136..147].copy_from_slice(b"00000000000");
    block[156] = kind;
    match random.below(8) {
        0 => {}
        1 | 2 => block[257..265].copy_from_slice(b"ustar  \0"),
        _ => block[257..265].copy_from_slice(b"ustar\x0000"),
    }
    if random.one_in(12) {
        let prefix = random.pick(&["p", "p/q", "..", "00000000000", "p\u{e9}"]);
        block[345..345 + prefix.len()].copy_from_slice(prefix.as_bytes());
    }
    if random.one_in(25) {
        block[508..512].copy_from_slice(b"tar\0");
    }
    if random.one_in(20) {
        // The same number in binary, or another one.
        block[124..136].copy_from_slice(&[0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        block[134] = u8::try_from(size >> 8 & 0xff).unwrap();
        block[135] = u8::try_from(size & 0xff).unwrap();
        if random.one_in(4) {
            block[124] = random.pick(&[0xff, 0xc0, 0x81]);
        }
    }
    seal(&mut block);
    block
}

fn pad(archive: &mut Vec<u8>, content: &[u8]) {
    archive.extend_from_slice(content);
    archive.resize(archive.len().next_multiple_of(BLOCK), 0);
}

fn records(random: &mut Rng, size: usize) -> Vec<u8> {
    let mut all = String::new();
    for _ in 0..=random.below(3) {
        let value = match random.below(15) {
            0..=2 | 12..=14 => format!("path={}", name(random)),
            3..=4 => format!("size={size}"),
            5 => format!("size={}", random.pick(&["0", "512", "1024", "", "", "-1", "x", "99999999999"])),
            6 => format!("mtime={}", random.pick(&["1.5", "1", "-1.5", "1", "", "1.x"])),
            7 => format!("uid={}", random.pick(&["0", "-3", "5", "x", ""])),
            8 => "path=".to_owned(),
            9 => "comment=hello".to_owned(),
            10 => "linkpath=../../etc".to_owned(),
            _ if random.one_in(2) => "SCHILY.xattr.user.a=b".to_owned(),
            _ => random
                .pick(&["path", "=x", "GNU.sparse.realsize=1099511627776", "GNU.sparse.major=1"])
                .to_owned(),
        };
        let rest = value.len() + 2;
        let mut length = rest + rest.to_string().len();
        if length.to_string().len() > rest.to_string().len() {
            length += 1;
        }
        if random.one_in(80) {
            length += 1;
        }
        all.push_str(&format!("{length} {value}\n"));
    }
    all.into_bytes()
}

fn archive(seed: u64) -> Vec<u8> {
    let random = &mut Rng(seed);
    let mut tar = Vec::new();
    for _ in 0..=random.below(3) {
        let content: Vec<u8> = if random.one_in(4) {
            // A nested archive, whose files are read if the offset is wrong.
            let inner = name(random);
            let mut inside = block(random, &inner, b'0', 0);
            inside.resize(BLOCK * (1 + random.below(3)), 0);
            inside
        } else {
            vec![b'c'; random.pick(&[0, 0, 1, 5, 511, 512, 513, 700])]
        };
        for _ in 0..random.pick(&[0, 0, 0, 1, 1, 2]) {
            if random.one_in(3) {
                let long = name(random);
                let kind = random.pick(b"LLK");
                tar.extend(block(random, "././@LongLink", kind, long.len() + 1));
                pad(&mut tar, format!("{long}\0").as_bytes());
            } else {
                let data = records(random, content.len());
                let kind = random.pick(b"xxxxg");
                tar.extend(block(random, "PaxHeaders.0/x", kind, data.len()));
                pad(&mut tar, &data);
            }
        }
        let claimed = match random.below(20) {
            0 => content.len() + BLOCK,
            1 => content.len().saturating_sub(BLOCK),
            2 => 0,
            _ => content.len(),
        };
        let kind = random.pick(b"000000000000000000000000000\0\0\x0055555122222634gSV777");
        let name = name(random);
        tar.extend(block(random, &name, kind, claimed));
        pad(&mut tar, &content);
        if random.one_in(80) {
            tar.resize(tar.len() + BLOCK, 0);
        }
    }
    tar.resize(tar.len() + BLOCK * random.pick(&[2, 2, 2, 2, 1, 0]), 0);
    if random.one_in(6) && !tar.is_empty() {
        let at = random.below(tar.len());
        tar[at] = random.pick(&[0, b' ', b'0', b'7', b'8', 0x80, 0xff, b'/']);
        let start = at / BLOCK * BLOCK;
        if !random.one_in(4) && tar[start..].len() >= BLOCK {
            seal(&mut tar[start..start + BLOCK]);
        }
    }
    if random.one_in(30) {
        let end = random.below(tar.len() + 1);
        tar.truncate(end);
    }
    tar
}

/// A short summary of the content; `None` when the archive is rejected.
fn summary(archive: &[u8]) -> Option<String> {
    let limits = ReadLimits { bytes: 4 << 20, ..ReadLimits::default() };
    let mut listing = TreeBuilder::new(&limits);
    read_tar(archive, &limits, |entry, content| match entry.kind {
        EntryKind::Directory => listing.directory(&entry.name),
        EntryKind::Symlink => Ok(()),
        EntryKind::Other => Err(ReadError::Format("special")),
        EntryKind::File { executable } => {
            let mut data = Vec::new();
            content.read_to_end(&mut data)?;
            listing.file(&entry.name, executable, data)
        }
    })
    .ok()?;
    let mut hash = Sha256::new();
    for (name, found) in listing.finish().ok()?.iter() {
        match found {
            None => hash.update(format!("D {name}\n")),
            Some((content, executable)) => {
                hash.update(format!("F {name} {executable} {}\n", content.len()));
                hash.update(content);
            }
        }
    }
    Some(hash.finalize().iter().take(4).map(|b| format!("{b:02x}")).collect())
}

#[test]
fn malicious_archives_are_read_as_flux_does_or_rejected() {
    // For the recorder: all archives, each after its length.
    if let Ok(file) = std::env::var("FLUORITE_FUZZED_ARCHIVES") {
        let count = std::env::var("FLUORITE_FUZZED_COUNT").map_or(ARCHIVES, |n| n.parse().unwrap());
        let mut out = std::io::BufWriter::new(std::fs::File::create(file).unwrap());
        for seed in 0..count {
            let tar = archive(seed);
            out.write_all(&u32::try_from(tar.len()).unwrap().to_le_bytes()).unwrap();
            out.write_all(&tar).unwrap();
        }
        return;
    }
    let recorded = match std::env::var("FLUORITE_FUZZED_VERDICTS") {
        Ok(file) => std::fs::read_to_string(file).unwrap(),
        Err(_) => include_str!("golden/fuzzed.txt").to_owned(),
    };
    let (mut same, mut refused, mut refused_alone, mut all) = (0, 0, 0, 0);
    for (seed, theirs) in recorded.split_whitespace().enumerate() {
        all += 1;
        // A name that is not UTF-8: Flux keeps its bytes, we replace them.
        if theirs == "?" {
            continue;
        }
        match (summary(&archive(seed as u64)), theirs) {
            (None, "-") => refused += 1,
            (None, _) => refused_alone += 1,
            (Some(ours), theirs) => {
                assert_eq!(ours, theirs, "seed {seed}");
                same += 1;
            }
        }
    }
    println!("{all} archives: {same} read alike, {refused} refused by both, {refused_alone} by us alone");
    assert!(all >= ARCHIVES && same * 4 > all, "{same} of {all} read alike");
    assert!(refused_alone * 50 < all, "{refused_alone} of {all} are refused by us alone");
}
