//! Private keys, and decryption of session keys.

use fl_types::Secret;
use fl_verify::openpgp_packet::{big_endian, mpi};
use hkdf::Hkdf;
use p256::elliptic_curve::point::AffineCoordinates as _;
use rsa::{BoxedUint, Pkcs1v15Encrypt, RsaPrivateKey};
use sha1::{Digest as _, Sha1};
use sha2::{Sha256, Sha384, Sha512};
use x25519_dalek::{PublicKey, StaticSecret};

use super::block::Cipher;

const CURVE25519: &[u8] = &[0x2b, 6, 1, 4, 1, 0x97, 0x55, 1, 5, 1];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
const P384: &[u8] = &[0x2b, 0x81, 4, 0, 0x22];
const P521: &[u8] = &[0x2b, 0x81, 4, 0, 0x23];

/// A parsed key packet.
pub(super) enum KeyPacket {
    Open(Box<SecretKey>),
    /// The key is protected by a passphrase.
    Locked,
    /// The key cannot encrypt, or its type is not supported.
    Unsupported,
}

/// A decryption key.
#[derive(Clone)]
pub(super) struct SecretKey {
    fingerprint: Vec<u8>,
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    Rsa(Box<RsaPrivateKey>),
    /// Elliptic curves of RFC 6637.
    Ecdh {
        curve: Vec<u8>,
        hash: u8,
        cipher: u8,
        secret: Secret<Vec<u8>>,
    },
    /// X25519 as of RFC 9580.
    X25519 {
        secret: Secret<[u8; 32]>,
    },
}

/// Parses a packet; `None` if it is malformed.
pub(super) fn parse(body: &[u8]) -> Option<KeyPacket> {
    let (head, mut rest) = body.split_at_checked(6)?;
    if head[0] != 4 {
        return Some(KeyPacket::Unsupported);
    }
    let kind = match head[5] {
        1 | 2 => {
            let (n, e) = (mpi(&mut rest)?, mpi(&mut rest)?);
            let public = body.len() - rest.len();
            let Some(mut secret) = secret_part(rest)? else { return Some(KeyPacket::Locked) };
            let (d, p, q) = (mpi(&mut secret)?, mpi(&mut secret)?, mpi(&mut secret)?);
            let key =
                RsaPrivateKey::from_components(number(n), number(e), number(d), vec![number(p), number(q)]);
            (public, Kind::Rsa(Box::new(key.ok()?)))
        }
        18 => {
            let (&length, after) = rest.split_first()?;
            let (curve, after) = after.split_at_checked(usize::from(length))?;
            rest = after;
            mpi(&mut rest)?;
            let (parameters, after) = rest.split_at_checked(4)?;
            let [3, 1, hash, cipher] = *parameters else { return Some(KeyPacket::Unsupported) };
            rest = after;
            let public = body.len() - rest.len();
            let Some(mut secret) = secret_part(rest)? else { return Some(KeyPacket::Locked) };
            let secret = Secret::new(mpi(&mut secret)?.to_vec());
            (public, Kind::Ecdh { curve: curve.to_vec(), hash, cipher, secret })
        }
        25 => {
            let after = rest.get(32..)?;
            let public = body.len() - after.len();
            let Some(secret) = secret_part(after)? else { return Some(KeyPacket::Locked) };
            (public, Kind::X25519 { secret: Secret::new(secret.get(..32)?.try_into().ok()?) })
        }
        _ => return Some(KeyPacket::Unsupported),
    };
    let (public, kind) = kind;
    let length = u16::try_from(public).ok()?.to_be_bytes();
    let fingerprint = Sha1::digest([&[0x99], length.as_slice(), &body[..public]].concat()).to_vec();
    Some(KeyPacket::Open(Box::new(SecretKey { fingerprint, kind })))
}

/// The secret numbers if no passphrase protects them: after the usage octet, before the two-byte checksum.
fn secret_part(rest: &[u8]) -> Option<Option<&[u8]>> {
    let (&usage, rest) = rest.split_first()?;
    if usage != 0 {
        return Some(None);
    }
    let (secret, sum) = rest.split_at_checked(rest.len().checked_sub(2)?)?;
    let found = secret.iter().fold(0u16, |n, b| n.wrapping_add(u16::from(*b)));
    (usize::from(found) == big_endian(sum)).then_some(Some(secret))
}

fn number(bytes: &[u8]) -> BoxedUint {
    let digits = bytes.iter().position(|b| *b != 0).unwrap_or(bytes.len());
    BoxedUint::from_be_slice_vartime(&bytes[digits..])
}

impl SecretKey {
    /// Decrypts the session key of a packet: its algorithm and the key. `None` if the packet is for another
    /// key.
    pub(super) fn session_key(&self, packet: &[u8]) -> Option<Secret<Vec<u8>>> {
        let (&version, rest) = packet.split_first()?;
        let (for_us, algorithm, rest) = match version {
            3 => {
                let (id, rest) = rest.split_at_checked(8)?;
                let (&algorithm, rest) = rest.split_first()?;
                // An empty id matches every key.
                (id == &self.fingerprint[12..] || id == [0; 8], algorithm, rest)
            }
            6 => {
                let (&length, rest) = rest.split_first()?;
                let (name, rest) = rest.split_at_checked(usize::from(length))?;
                let (&algorithm, rest) = rest.split_first()?;
                (name.is_empty() || name.get(1..) == Some(self.fingerprint.as_slice()), algorithm, rest)
            }
            _ => return None,
        };
        if !for_us {
            return None;
        }
        let session = match (&self.kind, algorithm) {
            (Kind::Rsa(key), 1 | 2) => rsa(key, rest)?,
            (Kind::Ecdh { curve, hash, cipher, secret }, 18) => {
                self.ecdh(curve, *hash, *cipher, secret.expose(), rest)?
            }
            (Kind::X25519 { secret }, 25) => return x25519(*secret.expose(), rest, version),
            _ => return None,
        };
        // Since version 6 the algorithm is part of the message; a placeholder is stored here.
        let (key, sum) = session.split_at_checked(session.len().checked_sub(2)?)?;
        let key = if version == 6 { [&[0], key].concat() } else { key.to_vec() };
        let found = key.get(1..)?.iter().fold(0u16, |n, b| n.wrapping_add(u16::from(*b)));
        (usize::from(found) == big_endian(sum)).then(|| Secret::new(key))
    }

