//! Signed certificate timestamps (RFC 6962): a log's promise to publish a certificate, embedded in it.

use sha2::{Digest, Sha256};

use super::certificate::Certificate;
use super::trust_root::TrustRoot;
use crate::openpgp_packet::big_endian;
use crate::public_key::element;

const EMBEDDED: &[u8] = &[0x2b, 6, 1, 4, 1, 0xd6, 0x79, 2, 4, 2];

/// Verifies that one of the SCTs is by a log of the root.
pub(super) fn verify(
    certificate: &Certificate,
    issuer: &Certificate,
    root: &TrustRoot,
) -> Result<(), &'static str> {
    let mut value = certificate.extension(EMBEDDED).ok_or("it has none at all")?;
    let list = element(&mut value, 4).ok_or("the list is malformed")?;
    let list = sized(&mut &*list, 2).ok_or("the list is malformed")?;
    // The log signed the certificate before the SCT was embedded.
    let content = certificate.without(EMBEDDED);
    let issuer_key = Sha256::digest(&issuer.key_info);
    let mut rest = list;
    let mut problem = "the list is empty";
    while !rest.is_empty() {
        let one = sized(&mut rest, 2).ok_or("the list is malformed")?;
        match promise(one, &content, &issuer_key, root) {
            Some(true) => return Ok(()),
            Some(false) => problem = "no log of the trusted root made the signature",
            None => return Err("a timestamp is malformed"),
        }
    }
    Err(problem)
}

/// Bytes with a length prefix.
fn sized<'a>(input: &mut &'a [u8], digits: usize) -> Option<&'a [u8]> {
    let (length, rest) = input.split_at_checked(digits)?;
    let (content, rest) = rest.split_at_checked(big_endian(length))?;
    *input = rest;
    Some(content)
}

fn promise(sct: &[u8], content: &[u8], issuer_key: &[u8], root: &TrustRoot) -> Option<bool> {
    let (head, mut rest) = sct.split_at_checked(1 + 32 + 8)?;
    let (version, id, timestamp) = (head[0], &head[1..33], &head[33..]);
    let extensions = sized(&mut rest, 2)?;
    let (algorithm, mut rest) = rest.split_at_checked(2)?;
    let signature = sized(&mut rest, 2)?;
    // SHA-256 with RSA or ECDSA.
    if version != 0 || !matches!(algorithm, [4, 1 | 3]) {
        return Some(false);
    }
    let length = u32::try_from(content.len()).ok()?.to_be_bytes();
    let extension_length = u16::try_from(extensions.len()).ok()?.to_be_bytes();
    let signed = [
        [0, 0].as_slice(),
        timestamp,
        &[0, 1],
        issuer_key,
        &length[1..],
        content,
        &extension_length,
        extensions,
    ]
    .concat();
    let log = root.certificate_log(id);
    let milliseconds = timestamp.iter().fold(0u64, |n, b| n << 8 | u64::from(*b));
    Some(log.is_some_and(|log| log.valid_at(milliseconds / 1000) && log.key.verify(&signed, signature)))
}
