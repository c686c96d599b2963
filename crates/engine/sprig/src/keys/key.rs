//! Private keys: RSA, ECDSA on P-256, Ed25519, DSA.

use dsa::{Components, KeySize};
use ed25519_dalek::Signer;
use fl_gotemplate::CallError;
use rsa::pkcs1::{DecodeRsaPrivateKey, EncodeRsaPrivateKey, EncodeRsaPublicKey};
use rsa::{RsaPrivateKey, traits::PublicKeyParts};
use sha2::{Digest, Sha256};

use super::HostRng;
use super::der::{self, OCTET_STRING, OID, SEQUENCE};

const OID_RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const OID_RSA_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b];
const OID_EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const OID_P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const OID_ECDSA_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
const OID_ED25519: &[u8] = &[0x2b, 0x65, 0x70];

/// Maximum RSA key size: signing with a larger one would take minutes.
const MAX_RSA_BITS: usize = 16_384;

#[derive(Debug)]
pub(super) enum PrivateKey {
    Rsa(Box<RsaPrivateKey>),
    Ec(p256::SecretKey),
    Ed25519(Box<ed25519_dalek::SigningKey>),
    /// Kept encoded: certificates cannot use it.
    Dsa(Vec<u8>),
}

fn fail<T>(message: impl Into<String>) -> Result<T, CallError> {
    Err(CallError::new(message))
}

impl PrivateKey {
    pub(super) fn rsa(rng: &mut HostRng, bits: usize) -> Result<Self, CallError> {
        match RsaPrivateKey::new(rng, bits) {
            Ok(key) => Ok(PrivateKey::Rsa(Box::new(key))),
            Err(e) => fail(format!("error generating rsa key: {e}")),
        }
    }

    pub(super) fn ec(rng: &mut HostRng) -> Self {
        loop {
            // A random number above the order of the curve is very unlikely, but possible.
            if let Ok(key) = p256::SecretKey::from_slice(&rng.array::<32>()) {
                return PrivateKey::Ec(key);
            }
        }
    }

    pub(super) fn ed25519(rng: &mut HostRng) -> Self {
        PrivateKey::Ed25519(Box::new(ed25519_dalek::SigningKey::from_bytes(&rng.array())))
    }

    pub(super) fn dsa(rng: &mut HostRng) -> Result<Self, CallError> {
        let Ok(components) = Components::try_generate_from_rng_with_key_size(rng, KeySize::DSA_2048_256);
        let (p, q, g) =
            (components.p().to_be_bytes(), components.q().to_be_bytes(), components.g().to_be_bytes());
        let Ok(key) = dsa::SigningKey::try_generate_from_rng_with_components(rng, components);
        let (x, y) = (key.x().to_be_bytes(), key.verifying_key().y().to_be_bytes());
        let parts: Vec<Vec<u8>> =
            [&[0u8] as &[u8], &p, &q, &g, &y, &x].iter().map(|n| der::unsigned(n)).collect();
        Ok(PrivateKey::Dsa(der::element(SEQUENCE, &parts.concat())))
    }

    pub(super) fn to_pem(&self) -> Result<String, CallError> {
        Ok(match self {
            PrivateKey::Rsa(key) => match key.to_pkcs1_der() {
                Ok(data) => der::to_pem("RSA PRIVATE KEY", data.as_bytes()),
                Err(e) => return fail(format!("error encoding rsa key: {e}")),
            },
            PrivateKey::Ec(key) => {
                let oid = der::element(0xa0, &der::element(OID, OID_P256));
                let public = der::element(0xa1, &der::bits(&ec_point(key)));
                let secret = der::element(OCTET_STRING, &key.to_bytes());
                der::to_pem("EC PRIVATE KEY", &der::sequence(&[&der::unsigned(&[1]), &secret, &oid, &public]))
            }
            PrivateKey::Ed25519(key) => {
                let algorithm = der::sequence(&[&der::element(OID, OID_ED25519)]);
                let inner = der::element(OCTET_STRING, &der::element(OCTET_STRING, &key.to_bytes()));
                der::to_pem("PRIVATE KEY", &der::sequence(&[&der::unsigned(&[0]), &algorithm, &inner]))
            }
            PrivateKey::Dsa(data) => der::to_pem("DSA PRIVATE KEY", data),
        })
    }

