//! OpenPGP messages (RFC 4880, RFC 9580), limited to what a data key needs: encrypted to a key, with
//! integrity protection by a hash or an authenticated cipher. Passphrase-encrypted and unprotected messages
//! are rejected.

mod block;
mod key;

use std::io::Read as _;

use fl_types::Secret;
use fl_verify::openpgp_packet::{message_packets, packets, unarmor};
use sha1::{Digest as _, Sha1};

use crate::document::KeyService;
use crate::{Error, KeyError, MasterKey};
use block::Cipher;
use key::{KeyPacket, SecretKey};

/// Maximum size of a decrypted message; data keys are much smaller.
const MAX_PLAIN_BYTES: usize = 1 << 20;
/// Maximum nesting of compressed messages.
const MAX_DEPTH: usize = 4;

const SESSION_KEY: u8 = 1;
const SECRET_KEY: u8 = 5;
const SECRET_SUBKEY: u8 = 7;
const COMPRESSED: u8 = 8;
const UNPROTECTED: u8 = 9;
const LITERAL: u8 = 11;
const PROTECTED: u8 = 18;
/// A non-standard packet of GnuPG 2.3 and later.
const AEAD: u8 = 20;

/// The private keys of `.asc` files.
#[derive(Clone, Default)]
pub struct PgpKeys {
    keys: Vec<SecretKey>,
    /// Number of keys protected by a passphrase.
    locked: usize,
}

impl std::fmt::Debug for PgpKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PgpKeys").field("keys", &self.keys.len()).field("locked", &self.locked).finish()
    }
}

impl PgpKeys {
    /// Adds the keys of a file, armored or not. Public keys and keys of unsupported types are skipped.
    ///
    /// # Errors
    /// The file has no key.
    pub fn import(&mut self, file: &[u8]) -> Result<(), Error> {
        const BEGIN: &str = "-----BEGIN PGP PRIVATE KEY BLOCK-----";
        let bad = Error::Key("a PGP key cannot be read");
        if file.first().is_some_and(|b| b & 0x80 != 0) {
            return self.add(file).ok_or(bad);
        }
        let text = std::str::from_utf8(file).map_err(|_| bad.clone())?;
        if !text.contains(BEGIN) && text.contains("-----BEGIN PGP PUBLIC KEY BLOCK-----") {
            return Ok(());
        }
        let mut blocks = text.match_indices(BEGIN).peekable();
        if blocks.peek().is_none() {
            return Err(bad);
        }
        for (at, _) in blocks {
            let bytes = unarmor(&text[at..], "PRIVATE KEY BLOCK").ok_or_else(|| bad.clone())?;
            self.add(&bytes).ok_or_else(|| bad.clone())?;
        }
        Ok(())
    }

    fn add(&mut self, bytes: &[u8]) -> Option<()> {
        for packet in packets(bytes)?.iter().filter(|p| matches!(p.tag, SECRET_KEY | SECRET_SUBKEY)) {
            match key::parse(packet.body)? {
                KeyPacket::Open(key) => self.keys.push(*key),
                KeyPacket::Locked => self.locked += 1,
                KeyPacket::Unsupported => {}
            }
        }
        Some(())
    }

    /// Whether there is no decryption key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Decrypts an armored message.
    fn open(&self, armored: &str) -> Result<Vec<u8>, &'static str> {
        let bytes = unarmor(armored, "MESSAGE").ok_or("the PGP message cannot be read")?;
        let parts = message_packets(&bytes).ok_or("the PGP message cannot be read")?;
        let (tag, sealed) = parts
            .iter()
            .find(|(tag, _)| matches!(*tag, UNPROTECTED | PROTECTED | AEAD))
            .ok_or("the PGP message is not encrypted")?;
        let mut problem = match (self.is_empty(), self.locked) {
            (true, 0) => "no PGP key is configured",
            (_, 1..) => "no PGP key matched; keys with a passphrase are not supported",
            _ => "no PGP key matched any of the recipients",
        };
        for (_, wrapped) in parts.iter().filter(|(tag, _)| *tag == SESSION_KEY) {
            for key in &self.keys {
                let Some(session) = key.session_key(wrapped) else { continue };
                match unseal(*tag, sealed, session.expose()) {
                    Ok(inner) => return content(&inner, MAX_DEPTH),
                    // The packet of another recipient may still be usable.
                    Err(wrong) => problem = wrong,
                }
            }
        }
        Err(problem)
    }
}

