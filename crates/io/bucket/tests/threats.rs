//! E07 and E09: listings that do not end, hostile XML.

#![allow(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod peer;

use fl_bucket::{Bucket, BucketOptions, Error, Provider};
use peer::{Asked, start, xml};

/// With a region, so that nothing but listings is asked for.
fn open(host: &str) -> Bucket {
    let options = BucketOptions::new(Provider::S3, host, "apps");
    Bucket::new(BucketOptions { insecure: true, region: "one".to_owned(), ..options }).unwrap()
}

/// Bytes of memory that this process holds.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

fn page(from: u64, to: u64, next: Option<u64>) -> String {
    let mut text = String::from("<ListBucketResult>");
    for n in from..to {
        // Not in the order of bytes, so that everything must be sorted.
        let key = n.wrapping_mul(0x9e37_79b9) % 0x1_0000_0000;
        text.push_str(&format!(
            "<Contents><Key>apps/{key:08x}/{n}.yaml</Key><ETag>&quot;{n:032x}&quot;</ETag></Contents>"
        ));
    }
    match next {
        Some(next) => text.push_str(&format!(
            "<IsTruncated>true</IsTruncated><NextContinuationToken>{next}</NextContinuationToken>"
        )),
        None => text.push_str("<IsTruncated>false</IsTruncated>"),
    }
    text + "</ListBucketResult>"
}

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
