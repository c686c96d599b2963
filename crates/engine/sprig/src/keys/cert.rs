//! X.509 certificates with the fields that Sprig's templates have.

use std::net::IpAddr;

use fl_gotemplate::{CallError, Value, fmt};
use sha2::{Digest, Sha256};

use super::HostRng;
use super::der::{
    self, GENERALIZED_TIME, OCTET_STRING, OID, PRINTABLE_STRING, SEQUENCE, SET, UTC_TIME, UTF8_STRING,
};
use super::key::PrivateKey;
use crate::dates::utc_digits;

/// Content of a certificate.
pub(super) struct Request<'r> {
    pub(super) common_name: &'r [u8],
    pub(super) ips: Vec<IpAddr>,
    pub(super) names: Vec<Vec<u8>>,
    pub(super) days: i64,
    pub(super) authority: bool,
}

/// The issuer of a certificate, parsed from its own certificate.
pub(super) struct Issuer {
    subject: Vec<u8>,
    public_key: Vec<u8>,
    key_id: Option<Vec<u8>>,
}

const OID_COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const OID_KEY_ID: &[u8] = &[0x55, 0x1d, 0x0e];
const OID_KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];
const OID_ALT_NAMES: &[u8] = &[0x55, 0x1d, 0x11];
const OID_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];
const OID_AUTHORITY: &[u8] = &[0x55, 0x1d, 0x23];
const OID_EXTENDED_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
const OID_SERVER: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01];
const OID_CLIENT: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x02];

impl Issuer {
    /// Parses the needed parts of a certificate; `None` if it is malformed.
    pub(super) fn read(data: &[u8]) -> Option<Issuer> {
        let certificate = der::expect(data, SEQUENCE)?;
        let body = der::expect(certificate.content, SEQUENCE)?;
        let mut parts = der::all(body.content)?;
        if parts.first()?.tag == 0xa0 {
            parts.remove(0);
        }
        let subject = parts.get(4).filter(|p| p.tag == SEQUENCE)?.whole.to_vec();
        let public_key = parts.get(5).filter(|p| p.tag == SEQUENCE)?.whole.to_vec();
        let mut key_id = None;
        if let Some(extensions) = parts.iter().find(|p| p.tag == 0xa3) {
            for extension in der::all(der::expect(extensions.content, SEQUENCE)?.content)? {
                let fields = der::all(extension.content)?;
                if fields.first()?.content == OID_KEY_ID {
                    key_id = Some(der::expect(fields.last()?.content, OCTET_STRING)?.content.to_vec());
                }
            }
        }
        Some(Issuer { subject, public_key, key_id })
    }
}

fn name(common_name: &[u8]) -> Vec<u8> {
    if common_name.is_empty() {
        return der::sequence(&[]);
    }
    let printable = common_name.iter().all(|b| b.is_ascii_alphanumeric() || b" '()+,-./:=?".contains(b));
    let tag = if printable { PRINTABLE_STRING } else { UTF8_STRING };
    let attribute = der::sequence(&[&der::element(OID, OID_COMMON_NAME), &der::element(tag, common_name)]);
    der::sequence(&[&der::element(SET, &attribute)])
}

fn encode_time(unix: i64) -> Vec<u8> {
    let digits = utc_digits(unix);
    let year: i64 = digits[..4].parse().unwrap_or(0);
    if (1950..2050).contains(&year) {
        der::element(UTC_TIME, format!("{}Z", &digits[2..]).as_bytes())
    } else {
        der::element(GENERALIZED_TIME, format!("{digits}Z").as_bytes())
    }
}

fn extension(oid: &[u8], critical: bool, content: &[u8]) -> Vec<u8> {
    let flag: &[u8] = if critical { &[0x01, 0x01, 0xff] } else { &[] };
    der::sequence(&[&der::element(OID, oid), flag, &der::element(OCTET_STRING, content)])
}

