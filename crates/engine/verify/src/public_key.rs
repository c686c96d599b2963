//! Public keys and signature verification.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use p256::ecdsa::signature::hazmat::PrehashVerifier;
use rsa::{Pkcs1v15Sign, RsaPublicKey};
use sha2::{Digest, Sha256, Sha384, Sha512};

/// Accepted hash algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hash {
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

impl Hash {
    pub(crate) fn of(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Hash::Sha1 => sha1::Sha1::digest(bytes).to_vec(),
            Hash::Sha224 => sha2::Sha224::digest(bytes).to_vec(),
            Hash::Sha256 => Sha256::digest(bytes).to_vec(),
            Hash::Sha384 => Sha384::digest(bytes).to_vec(),
            Hash::Sha512 => Sha512::digest(bytes).to_vec(),
        }
    }

    /// ASN.1 prefix of the hash in an RSA signature.
    fn prefix(self) -> Box<[u8]> {
        let sha2 = |last: u8, length: u8| {
            vec![
                0x30,
                0x11 + length,
                0x30,
                0x0d,
                6,
                9,
                0x60,
                0x86,
                0x48,
                1,
                0x65,
                3,
                4,
                2,
                last,
                5,
                0,
                4,
                length,
            ]
        };
        match self {
            Hash::Sha1 => vec![0x30, 0x21, 0x30, 9, 6, 5, 0x2b, 0x0e, 3, 2, 0x1a, 5, 0, 4, 20],
            Hash::Sha224 => sha2(4, 28),
            Hash::Sha256 => sha2(1, 32),
            Hash::Sha384 => sha2(2, 48),
            Hash::Sha512 => sha2(3, 64),
        }
        .into()
    }
}

/// A public key.
#[derive(Clone, Debug)]
pub enum PublicKey {
    Rsa(Box<RsaPublicKey>),
    P256(Box<p256::ecdsa::VerifyingKey>),
    P384(Box<p384::ecdsa::VerifyingKey>),
    P521(Box<p521::ecdsa::VerifyingKey>),
    Ed25519(Box<ed25519_dalek::VerifyingKey>),
}

/// Error of parsing a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    #[error("PEM decoding failed")]
    Pem,
    #[error("the public key is of a kind that is not supported")]
    Unsupported,
    #[error("an RSA key of fewer than 2048 bits is refused")]
    Weak,
}

/// An ECDSA signature: the two numbers, or their DER form.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EcSignature<'a> {
    Der(&'a [u8]),
    Numbers(&'a [u8], &'a [u8]),
}

impl PublicKey {
    /// Parses PEM with `PUBLIC KEY` or `RSA PUBLIC KEY`.
    pub fn from_pem(text: &str) -> Result<Self, KeyError> {
        let inside = |label: &str| {
            let begin = format!("-----BEGIN {label}-----");
            let end = format!("-----END {label}-----");
            let body = text.split_once(&begin)?.1.split_once(&end)?.0;
            let body: String = body.chars().filter(|c| !c.is_whitespace()).collect();
            STANDARD.decode(body).ok()
        };
        if let Some(der) = inside("PUBLIC KEY") {
            return Self::from_spki(&der);
        }
        if let Some(der) = inside("RSA PUBLIC KEY") {
            return rsa_from_der(&der).ok_or(KeyError::Unsupported)?;
        }
        Err(KeyError::Pem)
    }

