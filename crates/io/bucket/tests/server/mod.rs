//! A small HTTP server on loopback whose answers a test decides.

#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "in a test an unwrap is an assertion; not every test needs everything"
)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use fl_bucket::{Bucket, BucketOptions, Provider};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    /// Path and query.
    pub(crate) target: String,
    /// Names in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Asked {
    pub(crate) fn path(&self) -> &str {
        self.target.split('?').next().unwrap()
    }

    /// A field of the query, as it stands.
    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        let query = self.target.split_once('?')?.1;
        query.split('&').filter_map(|pair| pair.split_once('=')).find(|(n, _)| *n == name).map(|(_, v)| v)
    }
}

/// What is answered: status, headers, body.
pub(crate) type Answer = (u16, Vec<(&'static str, String)>, Vec<u8>);

pub(crate) fn xml(status: u16, body: impl Into<Vec<u8>>) -> Answer {
    (status, vec![("content-type", "application/xml".to_owned())], body.into())
}

pub(crate) fn refusal(status: u16, code: &str, message: &str) -> Answer {
    xml(status, format!("<Error><Code>{code}</Code><Message>{message}</Message></Error>"))
}

pub(crate) struct Peer {
    pub(crate) host: String,
    pub(crate) seen: Arc<Mutex<Vec<Asked>>>,
}

impl Peer {
    pub(crate) fn requests(&self) -> Vec<String> {
        self.seen.lock().unwrap().iter().map(|a| format!("{} {}", a.method, a.target)).collect()
    }
}

/// Starts a server; requests are recorded only if `keep` is set.
pub(crate) async fn start(keep: bool, answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Peer {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (log, answer) = (seen.clone(), Arc::new(answer));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (log, answer) = (log.clone(), answer.clone());
            tokio::spawn(async move {
                while let Some(asked) = read(&mut stream).await {
                    let (status, headers, body) = answer(&asked);
                    let head = asked.method == "HEAD";
                    if keep {
                        log.lock().unwrap().push(asked);
                    }
                    let mut text = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n", body.len());
                    for (name, value) in headers {
                        text.push_str(&format!("{name}: {value}\r\n"));
                    }
                    text.push_str("\r\n");
                    let mut all = text.into_bytes();
                    if !head {
                        all.extend(body);
                    }
                    if stream.write_all(&all).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    Peer { host, seen }
}

async fn read(stream: &mut tokio::net::TcpStream) -> Option<Asked> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).ok()?;
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ');
    let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: BTreeMap<String, String> = lines
        .filter_map(|l| l.split_once(": "))
        .map(|(n, v)| (n.to_lowercase(), v.trim().to_owned()))
        .collect();
    let length = headers.get("content-length").and_then(|l| l.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(Asked { method, target, headers, body: String::from_utf8_lossy(&body).into_owned() })
}

/// A bucket of S3 that this host serves; with a region, so that only listings are requested.
pub(crate) fn open(host: &str) -> Bucket {
    let options = BucketOptions::new(fl_http::Owner::engine(), Provider::S3, host, "apps");
    Bucket::new(BucketOptions { insecure: true, region: "one".to_owned(), ..options }).unwrap()
}

/// Bytes of memory that this process holds.
pub(crate) fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

/// A page of a listing.
pub(crate) fn page(from: u64, to: u64, next: Option<u64>) -> String {
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
