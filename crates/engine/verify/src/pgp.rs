//! PGP signatures (RFC 4880): detached signatures and keys of version 4.
//!
//! A signature is valid if it was made by a signing key of the ring: the primary key, or a subkey that the
//! primary key has bound and that has signed the binding back. Expired and revoked keys are rejected. RSA,
//! ECDSA and Ed25519 are supported; DSA and MD5 are not, and SHA-1 is accepted only in self-signatures of old
//! keys.

use crate::openpgp_packet::{Packet, big_endian, mpi, packets, subpackets, unarmor};
use crate::public_key::{EcSignature, Hash, PublicKey};

/// Error of verifying a signature; the messages are Flux's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PgpError {
    #[error("unable to verify payload: payload is empty")]
    EmptyPayload,
    #[error("unable to read armored key ring: {0}")]
    Ring(&'static str),
    #[error("unable to verify payload with any of the given key rings: no matching key")]
    NoMatch,
}

const SIGNATURE: u8 = 2;
const PUBLIC_KEY: u8 = 6;
const USER_ID: u8 = 13;
const SUBKEY: u8 = 14;
const USER_ATTRIBUTE: u8 = 17;

/// Verifies a signature and returns the long id of the primary key. `now` is the Unix time in seconds.
pub fn verify(signature: &str, payload: &[u8], rings: &[String], now: u64) -> Result<String, PgpError> {
    if payload.is_empty() {
        return Err(PgpError::EmptyPayload);
    }
    let bytes = unarmor(signature.trim(), "SIGNATURE").ok_or(PgpError::NoMatch)?;
    let found = packets(&bytes).ok_or(PgpError::NoMatch)?;
    let signatures: Vec<Signature<'_>> =
        found.iter().filter(|p| p.tag == SIGNATURE).filter_map(|p| Signature::parse(p.body)).collect();
    let (mut readable, mut problem) = (false, None);
    for ring in rings {
        let bytes = match unarmor(ring, "PUBLIC KEY BLOCK") {
            Some(bytes) => bytes,
            None => {
                problem.get_or_insert("EOF");
                continue;
            }
        };
        let Some(owners) = packets(&bytes).and_then(|p| Owner::all(&p)) else {
            problem.get_or_insert("openpgp: invalid data: tag byte does not have MSB set");
            continue;
        };
        readable = true;
        for owner in &owners {
            if signatures.iter().any(|s| owner.made(s, payload, now)) {
                return Ok(owner.primary.id_text());
            }
        }
    }
    match problem {
        Some(problem) if !readable => Err(PgpError::Ring(problem)),
        _ => Err(PgpError::NoMatch),
    }
}

/// A public key and its creation time.
struct Key<'a> {
    body: &'a [u8],
    created: u64,
    key: PublicKey,
    fingerprint: Vec<u8>,
}

impl<'a> Key<'a> {
    /// Keys of other versions and algorithms are skipped: their signatures cannot be verified anyway.
    fn parse(body: &'a [u8]) -> Option<Self> {
        let (head, mut rest) = body.split_at_checked(6)?;
        if head[0] != 4 {
            return None;
        }
        let key = match head[5] {
            1 | 3 => {
                let n = mpi(&mut rest)?;
                let e = mpi(&mut rest)?;
                PublicKey::from_rsa_numbers(n, e).ok()?
            }
            19 => {
                let (&length, after) = rest.split_first()?;
                let (curve, mut after) = after.split_at_checked(usize::from(length))?;
                PublicKey::from_curve(curve, mpi(&mut after)?).ok()?
            }
            22 => {
                let (&length, after) = rest.split_first()?;
                let (curve, mut after) = after.split_at_checked(usize::from(length))?;
                if curve != [0x2b, 6, 1, 4, 1, 0xda, 0x47, 0x0f, 1] {
                    return None;
                }
                ed25519(mpi(&mut after)?.strip_prefix(&[0x40])?)?
            }
            27 => ed25519(rest.get(..32)?)?,
            _ => return None,
        };
        Some(Self {
            body,
            created: big_endian(&head[1..5]) as u64,
            key,
            fingerprint: Hash::Sha1.of(&framed(body)),
        })
    }

    fn id(&self) -> &[u8] {
        &self.fingerprint[12..]
    }

    fn id_text(&self) -> String {
        self.id().iter().map(|b| format!("{b:02X}")).collect()
    }
}

fn ed25519(bytes: &[u8]) -> Option<PublicKey> {
    let bytes: [u8; 32] = bytes.try_into().ok()?;
    ed25519_dalek::VerifyingKey::from_bytes(&bytes).ok().map(|k| PublicKey::Ed25519(Box::new(k)))
}

/// A key as it is hashed.
fn framed(body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len()).unwrap_or(u16::MAX).to_be_bytes();
    [&[0x99], length.as_slice(), body].concat()
}