    /// Parses a `SubjectPublicKeyInfo`.
    pub fn from_spki(der: &[u8]) -> Result<Self, KeyError> {
        let (algorithm, key) = read_spki(der).ok_or(KeyError::Pem)?;
        const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];
        const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
        const ED25519: &[u8] = &[0x2b, 0x65, 0x70];
        let mut algorithm = algorithm;
        let name = element(&mut algorithm, 6).ok_or(KeyError::Pem)?;
        match name {
            RSA => rsa_from_der(key).ok_or(KeyError::Unsupported)?,
            ED25519 => {
                let bytes: [u8; 32] = key.try_into().map_err(|_| KeyError::Unsupported)?;
                let key =
                    ed25519_dalek::VerifyingKey::from_bytes(&bytes).map_err(|_| KeyError::Unsupported)?;
                Ok(PublicKey::Ed25519(Box::new(key)))
            }
            EC => {
                let curve = element(&mut algorithm, 6).ok_or(KeyError::Unsupported)?;
                Self::from_curve(curve, key)
            }
            _ => Err(KeyError::Unsupported),
        }
    }

    /// A point on a curve, by the OID of the curve.
    pub(crate) fn from_curve(curve: &[u8], point: &[u8]) -> Result<Self, KeyError> {
        let bad = |_| KeyError::Unsupported;
        match curve {
            [0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7] => {
                Ok(PublicKey::P256(Box::new(p256::ecdsa::VerifyingKey::from_sec1_bytes(point).map_err(bad)?)))
            }
            [0x2b, 0x81, 4, 0, 0x22] => {
                Ok(PublicKey::P384(Box::new(p384::ecdsa::VerifyingKey::from_sec1_bytes(point).map_err(bad)?)))
            }
            [0x2b, 0x81, 4, 0, 0x23] => {
                Ok(PublicKey::P521(Box::new(p521::ecdsa::VerifyingKey::from_sec1_bytes(point).map_err(bad)?)))
            }
            _ => Err(KeyError::Unsupported),
        }
    }

    pub(crate) fn from_rsa_numbers(n: &[u8], e: &[u8]) -> Result<Self, KeyError> {
        // ASN.1's sign byte would make the modulus, and the expected signature length, one byte too long.
        let number = |bytes: &[u8]| {
            let digits = bytes.iter().position(|b| *b != 0).unwrap_or(bytes.len());
            rsa::BoxedUint::from_be_slice_vartime(&bytes[digits..])
        };
        let significant = n.iter().skip_while(|b| **b == 0).count();
        if significant < 256 {
            return Err(KeyError::Weak);
        }
        let key = RsaPublicKey::new(number(n), number(e)).map_err(|_| KeyError::Unsupported)?;
        Ok(PublicKey::Rsa(Box::new(key)))
    }

    /// Verifies an RSA signature of a message with this hash.
    pub(crate) fn made_rsa(&self, hash: Hash, digest: &[u8], signature: &[u8]) -> bool {
        let PublicKey::Rsa(key) = self else { return false };
        let scheme = Pkcs1v15Sign { hash_len: Some(digest.len()), prefix: hash.prefix() };
        // Leading zeros may be missing.
        let length = rsa::traits::PublicKeyParts::size(key.as_ref());
        let mut padded = vec![0; length.saturating_sub(signature.len())];
        padded.extend_from_slice(signature);
        key.verify(scheme, digest, &padded).is_ok()
    }

    pub(crate) fn made_ec(&self, digest: &[u8], signature: EcSignature<'_>) -> bool {
        fn fixed(r: &[u8], s: &[u8], size: usize) -> Option<Vec<u8>> {
            let pad = |n: &[u8]| {
                let n: Vec<u8> = n.iter().copied().skip_while(|b| *b == 0).collect();
                (n.len() <= size).then(|| [vec![0; size - n.len()], n].concat())
            };
            Some([pad(r)?, pad(s)?].concat())
        }
        match (self, signature) {
            (PublicKey::P256(key), EcSignature::Der(der)) => {
                p256::ecdsa::Signature::from_der(der).is_ok_and(|s| key.verify_prehash(digest, &s).is_ok())
            }
            (PublicKey::P384(key), EcSignature::Der(der)) => {
                p384::ecdsa::Signature::from_der(der).is_ok_and(|s| key.verify_prehash(digest, &s).is_ok())
            }
            (PublicKey::P521(key), EcSignature::Der(der)) => {
                p521::ecdsa::Signature::from_der(der).is_ok_and(|s| key.verify_prehash(digest, &s).is_ok())
            }
            (PublicKey::P256(key), EcSignature::Numbers(r, s)) => fixed(r, s, 32)
                .and_then(|b| p256::ecdsa::Signature::from_slice(&b).ok())
                .is_some_and(|s| key.verify_prehash(digest, &s).is_ok()),
            (PublicKey::P384(key), EcSignature::Numbers(r, s)) => fixed(r, s, 48)
                .and_then(|b| p384::ecdsa::Signature::from_slice(&b).ok())
                .is_some_and(|s| key.verify_prehash(digest, &s).is_ok()),
            (PublicKey::P521(key), EcSignature::Numbers(r, s)) => fixed(r, s, 66)
                .and_then(|b| p521::ecdsa::Signature::from_slice(&b).ok())
                .is_some_and(|s| key.verify_prehash(digest, &s).is_ok()),
            _ => false,
        }
    }

    pub(crate) fn made_ed25519(&self, message: &[u8], signature: &[u8]) -> bool {
        let PublicKey::Ed25519(key) = self else { return false };
        let Ok(signature) = ed25519_dalek::Signature::from_slice(signature) else { return false };
        key.verify_strict(message, &signature).is_ok()
    }

    /// Verifies a signature with the key's default algorithm: RSA and ECDSA with SHA-256, or Ed25519.
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> bool {
        let digest = || Sha256::digest(message).to_vec();
        match self {
            PublicKey::Rsa(_) => self.made_rsa(Hash::Sha256, &digest(), signature),
            PublicKey::Ed25519(_) => self.made_ed25519(message, signature),
            PublicKey::P256(_) | PublicKey::P384(_) | PublicKey::P521(_) => {
                self.made_ec(&digest(), EcSignature::Der(signature))
            }
        }
    }
}

fn rsa_from_der(der: &[u8]) -> Option<Result<PublicKey, KeyError>> {
    let mut input = der;
    let mut inside = element(&mut input, 0x30)?;
    let n = element(&mut inside, 2)?;
    let e = element(&mut inside, 2)?;
    Some(PublicKey::from_rsa_numbers(n, e))
}

/// The algorithm and the key's bytes of a `SubjectPublicKeyInfo`.
fn read_spki(der: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut input = der;
    let mut inside = element(&mut input, 0x30)?;
    let algorithm = element(&mut inside, 0x30)?;
    let bits = element(&mut inside, 3)?;
    // The first byte is the number of unused bits.
    let (&0, key) = bits.split_first()? else { return None };
    Some((algorithm, key))
}

/// The content of the next DER element, which must have this type.
pub(crate) fn element<'a>(input: &mut &'a [u8], kind: u8) -> Option<&'a [u8]> {
    let (&found, rest) = input.split_first()?;
    let (&first, rest) = rest.split_first()?;
    if found != kind {
        return None;
    }
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let count = usize::from(first & 0x7f);
        if count == 0 || count > 4 {
            return None;
        }
        let (number, rest) = rest.split_at_checked(count)?;
        (crate::openpgp_packet::big_endian(number), rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    *input = rest;
    Some(content)
}
