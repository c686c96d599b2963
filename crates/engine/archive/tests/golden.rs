//! Archives whose bytes were recorded from Go's archive/tar with the headers Flux sets.

use fl_archive::{Error, Mode, TarWriter};
use sha2::{Digest, Sha256};

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

#[test]
fn small_tree_equals_the_recorded_bytes() {
    let deep = format!("{}/long-file-name-beyond-one-hundred.yaml", "d".repeat(90));
    let mut tar = TarWriter::new(Vec::new());
    tar.directory(".").unwrap();
    tar.file("a.txt", Mode::File, 6, &mut b"hello\n".as_slice()).unwrap();
    tar.directory("bin").unwrap();
    tar.file("bin/run.sh", Mode::Executable, 10, &mut b"#!/bin/sh\n".as_slice()).unwrap();
    tar.directory(&"d".repeat(90)).unwrap();
    tar.file(&deep, Mode::File, 5, &mut b"x: 1\n".as_slice()).unwrap();
    tar.directory("empty").unwrap();
    let bytes = tar.finish().unwrap();
    assert_eq!(bytes.len(), 6144);
    assert_eq!(digest(&bytes), "121328bad25506e1aa83a4752f07ac205f696986366b248b7a19037c4e5c9879");
}

#[test]
fn long_names_use_pax_as_go_does() {
    let mut tar = TarWriter::new(Vec::new());
    tar.file("café/grün.yaml", Mode::File, 2, &mut b"x\n".as_slice()).unwrap();
    tar.directory(&format!("plain/{}", "n".repeat(140))).unwrap();
    tar.file(&format!("{}/{}/ü", "p".repeat(99), "q".repeat(99)), Mode::Executable, 0, &mut b"".as_slice())
        .unwrap();
    tar.file(&format!("{}/{}", "r".repeat(155), "s".repeat(100)), Mode::File, 0, &mut b"".as_slice())
        .unwrap();
    let bytes = tar.finish().unwrap();
    assert_eq!(digest(&bytes), include_str!("golden/pax.sha256").trim());
}

#[test]
fn invalid_names_and_sizes_are_rejected() {
    let mut tar = TarWriter::new(Vec::new());
    for bad in ["", "/etc/passwd", "a/../../b", "nul\0"] {
        assert!(matches!(tar.directory(bad), Err(Error::Name { .. })), "{bad:?}");
    }
    let short = tar.file("f", Mode::File, 3, &mut b"ab".as_slice());
    assert!(matches!(short, Err(Error::Size { announced: 3, found: 2, .. })), "{short:?}");
    let long = tar.file("f", Mode::File, 1, &mut b"ab".as_slice());
    assert!(matches!(long, Err(Error::Size { announced: 1, found: 2, .. })), "{long:?}");
}
