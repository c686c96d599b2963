//! E09: a million keys. Alone in its process, as its memory is measured.

#![allow(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod server;

use fl_bucket_index::{Index, IndexError};
use server::{Asked, memory, open, page, start, xml};

/// E09: a million keys in the worst order cost little memory, and give the order of an archive.
#[tokio::test]
async fn a_million_keys() {
    const KEYS: u64 = 1_000_000;
    const PAGE: u64 = 5_000;
    let peer = start(false, |asked: &Asked| {
        let from: u64 = asked.query("continuation-token").map_or(0, |t| t.parse().unwrap());
        let to = (from + PAGE).min(KEYS);
        xml(200, page(from, to, (to < KEYS).then_some(to)))
    })
    .await;
    let bucket = open(&peer.host);
    let before = memory();
    let mut index = Index::new(tempfile::tempfile().unwrap());
    let (mut most, mut seen) = (0, 0u64);
    bucket
        .list("", &mut |key, etag| {
            seen += 1;
            if seen.is_multiple_of(50_000) {
                most = memory().saturating_sub(before).max(most);
            }
            index.add(key, etag)
        })
        .await
        .unwrap();
    let (revision, count) = index.revision().unwrap();
    assert_eq!((count, revision.len()), (KEYS, 71));
    let mut files = index.files(tempfile::tempfile().unwrap()).unwrap();
    let (mut last, mut shown) = (String::new(), 0u64);
    files
        .visit(|key, _| {
            assert!(last.split('/').lt(key.path().split('/')), "{last} {}", key.path());
            last = key.path().to_owned();
            shown += 1;
            if shown.is_multiple_of(50_000) {
                most = memory().saturating_sub(before).max(most);
            }
            Ok::<_, IndexError>(())
        })
        .unwrap();
    assert_eq!(shown, KEYS);
    println!("E09: {KEYS} keys, {} MiB", most >> 20);
    assert!(most <= 32 << 20, "{} MiB", most >> 20);
}
