//! Object ids and the hashes that make them.

use std::fmt;
use std::str::FromStr;

use sha2::Digest;

use crate::{Error, ObjectKind};

/// Which hash a repository uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HashKind {
    Sha1,
    Sha256,
}

impl HashKind {
    /// Length of an id in bytes.
    pub fn size(self) -> usize {
        match self {
            HashKind::Sha1 => 20,
            HashKind::Sha256 => 32,
        }
    }

    /// The word in capabilities and revisions.
    pub fn as_str(self) -> &'static str {
        match self {
            HashKind::Sha1 => "sha1",
            HashKind::Sha256 => "sha256",
        }
    }
}

/// The id of an object.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ObjectId {
    Sha1([u8; 20]),
    Sha256([u8; 32]),
}

impl ObjectId {
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        match bytes.len() {
            20 => Some(ObjectId::Sha1(bytes.try_into().ok()?)),
            32 => Some(ObjectId::Sha256(bytes.try_into().ok()?)),
            _ => None,
        }
    }

    pub fn as_bytes(&self) -> &[u8] {
        match self {
            ObjectId::Sha1(bytes) => bytes,
            ObjectId::Sha256(bytes) => bytes,
        }
    }

    pub fn kind(&self) -> HashKind {
        match self {
            ObjectId::Sha1(_) => HashKind::Sha1,
            ObjectId::Sha256(_) => HashKind::Sha256,
        }
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for ObjectId {
    type Err = Error;

    /// 40 or 64 hexadecimal digits; Git prints them in lower case but reads both.
    fn from_str(text: &str) -> Result<Self, Error> {
        let bad = || Error::Id(text.chars().take(80).collect());
        if !text.is_ascii() {
            return Err(bad());
        }
        let bytes: Option<Vec<u8>> = text
            .as_bytes()
            .chunks(2)
            .map(|pair| match pair {
                [hi, lo] => {
                    Some(char::from(*hi).to_digit(16)? as u8 * 16 + char::from(*lo).to_digit(16)? as u8)
                }
                _ => None,
            })
            .collect();
        bytes.and_then(|b| ObjectId::from_bytes(&b)).ok_or_else(bad)
    }
}

/// Computes the id of an object, or the trailer of a pack. SHA-1 runs with collision detection.
pub struct Hasher(Inner);

enum Inner {
    Sha1(Box<sha1_checked::Sha1>),
    Sha256(Box<sha2::Sha256>),
}

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hasher")
    }
}

impl Hasher {
    pub fn new(kind: HashKind) -> Self {
        Self(match kind {
            HashKind::Sha1 => Inner::Sha1(Box::new(sha1_checked::Sha1::new())),
            HashKind::Sha256 => Inner::Sha256(Box::new(sha2::Sha256::new())),
        })
    }

    /// A hasher that has taken the header of an object already.
    pub fn for_object(kind: HashKind, object: ObjectKind, size: u64) -> Self {
        let mut hasher = Self::new(kind);
        hasher.update(format!("{object} {size}\0").as_bytes());
        hasher
    }

    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            Inner::Sha1(h) => sha1_checked::Digest::update(h.as_mut(), bytes),
            Inner::Sha256(h) => h.update(bytes),
        }
    }

    /// The id; fails when the bytes carry a known collision attack.
    pub fn finish(self) -> Result<ObjectId, Error> {
        match self.0 {
            Inner::Sha1(h) => {
                let result = h.try_finalize();
                if result.has_collision() {
                    return Err(Error::Collision);
                }
                ObjectId::from_bytes(result.hash()).ok_or(Error::Collision)
            }
            Inner::Sha256(h) => Ok(ObjectId::Sha256(h.finalize().into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_git_prints() {
        for (kind, want) in [
            (HashKind::Sha1, "ce013625030ba8dba906f756967f9e9ca394464a"),
            (HashKind::Sha256, "2cf8d83d9ee29543b34a87727421fdecb7e3f3a183d337639025de576db9ebb4"),
        ] {
            let mut hasher = Hasher::for_object(kind, ObjectKind::Blob, 6);
            hasher.update(b"hello\n");
            let id = hasher.finish().unwrap();
            assert_eq!(id.to_string(), want);
            assert_eq!(want.to_uppercase().parse::<ObjectId>().unwrap(), id);
        }
    }

    /// The first blocks of the first published collision (2017): two files begin like this, but for a few bytes.
    const COLLISION: &str = concat!(
        "255044462d312e330a25e2e3cfd30a0a0a312030206f626a0a3c3c2f57696474682032203020522f4865696768742033",
        "203020522f547970652034203020522f537562747970652035203020522f46696c7465722036203020522f436f6c6f72",
        "53706163652037203020522f4c656e6774682038203020522f42697473506572436f6d706f6e656e7420383e3e0a7374",
        "7265616d0affd8fffe00245348412d3120697320646561642121212121852fec092339759c39b1a1c63c4c97e1fffe01",
        "7346dc9166b67e118f029ab621b2560ff9ca67cca8c7f85ba84c79030c2b3de218f86db3a90901d5df45c14f26fedfb3",
        "dc38e96ac22fe7bd728f0e45bce046d23c570feb141398bb552ef5a0a82be331fea48037b8b5d71f0e332edf93ac3500",
        "eb4ddc0decc1a864790c782c76215660dd309791d06bd0af3f98cda4bc4629b1",
    );

    /// E04: bytes that carry a collision attack have no id.
    #[test]
    fn collisions_are_detected() {
        let bytes: Vec<u8> = (0..COLLISION.len())
            .step_by(2)
            .map(|i| u8::from_str_radix(&COLLISION[i..i + 2], 16).expect("hex"))
            .collect();
        let id = |bytes: &[u8]| {
            let mut hasher = Hasher::new(HashKind::Sha1);
            hasher.update(bytes);
            hasher.finish()
        };
        assert!(matches!(id(&bytes), Err(Error::Collision)));
        assert!(matches!(id(&[bytes.as_slice(), b"whatever follows"].concat()), Err(Error::Collision)));
        assert!(id(&bytes[..192]).is_ok());
    }

    #[test]
    fn malformed_ids_are_rejected() {
        for bad in ["", "abc", &"g".repeat(40), &"a".repeat(41), "é"] {
            assert!(bad.parse::<ObjectId>().is_err(), "{bad}");
        }
    }
}
