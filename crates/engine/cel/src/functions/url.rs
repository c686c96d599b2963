//! URLs.

use std::sync::Arc;

use crate::error::EvalError;
use crate::eval::Eval;
use crate::functions::{bool_of, opaque};
use crate::value::{Map, Opaque, Value};

/// A parsed absolute URL or absolute path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    scheme: String,
    /// Host with port.
    host: String,
    path: String,
    query: String,
}

impl Url {
    fn parse(text: &str) -> Option<Self> {
        if text.is_empty()
            || text.bytes().any(|b| b < 0x20 || b == 0x7f)
            || fl_schema::formats::check("uri", text) != Some(true)
        {
            return None;
        }
        let without_fragment = text;
        let (scheme, rest) = match without_fragment.split_once(':') {
            Some((scheme, rest)) if !text.starts_with('/') => (scheme.to_ascii_lowercase(), rest),
            _ => (String::new(), without_fragment),
        };
        let (host, rest) = match rest.strip_prefix("//") {
            Some(rest) => {
                let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
                (rest[..end].to_owned(), &rest[end..])
            }
            None if !scheme.is_empty() && !rest.starts_with('/') => return None,
            None => (String::new(), rest),
        };
        let host = host.rsplit('@').next().unwrap_or_default().to_owned();
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        Some(Url { scheme, host, path: path.to_owned(), query: query.to_owned() })
    }

    fn host_and_port(&self) -> (&str, &str) {
        if let Some(end) = self.host.find(']') {
            let port = self.host[end + 1..].strip_prefix(':').unwrap_or_default();
            return (self.host[..end].trim_start_matches('['), port);
        }
        self.host.rsplit_once(':').unwrap_or((&self.host, ""))
    }
}

fn unescape(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let coded = (bytes[at] == b'%')
            .then(|| text.get(at + 1..at + 3))
            .flatten()
            .and_then(|h| u8::from_str_radix(h, 16).ok());
        match (coded, bytes[at]) {
            (Some(byte), _) => {
                out.push(byte);
                at += 2;
            }
            (None, b'+') => out.push(b' '),
            (None, byte) => out.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

pub(super) fn call<'a>(name: &str, args: &[Value<'a>]) -> Option<Eval<'a>> {
    match (name, args) {
        ("isURL", [Value::Text(text)]) => return bool_of(Url::parse(text).is_some()),
        ("url", [Value::Text(text)]) => {
            let wrong = || {
                EvalError::new(format!(
                    "URL parse error during conversion from string: parse {text:?}: invalid URI for request"
                ))
            };
            return Some(Url::parse(text).map(|url| opaque(Opaque::Url(url))).ok_or_else(wrong));
        }
        _ => {}
    }
    let [Value::Opaque(Opaque::Url(url))] = args else { return None };
    Some(Ok(match name {
        "getScheme" => Value::text(url.scheme.clone()),
        "getHost" => Value::text(url.host.clone()),
        "getHostname" => Value::text(url.host_and_port().0),
        "getPort" => Value::text(url.host_and_port().1),
        "getEscapedPath" => Value::text(url.path.clone()),
        "getQuery" => {
            let mut entries: Vec<(String, Vec<Value<'a>>)> = Vec::new();
            for pair in url.query.split('&').filter(|p| !p.is_empty()) {
                let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                let (key, value) = (unescape(key), Value::text(unescape(value)));
                match entries.iter_mut().find(|(k, _)| *k == key) {
                    Some((_, list)) => list.push(value),
                    None => entries.push((key, vec![value])),
                }
            }
            let entries = entries.into_iter().map(|(k, v)| (Value::text(k), Value::list(v))).collect();
            Value::Map(Map::Owned(Arc::new(entries)))
        }
        _ => return None,
    }))
}
