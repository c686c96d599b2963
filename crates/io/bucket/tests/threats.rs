//! E07 and E09: listings that do not end, hostile XML.

#![allow(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod server;

use fl_bucket::Error;
use server::{Asked, memory, open, page, start, xml};

/// E07: pages that lead back, lead nowhere, or never end.
#[tokio::test]
async fn listings_that_do_not_end() {
    // The same page, two that name each other, and one without an object for ever.
    let same = start(true, |_: &Asked| xml(200, page(0, 2, Some(7)))).await;
    let circle = start(true, |asked: &Asked| {
        let token: u64 = asked.query("continuation-token").map_or(0, |t| t.parse().unwrap());
        xml(200, page(0, 1, Some(1 + token % 2)))
    })
    .await;
    let barren = start(true, |asked: &Asked| {
        let token: u64 = asked.query("continuation-token").map_or(0, |t| t.parse().unwrap());
        xml(200, page(0, 0, Some(token + 1)))
    })
    .await;
    for (peer, most) in [(same, 2), (circle, 3), (barren, 1002)] {
        let error = open(&peer.host).list("", &mut |_, _| Ok(())).await.unwrap_err();
        assert!(matches!(error, Error::Loop), "{error}");
        assert!(peer.requests().len() <= most, "{}", peer.requests().len());
    }
    let nowhere = "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>";
    let peer = start(true, move |_: &Asked| xml(200, nowhere)).await;
    let error = open(&peer.host).list("", &mut |_, _| Ok(())).await.unwrap_err();
    assert_eq!(error.to_string(), "Truncated response should have continuation token set");
}

/// E09: answers made to cost much cost little.
#[tokio::test]
async fn hostile_answers() {
    let bomb = "<!DOCTYPE l [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;\">]><ListBucketResult>&b;</ListBucketResult>";
    let deep = "<ListBucketResult>".repeat(200_000);
    let long = format!("<ListBucketResult><Contents><Key>{}", "x".repeat(20 << 20));
    let wide = format!("<ListBucketResult>{}", "<Contents/>".repeat(1 << 20));
    let comment = format!("<ListBucketResult><!--{}", "-".repeat(20 << 20));
    let cut = "<ListBucketResult><Contents><Key>a</Key>".to_owned();
    let before = memory();
    for (text, told) in [
        (bomb.to_owned(), "a document type, which is refused"),
        (deep, "too deep"),
        (long, "too large"),
        (wide, "too large"),
        (comment, "ends within an element"),
        (cut, "ends within an element"),
    ] {
        let size = text.len() as u64;
        let peer = start(false, move |_: &Asked| xml(200, text.clone())).await;
        let error = open(&peer.host).list("", &mut |_, _| Ok(())).await.unwrap_err().to_string();
        assert!(error.contains(told), "{told}: {error}");
        // The server of this test holds each answer three times at most.
        let grown = memory().saturating_sub(before);
        assert!(grown <= (32 << 20) + 4 * size, "{told}: {} MiB", grown >> 20);
    }
}
