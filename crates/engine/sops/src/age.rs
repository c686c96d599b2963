//! age files with X25519 recipients, limited to what a data key needs.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use chacha20poly1305::ChaCha20Poly1305;
use chacha20poly1305::aead::{Aead as _, KeyInit as _};
use fl_types::Secret;
use hkdf::Hkdf;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use x25519_dalek::{PublicKey, StaticSecret};

use crate::document::KeyService;
use crate::{AgeError, Error, KeyError, MasterKey};

const VERSION: &str = "age-encryption.org/v1";
const CHUNK: usize = 64 * 1024 + 16;
/// Maximum size of a decrypted file; data keys are much smaller.
const MAX_PLAIN_BYTES: usize = 1 << 20;

/// The private keys of an `.agekey` file.
#[derive(Clone, Default)]
pub struct AgeIdentities {
    keys: Vec<Secret<[u8; 32]>>,
}

impl std::fmt::Debug for AgeIdentities {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgeIdentities").field("keys", &self.keys.len()).finish()
    }
}

impl AgeIdentities {
    /// Adds the keys of a file: one per line; `#` starts a comment.
    ///
    /// # Errors
    /// A line is not a key.
    pub fn import(&mut self, text: &str) -> Result<(), Error> {
        for line in text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')) {
            if line.starts_with("AGE-PLUGIN-") {
                return Err(Error::Key("age plugins are not supported"));
            }
            if line.starts_with("AGE-SECRET-KEY-PQ-") {
                return Err(Error::Key("age identities with post-quantum keys are not supported"));
            }
            if !line.starts_with("AGE-SECRET-KEY-") {
                return Err(Error::Key("unknown identity type"));
            }
            let (prefix, bytes) = bech32(line).ok_or(Error::Key("an age identity cannot be read"))?;
            let key: [u8; 32] =
                bytes.try_into().map_err(|_| Error::Key("an age identity has the wrong length"))?;
            if prefix != "age-secret-key-" {
                return Err(Error::Key("an age identity has an unknown type"));
            }
            self.keys.push(Secret::new(key));
        }
        Ok(())
    }

    /// Whether there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    fn open(&self, armored: &str) -> Result<Vec<u8>, AgeError> {
        let file = dearmor(armored).ok_or(AgeError::Armor)?;
        if let Some(line) = file
            .split_inclusive(|b| *b == b'\n')
            .next()
            .filter(|line| line.strip_suffix(b"\n") != Some(VERSION.as_bytes()))
        {
            return Err(AgeError::Intro(String::from_utf8_lossy(line).into_owned()));
        }
        let header = Header::read(&file).ok_or(AgeError::Header)?;
        for stanza in &header.stanzas {
            for key in &self.keys {
                if let Some(file_key) = unwrap(stanza, key.expose()) {
                    header.check(&file, &file_key).ok_or(AgeError::HeaderMac)?;
                    let plain = payload(&file[header.end..], &file_key);
                    return plain.ok_or(AgeError::Payload);
                }
            }
        }
        Err(match self.keys.len() {
            1 => AgeError::WrongIdentity,
            _ => AgeError::NoIdentity,
        })
    }
}

impl KeyService for AgeIdentities {
    fn data_key(&self, key: &MasterKey) -> Option<Result<Secret<Vec<u8>>, KeyError>> {
        let MasterKey::Age { encrypted, .. } = key else { return None };
        Some(
            self.open(encrypted).map(Secret::new).map_err(|error| {
                if self.is_empty() { KeyError::NoAgeIdentity } else { KeyError::Age(error) }
            }),
        )
    }
}

struct Stanza {
    kind: String,
    argument: String,
    body: Vec<u8>,
}

struct Header {
    stanzas: Vec<Stanza>,
    mac: Vec<u8>,
    /// End of the part covered by the MAC, including `---`.
    covered: usize,
    end: usize,
}

impl Header {
    fn read(file: &[u8]) -> Option<Self> {
        let mut at = 0;
        let mut line = || -> Option<(usize, &str)> {
            let rest = &file[at..];
            let end = rest.iter().position(|b| *b == b'\n')?;
            let start = at;
            at += end + 1;
            Some((start, std::str::from_utf8(&rest[..end]).ok()?))
        };
        if line()?.1 != VERSION {
            return None;
        }
        let mut stanzas = Vec::new();
        loop {
            let (start, text) = line()?;
            if let Some(mac) = text.strip_prefix("--- ") {
                let mac = STANDARD_NO_PAD.decode(mac).ok()?;
                return Some(Header { stanzas, mac, covered: start + 3, end: at });
            }
            let mut words = text.strip_prefix("-> ")?.split(' ');
            let kind = words.next()?.to_owned();
            let argument = words.next().unwrap_or_default().to_owned();
            let mut body = String::new();
            // A line shorter than the maximum ends the body.
            loop {
                let (_, text) = line()?;
                body.push_str(text);
                if text.len() < 64 {
                    break;
                }
            }
            stanzas.push(Stanza { kind, argument, body: STANDARD_NO_PAD.decode(body).ok()? });
        }
    }