/// A signature packet of version 4.
struct Signature<'a> {
    kind: u8,
    algorithm: u8,
    hash: Hash,
    /// The signed part of the packet itself.
    signed: &'a [u8],
    hashed: Vec<(u8, &'a [u8])>,
    unhashed: Vec<(u8, &'a [u8])>,
    numbers: &'a [u8],
}

impl<'a> Signature<'a> {
    fn parse(body: &'a [u8]) -> Option<Self> {
        let (head, rest) = body.split_at_checked(6)?;
        let (hashed, rest) = rest.split_at_checked(big_endian(&head[4..6]))?;
        let (length, rest) = rest.split_at_checked(2)?;
        let (unhashed, rest) = rest.split_at_checked(big_endian(length))?;
        let numbers = rest.get(2..)?;
        let hash = match head[3] {
            2 => Hash::Sha1,
            8 => Hash::Sha256,
            9 => Hash::Sha384,
            10 => Hash::Sha512,
            11 => Hash::Sha224,
            _ => return None,
        };
        let hashed_parts = subpackets(hashed)?;
        // An unknown critical subpacket makes the signature invalid.
        let understood = |kind: u8| matches!(kind & 0x7f, 2 | 3 | 4 | 5 | 7 | 9 | 11 | 16 | 20..=34);
        if head[0] != 4 || hashed_parts.iter().any(|(kind, _)| kind & 0x80 != 0 && !understood(*kind)) {
            return None;
        }
        Some(Self {
            kind: head[1],
            algorithm: head[2],
            hash,
            signed: &body[..6 + hashed.len()],
            hashed: hashed_parts,
            unhashed: subpackets(unhashed)?,
            numbers,
        })
    }

    fn part(&self, kind: u8) -> Option<&'a [u8]> {
        self.hashed.iter().find(|(k, _)| k & 0x7f == kind).map(|(_, content)| *content)
    }

    fn seconds(&self, kind: u8) -> Option<u64> {
        self.part(kind).filter(|c| c.len() == 4).map(|c| big_endian(c) as u64)
    }

    fn created(&self) -> Option<u64> {
        self.seconds(2)
    }

    fn has_expired(&self, now: u64) -> bool {
        match (self.created(), self.seconds(3).filter(|s| *s > 0)) {
            (None, _) => true,
            (Some(created), _) if created > now => true,
            (Some(created), Some(lifetime)) => created + lifetime < now,
            _ => false,
        }
    }

    /// Whether it names another issuer key.
    fn has_other_issuer(&self, key: &Key<'_>) -> bool {
        let mut parts = self.hashed.iter().chain(&self.unhashed);
        let by_id = parts.clone().find(|(k, _)| k & 0x7f == 16).map(|(_, id)| *id != key.id());
        let by_print =
            parts.find(|(k, _)| k & 0x7f == 33).map(|(_, f)| f.get(1..) != Some(key.fingerprint.as_slice()));
        by_id.or(by_print).unwrap_or(false)
    }

    fn made_by(&self, key: &Key<'_>, subject: &[u8]) -> bool {
        if self.has_other_issuer(key) {
            return false;
        }
        let length = u32::try_from(self.signed.len()).unwrap_or(u32::MAX).to_be_bytes();
        let message = [subject, self.signed, &[4, 0xff], length.as_slice()].concat();
        let digest = self.hash.of(&message);
        let mut numbers = self.numbers;
        match self.algorithm {
            1 | 3 => mpi(&mut numbers).is_some_and(|s| key.key.made_rsa(self.hash, &digest, s)),
            19 => match (mpi(&mut numbers), mpi(&mut numbers)) {
                (Some(r), Some(s)) => key.key.made_ec(&digest, EcSignature::Numbers(r, s)),
                _ => false,
            },
            22 => match (mpi(&mut numbers), mpi(&mut numbers)) {
                (Some(r), Some(s)) if r.len() <= 32 && s.len() <= 32 => {
                    let mut whole = [0; 64];
                    whole[32 - r.len()..32].copy_from_slice(r);
                    whole[64 - s.len()..].copy_from_slice(s);
                    key.key.made_ed25519(&digest, &whole)
                }
                _ => false,
            },
            27 => numbers.get(..64).is_some_and(|s| key.key.made_ed25519(&digest, s)),
            _ => false,
        }
    }

    /// Whether its key flags allow signing; without flags it is allowed.
    fn allows_signing(&self) -> bool {
        self.part(27).is_none_or(|flags| flags.first().is_some_and(|f| f & 2 != 0))
    }

    fn key_has_expired(&self, key: &Key<'_>, now: u64) -> bool {
        self.seconds(9).filter(|s| *s > 0).is_some_and(|lifetime| key.created + lifetime < now)
    }
}

/// A primary key with its subkeys.
struct Owner<'a> {
    primary: Key<'a>,
    /// Self-signatures of the primary key, the newest last.
    own: Vec<Signature<'a>>,
    revoked: bool,
    subkeys: Vec<Subkey<'a>>,
}

struct Subkey<'a> {
    key: Key<'a>,
    bindings: Vec<Signature<'a>>,
    revoked: bool,
}

