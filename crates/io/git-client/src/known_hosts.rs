//! Host keys: the `known_hosts` format.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;

/// A parsed `known_hosts` text.
#[derive(Clone, Debug, Default)]
pub struct KnownHosts(Vec<Line>);

/// Why a `known_hosts` text cannot be used.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum KnownHostsError {
    /// Flux names what is missing without the number of the line.
    #[error("knownhosts: knownhosts: {0}")]
    Missing(&'static str),
    #[error("knownhosts: line {line}: {problem}")]
    Line { line: usize, problem: LineError },
}

/// Why a line cannot be read.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum LineError {
    #[error("knownhosts: {0}")]
    Missing(&'static str),
    #[error("unknown marker {0}")]
    Marker(String),
    #[error("its key is not base64")]
    KeyEncoding,
    #[error("its key is not of the kind {0}")]
    KeyKind(String),
    #[error("a hashed host is not base64")]
    HashEncoding,
    #[error("a hashed host has no hash")]
    NoHash,
    #[error("a host is hashed in an unknown way")]
    HashKind,
    #[error("the port of {0} is no number")]
    Port(String),
}

#[derive(Clone, Debug)]
struct Line {
    hosts: Hosts,
    revoked: bool,
    kind: String,
    key: Vec<u8>,
}

#[derive(Clone, Debug)]
enum Hosts {
    Patterns(Vec<Pattern>),
    Hashed { salt: Vec<u8>, hash: Vec<u8> },
}

#[derive(Clone, Debug)]
struct Pattern {
    negated: bool,
    host: String,
    port: u16,
}

impl KnownHosts {
    /// Reads the text; a line that cannot be read is an error, because a key that is silently left out may be a revoked one.
    pub fn parse(text: &str) -> Result<Self, KnownHostsError> {
        let mut lines = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match parse_line(line) {
                Ok(Some(line)) => lines.push(line),
                Ok(None) => {}
                Err(LineError::Missing(what)) => return Err(KnownHostsError::Missing(what)),
                Err(problem) => return Err(KnownHostsError::Line { line: number + 1, problem }),
            }
        }
        Ok(Self(lines))
    }

    /// Whether a server may show this key (in its wire form).
    pub fn check(&self, host: &str, port: u16, key: &[u8]) -> Result<(), &'static str> {
        let ours: Vec<&Line> = self.0.iter().filter(|l| l.hosts.cover(host, port)).collect();
        if self.0.iter().any(|l| l.revoked && l.key == key) {
            return Err("knownhosts: key is revoked");
        }
        let known = || ours.iter().filter(|l| !l.revoked);
        if known().any(|l| l.key == key) {
            Ok(())
        } else if known().next().is_some() {
            Err("knownhosts: key mismatch")
        } else {
            Err("knownhosts: key is unknown")
        }
    }

    /// The kinds of keys known for a server, to request one of those.
    pub fn kinds(&self, host: &str, port: u16) -> Vec<&str> {
        let known = |l: &&Line| !l.revoked && l.hosts.cover(host, port);
        let mut kinds: Vec<&str> = self.0.iter().filter(known).map(|l| l.kind.as_str()).collect();
        kinds.dedup();
        kinds
    }
}

fn parse_line(line: &str) -> Result<Option<Line>, LineError> {
    let mut words = line.split_whitespace();
    let mut first = words.next().unwrap_or_default();
    let mut revoked = false;
    if first.starts_with('@') {
        match first {
            "@revoked" => revoked = true,
            // Host certificates are not requested, so their authorities do not matter.
            "@cert-authority" => return Ok(None),
            other => return Err(LineError::Marker(other.to_owned())),
        }
        first = words.next().unwrap_or_default();
    }
    // Flux's messages: with one word the host is missing, with two the kind.
    let kind = words.next().ok_or(LineError::Missing("missing host pattern"))?;
    let key = words.next().ok_or(LineError::Missing("missing key type pattern"))?;
    let key = STANDARD.decode(key).map_err(|_| LineError::KeyEncoding)?;
    let inner = key
        .get(..4)
        .and_then(|n| usize::try_from(u32::from_be_bytes([n[0], n[1], n[2], n[3]])).ok())
        .and_then(|n| key.get(4..4usize.checked_add(n)?));
    if inner != Some(kind.as_bytes()) {
        return Err(LineError::KeyKind(kind.to_owned()));
    }
    Ok(Some(Line { hosts: parse_hosts(first)?, revoked, kind: kind.to_owned(), key }))
}

