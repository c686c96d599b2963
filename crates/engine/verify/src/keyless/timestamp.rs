//! Signed timestamps (RFC 3161): an authority certifies that it saw a signature at some time.

use sha2::{Digest, Sha256, Sha384, Sha512};

use super::certificate::{self, Certificate};
use super::trust_root::TrustRoot;
use crate::PublicKey;
use crate::public_key::{EcSignature, Hash, element};

const SIGNED_DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 7, 2];
const TIMESTAMP: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 16, 1, 4];
const CONTENT_TYPE: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 3];
const MESSAGE_DIGEST: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 4];

/// Returns the time at which an authority of the root saw this message.
pub(super) fn verify(response: &[u8], message: &[u8], root: &TrustRoot) -> Result<u64, &'static str> {
    let token = Token::read(response).ok_or("a timestamp is malformed")?;
    let (hash, imprint, when) = token.content().ok_or("a timestamp is malformed")?;
    if digest(hash, message) != imprint {
        return Err("a timestamp is about another signature");
    }
    token.attributes_hold().ok_or("a timestamp is not about its content")?;
    let embedded: Vec<Certificate> =
        token.certificates.iter().filter_map(|der| Certificate::parse(der).ok()).collect();
    let good = root.timestamp_signers(&embedded, when).any(|signer| token.made_by(&signer.key));
    if good { Ok(when) } else { Err("no timestamp authority of the trusted root signed a timestamp") }
}

struct Token<'a> {
    /// `TSTInfo`.
    info: &'a [u8],
    certificates: Vec<&'a [u8]>,
    hash: Hash,
    /// Signed attributes, without their DER header.
    attributes: &'a [u8],
    signature: &'a [u8],
}

/// SHA-2 by its OID.
fn hash(algorithm: &[u8]) -> Option<Hash> {
    let mut input = algorithm;
    match element(&mut input, 6)? {
        [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1] => Some(Hash::Sha256),
        [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 2] => Some(Hash::Sha384),
        [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 3] => Some(Hash::Sha512),
        _ => None,
    }
}

fn digest(hash: Hash, bytes: &[u8]) -> Vec<u8> {
    match hash {
        Hash::Sha384 => Sha384::digest(bytes).to_vec(),
        Hash::Sha512 => Sha512::digest(bytes).to_vec(),
        _ => Sha256::digest(bytes).to_vec(),
    }
}

impl<'a> Token<'a> {
    fn read(response: &'a [u8]) -> Option<Self> {
        let mut input = response;
        let mut outside = element(&mut input, 0x30)?;
        let mut status = element(&mut outside, 0x30)?;
        // Granted, with or without modifications.
        if !matches!(element(&mut status, 2)?, [0 | 1]) {
            return None;
        }
        let mut content = element(&mut outside, 0x30)?;
        if element(&mut content, 6)? != SIGNED_DATA {
            return None;
        }
        let mut explicit = element(&mut content, 0xa0)?;
        let mut data = element(&mut explicit, 0x30)?;
        element(&mut data, 2)?;
        element(&mut data, 0x31)?;
        let mut inner = element(&mut data, 0x30)?;
        if element(&mut inner, 6)? != TIMESTAMP {
            return None;
        }
        let mut explicit = element(&mut inner, 0xa0)?;
        let info = element(&mut explicit, 4)?;
        let mut certificates = Vec::new();
        if let Some(mut set) = element(&mut data, 0xa0) {
            while !set.is_empty() && certificates.len() < 10 {
                certificates.push(certificate::any(&mut set)?);
            }
        }
        _ = element(&mut data, 0xa1);
        let mut signers = element(&mut data, 0x31)?;
        let mut signer = element(&mut signers, 0x30)?;
        element(&mut signer, 2)?;
        certificate::any(&mut signer)?;
        let hash = hash(element(&mut signer, 0x30)?)?;
        let attributes = element(&mut signer, 0xa0)?;
        element(&mut signer, 0x30)?;
        let signature = element(&mut signer, 4)?;
        Some(Self { info, certificates, hash, attributes, signature })
    }

    /// Hash algorithm, digest and time of the timestamp.
    fn content(&self) -> Option<(Hash, Vec<u8>, u64)> {
        let mut input = self.info;
        let mut info = element(&mut input, 0x30)?;
        element(&mut info, 2)?;
        element(&mut info, 6)?;
        let mut imprint = element(&mut info, 0x30)?;
        let hash = hash(element(&mut imprint, 0x30)?)?;
        let digest = element(&mut imprint, 4)?.to_vec();
        element(&mut info, 2)?;
        Some((hash, digest, certificate::time(&mut info)?))
    }

    /// Checks that the signed attributes contain the content type and its digest.
    fn attributes_hold(&self) -> Option<()> {
        let (mut kind, mut content) = (None, None);
        let mut rest = self.attributes;
        while !rest.is_empty() {
            let mut attribute = element(&mut rest, 0x30)?;
            let name = element(&mut attribute, 6)?;
            let mut values = element(&mut attribute, 0x31)?;
            match name {
                CONTENT_TYPE if kind.is_none() => kind = Some(element(&mut values, 6)?),
                MESSAGE_DIGEST if content.is_none() => content = Some(element(&mut values, 4)?),
                CONTENT_TYPE | MESSAGE_DIGEST => return None,
                _ => {}
            }
        }
        (kind? == TIMESTAMP && content? == digest(self.hash, self.info)).then_some(())
    }

    fn made_by(&self, key: &PublicKey) -> bool {
        // They are signed as a SET, regardless of their tag.
        let signed = certificate::wrap(0x31, self.attributes);
        let digest = digest(self.hash, &signed);
        key.made_ec(&digest, EcSignature::Der(self.signature))
            || key.made_rsa(self.hash, &digest, self.signature)
            || key.made_ed25519(&signed, self.signature)
    }
}