fn extensions(request: &Request<'_>, key: &[u8], authority_key: Option<&[u8]>) -> Vec<u8> {
    // Digital signature and key encipherment; a CA also signs certificates.
    let usage: &[u8] = if request.authority { &[0x03, 0x02, 0x02, 0xa4] } else { &[0x03, 0x02, 0x05, 0xa0] };
    let extended = der::sequence(&[&der::element(OID, OID_SERVER), &der::element(OID, OID_CLIENT)]);
    let constraints = der::element(SEQUENCE, if request.authority { &[0x01, 0x01, 0xff] } else { &[] });
    let mut all = vec![
        extension(OID_KEY_USAGE, true, usage),
        extension(OID_EXTENDED_USAGE, false, &extended),
        extension(OID_CONSTRAINTS, true, &constraints),
    ];
    if request.authority {
        let id = &Sha256::digest(key)[..20];
        all.push(extension(OID_KEY_ID, false, &der::element(OCTET_STRING, id)));
    }
    if let Some(id) = authority_key {
        all.push(extension(OID_AUTHORITY, false, &der::sequence(&[&der::element(0x80, id)])));
    }
    let mut alternatives = Vec::new();
    for dns in &request.names {
        alternatives.extend(der::element(0x82, dns));
    }
    for ip in &request.ips {
        match ip {
            IpAddr::V4(ip) => alternatives.extend(der::element(0x87, &ip.octets())),
            IpAddr::V6(ip) => alternatives.extend(der::element(0x87, &ip.octets())),
        }
    }
    if !alternatives.is_empty() {
        let content = der::element(SEQUENCE, &alternatives);
        all.push(extension(OID_ALT_NAMES, request.common_name.is_empty(), &content));
    }
    der::element(SEQUENCE, &all.concat())
}

/// Creates a certificate for `key`, signed by `signer`; without an issuer it is self-signed.
pub(super) fn create(
    rng: &mut HostRng,
    now: i64,
    request: &Request<'_>,
    key: &PrivateKey,
    issuer: Option<(&Issuer, &PrivateKey)>,
) -> Result<String, CallError> {
    let (public, key_bytes) = key.public()?;
    let subject = name(request.common_name);
    let (issuer_name, signer, authority_key) = match issuer {
        None => (subject.clone(), key, None),
        Some((issuer, signer)) => {
            if signer.public()?.0 != issuer.public_key {
                return Err(CallError::new(
                    "error creating certificate: x509: provided PrivateKey doesn't match parent's PublicKey",
                ));
            }
            let id = issuer.key_id.as_deref().filter(|_| issuer.subject != subject);
            (issuer.subject.clone(), signer, id)
        }
    };
    let mut serial = rng.array::<16>();
    // A leading zero bit and a set last bit: never negative, never zero.
    serial[0] &= 0x7f;
    serial[15] |= 1;
    let end = now.saturating_add(request.days.clamp(-106_751, 106_751) * 86_400);
    let algorithm = signer.signature_algorithm();
    let body = der::sequence(&[
        &der::element(0xa0, &der::unsigned(&[2])),
        &der::unsigned(&serial),
        &algorithm,
        &issuer_name,
        &der::sequence(&[&encode_time(now), &encode_time(end)]),
        &subject,
        &public,
        &der::element(0xa3, &extensions(request, &key_bytes, authority_key)),
    ]);
    let signature = signer.sign(&body)?;
    Ok(der::to_pem("CERTIFICATE", &der::sequence(&[&body, &algorithm, &der::bits(&signature)])))
}

/// IP addresses of a list argument.
pub(super) fn addresses(items: &[Value]) -> Result<Vec<IpAddr>, CallError> {
    items
        .iter()
        .map(|item| match item {
            Value::Str(text) => text
                .as_utf8()
                .and_then(|t| t.parse().ok())
                .ok_or_else(|| CallError::new(format!("error parsing ip: {text}"))),
            other => {
                Err(CallError::new(format!("error parsing ip: {} is not a string", fmt::display(other))))
            }
        })
        .collect()
}

/// DNS names of a list argument.
pub(super) fn dns_names(items: &[Value]) -> Result<Vec<Vec<u8>>, CallError> {
    items
        .iter()
        .map(|item| match item {
            Value::Str(text) => Ok(text.to_vec()),
            other => Err(CallError::new(format!(
                "error processing alternate dns name: {} is not a string",
                fmt::display(other)
            ))),
        })
        .collect()
}