fn parse_hosts(text: &str) -> Result<Hosts, LineError> {
    if let Some(hashed) = text.strip_prefix("|1|") {
        let decode = |part: &str| STANDARD.decode(part).map_err(|_| LineError::HashEncoding);
        let (salt, hash) = hashed.split_once('|').ok_or(LineError::NoHash)?;
        return Ok(Hosts::Hashed { salt: decode(salt)?, hash: decode(hash)? });
    }
    if text.starts_with('|') {
        return Err(LineError::HashKind);
    }
    let mut patterns = Vec::new();
    for part in text.split(',').filter(|p| !p.is_empty()) {
        let (negated, part) = part.strip_prefix('!').map_or((false, part), |p| (true, p));
        let (host, port) = match part.strip_prefix('[').and_then(|p| p.split_once(']')) {
            Some((host, "")) => (host, 22),
            Some((host, port)) => {
                let port = port.strip_prefix(':').and_then(|p| p.parse().ok());
                (host, port.ok_or_else(|| LineError::Port(part.to_owned()))?)
            }
            None => (part, 22),
        };
        patterns.push(Pattern { negated, host: host.to_ascii_lowercase(), port });
    }
    Ok(Hosts::Patterns(patterns))
}

impl Hosts {
    fn cover(&self, host: &str, port: u16) -> bool {
        let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        match self {
            Hosts::Hashed { salt, hash } => {
                let name = if port == 22 { host } else { format!("[{host}]:{port}") };
                let Ok(mut mac) = Hmac::<Sha1>::new_from_slice(salt) else { return false };
                mac.update(name.as_bytes());
                mac.verify_slice(hash).is_ok()
            }
            Hosts::Patterns(patterns) => {
                let hits = |p: &&Pattern| p.port == port && wildcard(p.host.as_bytes(), host.as_bytes());
                let mut found = false;
                for pattern in patterns.iter().filter(hits) {
                    if pattern.negated {
                        return false;
                    }
                    found = true;
                }
                found
            }
        }
    }
}

/// `*` and `?`, in time linear in the product of both lengths.
fn wildcard(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == b'?' || *c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    p = at + 1;
                    t = from + 1;
                    star = Some((at, from + 1));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key of a kind in wire form, its content made up.
    fn key(kind: &str, content: u8) -> Vec<u8> {
        let mut out = u32::try_from(kind.len()).unwrap().to_be_bytes().to_vec();
        out.extend_from_slice(kind.as_bytes());
        out.extend_from_slice(&[content; 8]);
        out
    }

    fn line(hosts: &str, content: u8) -> String {
        format!("{hosts} ssh-ed25519 {}\n", STANDARD.encode(key("ssh-ed25519", content)))
    }

    #[test]
    fn plain_wildcard_port_and_negation() {
        let text = line("git.example,*.corp.example,!bad.corp.example", 1) + &line("[git.example]:2222", 2);
        let known = KnownHosts::parse(&text).unwrap();
        let (one, two) = (key("ssh-ed25519", 1), key("ssh-ed25519", 2));
        assert_eq!(known.check("git.example", 22, &one), Ok(()));
        assert_eq!(known.check("GIT.example", 22, &one), Ok(()));
        assert_eq!(known.check("a.corp.example", 22, &one), Ok(()));
        assert_eq!(known.check("bad.corp.example", 22, &one), Err("knownhosts: key is unknown"));
        assert_eq!(known.check("git.example", 2222, &two), Ok(()));
        assert_eq!(known.check("git.example", 2222, &one), Err("knownhosts: key mismatch"));
        assert_eq!(known.check("other.example", 22, &one), Err("knownhosts: key is unknown"));
        assert_eq!(known.kinds("git.example", 22), ["ssh-ed25519"]);
    }

    #[test]
    fn hashed_lines_as_ssh_keygen_writes_them() {
        let hash = |name: &str| {
            let mut mac = Hmac::<Sha1>::new_from_slice(b"salt").unwrap();
            mac.update(name.as_bytes());
            format!("|1|{}|{}", STANDARD.encode(b"salt"), STANDARD.encode(mac.finalize().into_bytes()))
        };
        let known =
            KnownHosts::parse(&(line(&hash("h.example"), 1) + &line(&hash("[h.example]:29418"), 2))).unwrap();
        assert_eq!(known.check("h.example", 22, &key("ssh-ed25519", 1)), Ok(()));
        assert_eq!(known.check("h.example", 29418, &key("ssh-ed25519", 2)), Ok(()));
        assert!(known.check("h.example", 29418, &key("ssh-ed25519", 1)).is_err());
    }

    #[test]
    fn a_revoked_key_is_refused_even_when_it_is_also_known() {
        let text = line("h", 1) + "@revoked " + &line("*", 1);
        let known = KnownHosts::parse(&text).unwrap();
        assert_eq!(known.check("h", 22, &key("ssh-ed25519", 1)), Err("knownhosts: key is revoked"));
    }

    #[test]
    fn lines_that_cannot_be_read_are_errors() {
        for bad in [
            "h",
            "h ssh-rsa",
            "h ssh-rsa !!!",
            "@x h ssh-rsa AAAA",
            "|2|a|b ssh-rsa AAAA",
            "[h]:x ssh-rsa AAAA",
        ] {
            assert!(KnownHosts::parse(bad).is_err(), "{bad}");
        }
        assert!(KnownHosts::parse(&line("h", 1).replace("ssh-ed25519", "ssh-rsa")).is_err());
        assert!(KnownHosts::parse("# comment\n\n").is_ok());
    }
}