    fn ecdh(&self, curve: &[u8], hash: u8, cipher: u8, secret: &[u8], mut rest: &[u8]) -> Option<Vec<u8>> {
        let point = mpi(&mut rest)?;
        let (&length, rest) = rest.split_first()?;
        let wrapped = rest.get(..usize::from(length))?;
        let shared = shared_secret(curve, secret, point)?;
        let oid_length = u8::try_from(curve.len()).ok()?;
        let parameters = [
            &[oid_length],
            curve,
            &[18, 3, 1, hash, cipher],
            b"Anonymous Sender    ".as_slice(),
            &self.fingerprint,
        ]
        .concat();
        let material = [&[0, 0, 0, 1], shared.as_slice(), &parameters].concat();
        let made = match hash {
            8 => Sha256::digest(material).to_vec(),
            9 => Sha384::digest(material).to_vec(),
            10 => Sha512::digest(material).to_vec(),
            _ => return None,
        };
        let length = match cipher {
            7 => 16,
            8 => 24,
            9 => 32,
            _ => return None,
        };
        let padded = Cipher::new(cipher, made.get(..length)?)?.unwrap(wrapped)?;
        let padding = usize::from(*padded.last()?);
        let end = padded.len().checked_sub(padding)?;
        let (session, tail) = padded.split_at(end);
        tail.iter().all(|b| usize::from(*b) == padding).then(|| session.to_vec())
    }
}

fn rsa(key: &RsaPrivateKey, mut rest: &[u8]) -> Option<Vec<u8>> {
    let sealed = mpi(&mut rest)?;
    // Leading zeros are omitted in the packet.
    let size = rsa::traits::PublicKeyParts::size(key);
    let padded = [vec![0; size.saturating_sub(sealed.len())], sealed.to_vec()].concat();
    key.decrypt(Pkcs1v15Encrypt, &padded).ok()
}

/// ECDH shared secret.
fn shared_secret(curve: &[u8], secret: &[u8], point: &[u8]) -> Option<Vec<u8>> {
    /// Restores leading zeros, which are omitted in the packet.
    fn fixed(secret: &[u8], size: usize) -> Option<Vec<u8>> {
        Some([vec![0; size.checked_sub(secret.len())?], secret.to_vec()].concat())
    }
    Some(match curve {
        CURVE25519 => {
            let point: [u8; 32] = point.strip_prefix(&[0x40])?.try_into().ok()?;
            // OpenPGP stores the scalar in the opposite byte order of the curve's own specification.
            let mut secret: [u8; 32] = fixed(secret, 32)?.try_into().ok()?;
            secret.reverse();
            let shared = StaticSecret::from(secret).diffie_hellman(&PublicKey::from(point));
            shared.was_contributory().then(|| shared.as_bytes().to_vec())?
        }
        P256 => {
            let secret = p256::SecretKey::from_slice(&fixed(secret, 32)?).ok()?;
            let point = p256::PublicKey::from_sec1_bytes(point).ok()?;
            (point.to_projective() * *secret.to_nonzero_scalar()).to_affine().x().to_vec()
        }
        P384 => {
            let secret = p384::SecretKey::from_slice(&fixed(secret, 48)?).ok()?;
            let point = p384::PublicKey::from_sec1_bytes(point).ok()?;
            (point.to_projective() * *secret.to_nonzero_scalar()).to_affine().x().to_vec()
        }
        P521 => {
            let secret = p521::SecretKey::from_slice(&fixed(secret, 66)?).ok()?;
            let point = p521::PublicKey::from_sec1_bytes(point).ok()?;
            (point.to_projective() * *secret.to_nonzero_scalar()).to_affine().x().to_vec()
        }
        _ => return None,
    })
}

/// X25519 of RFC 9580: no padding, no checksum, the algorithm in the clear.
fn x25519(secret: [u8; 32], packet: &[u8], version: u8) -> Option<Secret<Vec<u8>>> {
    let (share, rest) = packet.split_at_checked(32)?;
    let share: [u8; 32] = share.try_into().ok()?;
    let (&length, rest) = rest.split_first()?;
    let mut wrapped = rest.get(..usize::from(length))?;
    let mut algorithm = 0;
    if version == 3 {
        let (&first, rest) = wrapped.split_first()?;
        (algorithm, wrapped) = (first, rest);
    }
    let secret = StaticSecret::from(secret);
    let shared = secret.diffie_hellman(&PublicKey::from(share));
    if !shared.was_contributory() {
        return None;
    }
    let material = [share.as_slice(), PublicKey::from(&secret).as_bytes(), shared.as_bytes()].concat();
    let mut key = [0; 16];
    Hkdf::<Sha256>::new(None, &material).expand(b"OpenPGP X25519", &mut key).ok()?;
    let session = Cipher::new(7, &key)?.unwrap(wrapped)?;
    Some(Secret::new([&[algorithm], session.as_slice()].concat()))
}