    /// Sprig's `parsePrivateKeyPEM`.
    pub(super) fn from_pem(text: &[u8]) -> Result<Self, CallError> {
        let Some((label, data)) = der::from_pem(text) else { return fail("no PEM data in input") };
        match label.as_str() {
            "PRIVATE KEY" => {
                pkcs8(&data).ok_or_else(|| CallError::new("decoding PEM as PKCS#8: unsupported key"))
            }
            "RSA PRIVATE KEY" => rsa_key(&data).ok_or_else(|| {
                CallError::new("parsing RSA private key from PEM: malformed or too large a key")
            }),
            "EC PRIVATE KEY" => ec_key(&data, None).ok_or_else(|| {
                CallError::new("parsing EC private key from PEM: malformed key, or a curve other than P-256")
            }),
            "DSA PRIVATE KEY" => match der::expect(&data, SEQUENCE) {
                Some(_) => Ok(PrivateKey::Dsa(data)),
                None => fail("parsing DSA private key from PEM: malformed key"),
            },
            other if other.ends_with(" PRIVATE KEY") => fail(format!("invalid private key type {other}")),
            other => fail(format!("no private key data in PEM block of type {other}")),
        }
    }

    /// The public key as in certificates, and the bytes that the key identifier is computed from.
    pub(super) fn public(&self) -> Result<(Vec<u8>, Vec<u8>), CallError> {
        let (algorithm, key) = match self {
            PrivateKey::Rsa(key) => match key.to_public_key().to_pkcs1_der() {
                Ok(data) => {
                    (der::sequence(&[&der::element(OID, OID_RSA), &[5, 0]]), data.as_bytes().to_vec())
                }
                Err(e) => return fail(format!("error encoding rsa key: {e}")),
            },
            PrivateKey::Ec(key) => {
                (der::sequence(&[&der::element(OID, OID_EC), &der::element(OID, OID_P256)]), ec_point(key))
            }
            PrivateKey::Ed25519(key) => {
                (der::sequence(&[&der::element(OID, OID_ED25519)]), key.verifying_key().to_bytes().to_vec())
            }
            PrivateKey::Dsa(_) => {
                return fail("error creating certificate: x509: unsupported public key type: *dsa.PublicKey");
            }
        };
        Ok((der::sequence(&[&algorithm, &der::bits(&key)]), key))
    }

    /// The algorithm identifier of this key's signatures.
    pub(super) fn signature_algorithm(&self) -> Vec<u8> {
        match self {
            PrivateKey::Rsa(_) => der::sequence(&[&der::element(OID, OID_RSA_SHA256), &[5, 0]]),
            PrivateKey::Ec(_) => der::sequence(&[&der::element(OID, OID_ECDSA_SHA256)]),
            PrivateKey::Ed25519(_) | PrivateKey::Dsa(_) => der::sequence(&[&der::element(OID, OID_ED25519)]),
        }
    }

    pub(super) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, CallError> {
        match self {
            PrivateKey::Rsa(key) => key
                .sign(rsa::Pkcs1v15Sign::new::<Sha256>(), &Sha256::digest(message))
                .map_err(|e| CallError::new(format!("error creating certificate: {e}"))),
            PrivateKey::Ec(key) => {
                let signature: p256::ecdsa::Signature = p256::ecdsa::SigningKey::from(key).sign(message);
                Ok(signature.to_der().as_bytes().to_vec())
            }
            PrivateKey::Ed25519(key) => Ok(key.sign(message).to_bytes().to_vec()),
            PrivateKey::Dsa(_) => fail(
                "error creating certificate: x509: certificate private key does not implement crypto.Signer",
            ),
        }
    }
}

/// The uncompressed public point.
fn ec_point(key: &p256::SecretKey) -> Vec<u8> {
    key.public_key().to_sec1_bytes().to_vec()
}

fn rsa_key(data: &[u8]) -> Option<PrivateKey> {
    let key = RsaPrivateKey::from_pkcs1_der(data).ok()?;
    (key.n().bits() as usize <= MAX_RSA_BITS).then(|| PrivateKey::Rsa(Box::new(key)))
}

fn ec_key(data: &[u8], curve: Option<&[u8]>) -> Option<PrivateKey> {
    let parts = der::all(der::expect(data, SEQUENCE)?.content)?;
    let secret = parts.get(1).filter(|p| p.tag == OCTET_STRING)?;
    let named =
        parts.iter().find(|p| p.tag == 0xa0).and_then(|p| der::expect(p.content, OID)).map(|o| o.content);
    if named.or(curve) != Some(OID_P256) {
        return None;
    }
    p256::SecretKey::from_slice(secret.content).ok().map(PrivateKey::Ec)
}

fn pkcs8(data: &[u8]) -> Option<PrivateKey> {
    let parts = der::all(der::expect(data, SEQUENCE)?.content)?;
    let algorithm = der::all(parts.get(1)?.content)?;
    let inner = parts.get(2).filter(|p| p.tag == OCTET_STRING)?.content;
    match algorithm.first()?.content {
        OID_RSA => rsa_key(inner),
        OID_EC => ec_key(inner, algorithm.get(1).map(|p| p.content)),
        OID_ED25519 => {
            let seed: [u8; 32] = der::expect(inner, OCTET_STRING)?.content.try_into().ok()?;
            Some(PrivateKey::Ed25519(Box::new(ed25519_dalek::SigningKey::from_bytes(&seed))))
        }
        _ => None,
    }
}