impl KeyService for PgpKeys {
    fn data_key(&self, key: &MasterKey) -> Option<Result<Secret<Vec<u8>>, KeyError>> {
        let MasterKey::Pgp { encrypted, .. } = key else { return None };
        Some(self.open(encrypted).map(Secret::new).map_err(KeyError::Pgp))
    }
}

/// Decrypts the content with a session key: first byte the algorithm, then the key.
fn unseal(tag: u8, sealed: &[u8], session: &[u8]) -> Result<Vec<u8>, &'static str> {
    let (&algorithm, key) = session.split_first().ok_or("the session key is empty")?;
    let changed = "the PGP message was changed";
    match (tag, sealed.split_first()) {
        (PROTECTED, Some((1, body))) => {
            let plain = cipher(algorithm, key)?.open_cfb(body);
            // One block of random bytes, its last two bytes repeated, packets, and a packet with the hash of
            // everything before.
            let end = plain.len().checked_sub(20).ok_or(changed)?;
            let (covered, hash) = plain.split_at(end);
            let start = block::SIZE + 2;
            let marked = covered.len() >= start + 2 && covered.ends_with(&[0xd3, 0x14]);
            if !marked || !block::constant_time_eq(&Sha1::digest(covered), hash) {
                return Err(changed);
            }
            Ok(covered[start..covered.len() - 2].to_vec())
        }
        (PROTECTED, Some((2, body))) => block::open_v2(body, key).ok_or(changed),
        (AEAD, Some((1, body))) => block::open_gnupg(body, key).ok_or(changed),
        (UNPROTECTED, _) => Err("the PGP message is not protected from changes"),
        _ => Err("the PGP message has an unknown version"),
    }
}

fn cipher(algorithm: u8, key: &[u8]) -> Result<Cipher, &'static str> {
    Cipher::new(algorithm, key).ok_or("the PGP message is encrypted with an algorithm that is not supported")
}

/// Unpacks compressed content.
fn content(bytes: &[u8], depth: usize) -> Result<Vec<u8>, &'static str> {
    let malformed = "the content of the PGP message cannot be read";
    let depth = depth.checked_sub(1).ok_or("the PGP message is nested too deeply")?;
    for (tag, body) in message_packets(bytes).ok_or(malformed)? {
        match tag {
            LITERAL => return literal(&body).ok_or(malformed),
            COMPRESSED => return content(&inflate(&body).ok_or(malformed)?, depth),
            _ => {}
        }
    }
    Err("the PGP message has no content")
}

/// The content of a literal packet, after type, file name and date.
fn literal(body: &[u8]) -> Option<Vec<u8>> {
    let name = usize::from(*body.get(1)?);
    Some(body.get(2 + name + 4..)?.to_vec())
}

fn inflate(body: &[u8]) -> Option<Vec<u8>> {
    let (&algorithm, packed) = body.split_first()?;
    let limit = MAX_PLAIN_BYTES as u64;
    let mut plain = Vec::new();
    match algorithm {
        0 => plain.extend_from_slice(packed),
        1 => _ = flate2::read::DeflateDecoder::new(packed).take(limit).read_to_end(&mut plain).ok()?,
        2 => _ = flate2::read::ZlibDecoder::new(packed).take(limit).read_to_end(&mut plain).ok()?,
        _ => return None,
    }
    (plain.len() < MAX_PLAIN_BYTES).then_some(plain)
}