    fn check(&self, file: &[u8], file_key: &[u8]) -> Option<()> {
        let mut key = [0; 32];
        Hkdf::<Sha256>::new(None, file_key).expand(b"header", &mut key).ok()?;
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).ok()?;
        mac.update(&file[..self.covered]);
        mac.verify_slice(&self.mac).ok()
    }
}

fn unwrap(stanza: &Stanza, key: &[u8; 32]) -> Option<Vec<u8>> {
    if stanza.kind != "X25519" {
        return None;
    }
    let share: [u8; 32] = STANDARD_NO_PAD.decode(&stanza.argument).ok()?.try_into().ok()?;
    let secret = StaticSecret::from(*key);
    let shared = secret.diffie_hellman(&PublicKey::from(share));
    if !shared.was_contributory() {
        return None;
    }
    let mut salt = share.to_vec();
    salt.extend_from_slice(PublicKey::from(&secret).as_bytes());
    let mut wrap = [0; 32];
    Hkdf::<Sha256>::new(Some(&salt), shared.as_bytes())
        .expand(b"age-encryption.org/v1/X25519", &mut wrap)
        .ok()?;
    let cipher = ChaCha20Poly1305::new((&wrap).into());
    cipher.decrypt((&[0u8; 12]).into(), stanza.body.as_slice()).ok().filter(|k| k.len() == 16)
}

/// Decrypts the payload: numbered chunks of 64 KiB, the last one marked.
fn payload(bytes: &[u8], file_key: &[u8]) -> Option<Vec<u8>> {
    let (nonce, mut rest) = bytes.split_at_checked(16)?;
    let mut key = [0; 32];
    Hkdf::<Sha256>::new(Some(nonce), file_key).expand(b"payload", &mut key).ok()?;
    let cipher = ChaCha20Poly1305::new((&key).into());
    let mut plain = Vec::new();
    let mut counter = 0u64;
    loop {
        let last = rest.len() <= CHUNK;
        let (chunk, later) = rest.split_at(rest.len().min(CHUNK));
        let mut number = [0u8; 12];
        number[3..11].copy_from_slice(&counter.to_be_bytes());
        number[11] = u8::from(last);
        plain.extend(cipher.decrypt((&number).into(), chunk).ok()?);
        if last {
            return Some(plain);
        }
        if plain.len() > MAX_PLAIN_BYTES {
            return None;
        }
        counter += 1;
        rest = later;
    }
}

fn dearmor(text: &str) -> Option<Vec<u8>> {
    let body = text.trim().strip_prefix("-----BEGIN AGE ENCRYPTED FILE-----")?;
    let body = body.strip_suffix("-----END AGE ENCRYPTED FILE-----")?;
    let body: String = body.chars().filter(|c| !c.is_whitespace()).collect();
    STANDARD.decode(body).ok()
}

/// Prefix and bytes of a Bech32 string.
fn bech32(text: &str) -> Option<(String, Vec<u8>)> {
    const ALPHABET: &str = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";
    if text.chars().any(|c| c.is_ascii_lowercase()) && text.chars().any(|c| c.is_ascii_uppercase()) {
        return None;
    }
    let lower = text.to_ascii_lowercase();
    let (prefix, data) = lower.rsplit_once('1')?;
    let values: Vec<u8> =
        data.chars().map(|c| ALPHABET.find(c).and_then(|v| u8::try_from(v).ok())).collect::<Option<_>>()?;
    let mut check = 1u32;
    let high = prefix.bytes().map(|b| b >> 5);
    let low = prefix.bytes().map(|b| b & 31);
    for value in high.chain([0]).chain(low).chain(values.iter().copied()) {
        let top = check >> 25;
        check = ((check & 0x01ff_ffff) << 5) ^ u32::from(value);
        for (i, generator) in
            [0x3b6a_57b2u32, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3].iter().enumerate()
        {
            if top >> i & 1 == 1 {
                check ^= generator;
            }
        }
    }
    if check != 1 {
        return None;
    }
    let (mut bits, mut count, mut bytes) = (0u32, 0, Vec::new());
    for value in &values[..values.len().checked_sub(6)?] {
        bits = bits << 5 | u32::from(*value);
        count += 5;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).ok()?);
        }
    }
    Some((prefix.to_owned(), bytes))
}