impl<'a> Owner<'a> {
    fn all(all: &[Packet<'a>]) -> Option<Vec<Self>> {
        let mut owners: Vec<Option<Owner<'a>>> = Vec::new();
        // The key that the next signature is about.
        enum Subject {
            Key,
            User(Vec<u8>),
            Subkey(bool),
        }
        let mut subject = Subject::Key;
        for packet in all {
            match packet.tag {
                PUBLIC_KEY => {
                    subject = Subject::Key;
                    owners.push(Key::parse(packet.body).map(|primary| Owner {
                        primary,
                        own: Vec::new(),
                        revoked: false,
                        subkeys: Vec::new(),
                    }));
                }
                USER_ID | USER_ATTRIBUTE => {
                    let mark = if packet.tag == USER_ID { 0xb4 } else { 0xd1 };
                    let length = u32::try_from(packet.body.len()).ok()?.to_be_bytes();
                    subject = Subject::User([&[mark], length.as_slice(), packet.body].concat());
                }
                SUBKEY => {
                    let key = Key::parse(packet.body);
                    subject = Subject::Subkey(key.is_some());
                    if let (Some(Some(owner)), Some(key)) = (owners.last_mut(), key) {
                        owner.subkeys.push(Subkey { key, bindings: Vec::new(), revoked: false });
                    }
                }
                SIGNATURE => {
                    let (Some(Some(owner)), Some(signature)) =
                        (owners.last_mut(), Signature::parse(packet.body))
                    else {
                        continue;
                    };
                    match &subject {
                        Subject::Key => owner.about_key(signature),
                        Subject::User(user) => owner.about_user(signature, user),
                        Subject::Subkey(true) => owner.about_subkey(signature),
                        Subject::Subkey(false) => {}
                    }
                }
                _ => {}
            }
        }
        if owners.is_empty() {
            return None;
        }
        Some(owners.into_iter().flatten().collect())
    }

    fn about_key(&mut self, signature: Signature<'a>) {
        if !signature.made_by(&self.primary, &framed(self.primary.body)) {
            return;
        }
        match signature.kind {
            0x20 => self.revoked = true,
            0x1f => self.own.push(signature),
            _ => {}
        }
    }

    fn about_user(&mut self, signature: Signature<'a>, user: &[u8]) {
        let subject = [framed(self.primary.body).as_slice(), user].concat();
        if (0x10..=0x13).contains(&signature.kind) && signature.made_by(&self.primary, &subject) {
            self.own.push(signature);
        }
    }

    fn about_subkey(&mut self, signature: Signature<'a>) {
        let Some(subkey) = self.subkeys.last_mut() else { return };
        let subject = [framed(self.primary.body), framed(subkey.key.body)].concat();
        if !signature.made_by(&self.primary, &subject) {
            return;
        }
        match signature.kind {
            0x18 => subkey.bindings.push(signature),
            0x28 => subkey.revoked = true,
            _ => {}
        }
    }

    /// The newest self-signature, which is the effective one.
    fn newest(list: &[Signature<'a>]) -> Option<usize> {
        (0..list.len()).max_by_key(|i| list[*i].created())
    }

    fn made(&self, signature: &Signature<'_>, payload: &[u8], now: u64) -> bool {
        let Some(own) = Self::newest(&self.own).map(|i| &self.own[i]) else { return false };
        if self.revoked || own.has_expired(now) || own.key_has_expired(&self.primary, now) {
            return false;
        }
        // Binary documents, or text with normalized line ends. SHA-1 is broken for this purpose.
        if !matches!(signature.kind, 0 | 1) || signature.hash == Hash::Sha1 || signature.has_expired(now) {
            return false;
        }
        let text;
        let subject = if signature.kind == 1 {
            text = normalize_line_ends(payload);
            text.as_slice()
        } else {
            payload
        };
        if own.allows_signing() && signature.made_by(&self.primary, subject) {
            return true;
        }
        self.subkeys
            .iter()
            .any(|subkey| subkey.may_sign(self, now) && signature.made_by(&subkey.key, subject))
    }
}

impl Subkey<'_> {
    /// A signing subkey must have signed its binding back, or a key could be claimed by another owner.
    fn may_sign(&self, owner: &Owner<'_>, now: u64) -> bool {
        let Some(binding) = Owner::newest(&self.bindings).map(|i| &self.bindings[i]) else { return false };
        let flags = binding.part(27).and_then(|f| f.first());
        if self.revoked
            || binding.has_expired(now)
            || binding.key_has_expired(&self.key, now)
            || flags.is_none_or(|f| f & 2 == 0)
        {
            return false;
        }
        let mut parts = binding.hashed.iter().chain(&binding.unhashed);
        let back = parts.find(|(k, _)| k & 0x7f == 32).and_then(|(_, body)| Signature::parse(body));
        let subject = [framed(owner.primary.body), framed(self.key.body)].concat();
        back.is_some_and(|b| b.kind == 0x19 && !b.has_expired(now) && b.made_by(&self.key, &subject))
    }
}

/// Converts line ends to CR LF.
fn normalize_line_ends(payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(payload.len() + 64);
    for (at, byte) in payload.iter().enumerate() {
        if *byte == b'\n' && (at == 0 || payload[at - 1] != b'\r') {
            out.push(b'\r');
        }
        out.push(*byte);
    }
    out
}
