//! X.509 certificates (RFC 5280), limited to code signing chains.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::KeylessError;
use crate::PublicKey;
use crate::public_key::{EcSignature, Hash, element};

const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
const ALTERNATIVE_NAME: &[u8] = &[0x55, 0x1d, 0x11];
const CODE_SIGNING: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 3];
const TIME_STAMPING: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 8];
/// Fulcio's OID for user names without a standard type.
const OTHER_NAME: &[u8] = &[0x2b, 6, 1, 4, 1, 0x83, 0xbf, 0x30, 1, 7];

/// A certificate.
#[derive(Clone, Debug)]
pub(crate) struct Certificate {
    /// The signed part, with its DER header.
    signed: Vec<u8>,
    algorithm: Vec<u8>,
    signature: Vec<u8>,
    issuer: Vec<u8>,
    subject: Vec<u8>,
    not_before: u64,
    not_after: u64,
    pub(super) key: PublicKey,
    /// `SubjectPublicKeyInfo`, with its DER header.
    pub(super) key_info: Vec<u8>,
    extensions: Vec<Extension>,
    /// The parts of the signed content before the extensions.
    before_extensions: Vec<u8>,
}

#[derive(Clone, Debug)]
struct Extension {
    name: Vec<u8>,
    critical: bool,
    value: Vec<u8>,
    /// The whole certificate.
    whole: Vec<u8>,
}

/// The first certificate of a PEM text.
pub(super) fn from_pem(text: &str) -> Option<Vec<u8>> {
    let body = text.split_once("-----BEGIN CERTIFICATE-----")?.1.split_once("-----END CERTIFICATE-----")?.0;
    let body: String = body.chars().filter(|c| !c.is_whitespace()).collect();
    STANDARD.decode(body).ok()
}

/// The next element of any type, with its DER header.
pub(super) fn any<'a>(input: &mut &'a [u8]) -> Option<&'a [u8]> {
    let start = *input;
    let kind = *start.first()?;
    element(input, kind)?;
    Some(&start[..start.len() - input.len()])
}

/// The next element of this type, with its DER header.
fn whole<'a>(input: &mut &'a [u8], kind: u8) -> Option<&'a [u8]> {
    (input.first() == Some(&kind)).then(|| any(input))?
}

/// Encodes an element.
pub(super) fn wrap(kind: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let mut out = vec![kind];
    if let Some(short) = u8::try_from(length).ok().filter(|l| *l < 0x80) {
        out.push(short);
    } else {
        let bytes = length.to_be_bytes();
        let digits = &bytes[bytes.iter().position(|b| *b != 0).unwrap_or(bytes.len() - 1)..];
        out.push(0x80 | u8::try_from(digits.len()).unwrap_or(8));
        out.extend_from_slice(digits);
    }
    out.extend_from_slice(content);
    out
}

impl Certificate {
    pub(super) fn parse(der: &[u8]) -> Result<Self, KeylessError> {
        Self::read(der)
            .ok_or(KeylessError::Certificate("it is malformed, or of a kind that is not supported"))
    }

    fn read(der: &[u8]) -> Option<Self> {
        let mut input = der;
        let mut outside = element(&mut input, 0x30)?;
        if !input.is_empty() {
            return None;
        }
        let signed = whole(&mut outside, 0x30)?;
        let algorithm = element(&mut outside, 0x30)?.to_vec();
        let (&0, signature) = element(&mut outside, 3)?.split_first()? else { return None };
        let mut inside = signed;
        let content = element(&mut inside, 0x30)?;
        let mut rest = content;
        // Version 3, which extensions require.
        if element(&mut rest, 0xa0)? != [2, 1, 2] {
            return None;
        }
        element(&mut rest, 2)?;
        if element(&mut rest, 0x30)? != algorithm {
            return None;
        }
        let issuer = whole(&mut rest, 0x30)?.to_vec();
        let mut validity = element(&mut rest, 0x30)?;
        let (not_before, not_after) = (time(&mut validity)?, time(&mut validity)?);
        let subject = whole(&mut rest, 0x30)?.to_vec();
        let key_info = whole(&mut rest, 0x30)?.to_vec();
        for unique in [0x81, 0x82] {
            _ = whole(&mut rest, unique);
        }
        let before = content.len() - rest.len();
        let mut list = element(&mut rest, 0xa3)?;
        let mut list = element(&mut list, 0x30)?;
        let mut extensions = Vec::new();
        while !list.is_empty() {
            let whole = whole(&mut list, 0x30)?;
            let mut input = whole;
            let mut fields = element(&mut input, 0x30)?;
            let name = element(&mut fields, 6)?.to_vec();
            let critical = element(&mut fields, 1).is_some_and(|b| b != [0]);
            let value = element(&mut fields, 4)?.to_vec();
            if extensions.iter().any(|e: &Extension| e.name == name) {
                return None;
            }
            extensions.push(Extension { name, critical, value, whole: whole.to_vec() });
        }
        Some(Self {
            signed: signed.to_vec(),
            algorithm,
            signature: signature.to_vec(),
            issuer,
            subject,
            not_before,
            not_after,
            key: PublicKey::from_spki(&key_info).ok()?,
            key_info,
            extensions,
            before_extensions: content[..before].to_vec(),
        })
    }

    pub(super) fn extension(&self, name: &[u8]) -> Option<&[u8]> {
        self.extensions.iter().find(|e| e.name == name).map(|e| e.value.as_slice())
    }

    /// The content that was signed before one extension was added.
    pub(super) fn without(&self, name: &[u8]) -> Vec<u8> {
        let kept: Vec<u8> =
            self.extensions.iter().filter(|e| e.name != name).flat_map(|e| e.whole.iter().copied()).collect();
        let list = wrap(0xa3, &wrap(0x30, &kept));
        wrap(0x30, &[self.before_extensions.as_slice(), &list].concat())
    }

    pub(super) fn valid_at(&self, when: u64) -> bool {
        (self.not_before..=self.not_after).contains(&when)
    }

    /// Whether it is a CA that may sign certificates.
    fn is_authority(&self) -> bool {
        let authority = || {
            let mut value = self.extension(BASIC_CONSTRAINTS)?;
            let mut fields = element(&mut value, 0x30)?;
            Some(element(&mut fields, 1)? != [0])
        };
        // The sixth bit; the first byte is the number of unused bits.
        let signs = self.extension(KEY_USAGE).is_none_or(|mut value| {
            element(&mut value, 3).and_then(|bits| bits.get(1)).is_some_and(|b| b & 4 != 0)
        });
        authority().unwrap_or(false) && signs
    }

    /// Path length constraint.
    fn path_length(&self) -> Option<usize> {
        let mut value = self.extension(BASIC_CONSTRAINTS)?;
        let mut fields = element(&mut value, 0x30)?;
        element(&mut fields, 1)?;
        Some(crate::openpgp_packet::big_endian(element(&mut fields, 2)?))
    }

    pub(super) fn issued(&self, other: &Certificate) -> bool {
        self.subject == other.issuer
            && self.is_authority()
            && verify(&self.key, &other.algorithm, &other.signed, &other.signature)
    }

    /// Whether the path length constraint allows this many CAs below it.
    pub(super) fn allows(&self, below: usize) -> bool {
        self.path_length().is_none_or(|limit| below <= limit)
    }

    /// Checks that it is an end-entity certificate for code signing without unknown critical extensions.
    pub(super) fn signs_code(&self) -> Result<(), &'static str> {
        const KNOWN: [&[u8]; 4] = [BASIC_CONSTRAINTS, KEY_USAGE, EXTENDED_KEY_USAGE, ALTERNATIVE_NAME];
        if self.extensions.iter().any(|e| e.critical && !KNOWN.contains(&e.name.as_slice())) {
            return Err("it has a critical extension that is not known");
        }
        if self.is_authority() {
            return Err("it is an authority itself");
        }
        if self.is_for(CODE_SIGNING) { Ok(()) } else { Err("it is not for signing code") }
    }

    fn is_for(&self, purpose: &[u8]) -> bool {
        let listed = || {
            let mut value = self.extension(EXTENDED_KEY_USAGE)?;
            let mut list = element(&mut value, 0x30)?;
            while !list.is_empty() {
                if element(&mut list, 6)? == purpose {
                    return Some(());
                }
            }
            None
        };
        listed().is_some()
    }

    /// Whether it is an end-entity certificate for timestamping.
    pub(super) fn signs_timestamps(&self) -> bool {
        !self.is_authority() && self.is_for(TIME_STAMPING)
    }

    /// Subject alternative names: mail addresses, URIs, DNS names, and user names.
    pub(super) fn subjects(&self) -> Vec<String> {
        let mut found = Vec::new();
        let Some(mut value) = self.extension(ALTERNATIVE_NAME) else { return found };
        let Some(mut list) = element(&mut value, 0x30) else { return found };
        while let Some(one) = any(&mut list) {
            let (kind, mut input) = (one[0], one);
            let Some(content) = element(&mut input, kind) else { break };
            let text = match kind {
                0x81 | 0x82 | 0x86 => std::str::from_utf8(content).ok(),
                0xa0 => other_name(content),
                _ => None,
            };
            found.extend(text.map(str::to_owned));
        }
        found
    }
}

fn other_name(mut content: &[u8]) -> Option<&str> {
    if element(&mut content, 6)? != OTHER_NAME {
        return None;
    }
    let mut value = element(&mut content, 0xa0)?;
    std::str::from_utf8(element(&mut value, 0x0c)?).ok()
}

/// Verifies a signature by the OID of its algorithm.
pub(super) fn verify(key: &PublicKey, algorithm: &[u8], message: &[u8], signature: &[u8]) -> bool {
    let mut input = algorithm;
    let name = element(&mut input, 6).unwrap_or_default();
    match name {
        [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, kind] => {
            hash(*kind, 2).is_some_and(|h| key.made_ec(&h.of(message), EcSignature::Der(signature)))
        }
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, kind] => {
            hash(*kind, 11).is_some_and(|h| key.made_rsa(h, &h.of(message), signature))
        }
        [0x2b, 0x65, 0x70] => key.made_ed25519(message, signature),
        _ => false,
    }
}

fn hash(kind: u8, first: u8) -> Option<Hash> {
    match kind.checked_sub(first)? {
        0 => Some(Hash::Sha256),
        1 => Some(Hash::Sha384),
        2 => Some(Hash::Sha512),
        _ => None,
    }
}

/// `YYMMDDHHMMSSZ`, or with a four-digit year and a fraction.
pub(super) fn time(input: &mut &[u8]) -> Option<u64> {
    let (text, year) = match input.first()? {
        0x17 => {
            let text = element(input, 0x17)?;
            let year = number(text.get(..2)?)?;
            (text.get(2..)?, if year < 50 { 2000 + year } else { 1900 + year })
        }
        _ => {
            let text = element(input, 0x18)?;
            (text.get(4..)?, number(text.get(..4)?)?)
        }
    };
    let [rest @ .., b'Z'] = text else { return None };
    // Timestamps may have a fraction.
    let rest = rest.split(|b| *b == b'.').next()?;
    let parts: Vec<u64> = rest.chunks(2).map(number).collect::<Option<_>>()?;
    let [month, day, hour, minute, second] = *parts else { return None };
    seconds([year, month, day, hour, minute, second])
}

fn number(digits: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(digits).ok()?;
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Unix time; `None` before 1970.
pub(super) fn seconds([year, month, day, hour, minute, second]: [u64; 6]) -> Option<u64> {
    let good = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !good {
        return None;
    }
    let number = |n: u64| i64::try_from(n).ok();
    let days = fl_types::days_of_date(number(year)?, number(month)?, number(day)?);
    let days = u64::try_from(days).ok()?;
    Some(days * 86_400 + hour * 3600 + minute * 60 + second)
}

/// `2021-01-12T11:53:27Z`, with an optional fraction or offset.
pub(super) fn rfc3339(text: &str) -> Option<u64> {
    let bytes = text.as_bytes();
    let at = |from: usize, to: usize| number(bytes.get(from..to)?);
    let shape =
        bytes.len() >= 20 && bytes[4] == b'-' && bytes[7] == b'-' && bytes[10] == b'T' && bytes[13] == b':';
    if !shape || bytes[16] != b':' {
        return None;
    }
    let moment = seconds([at(0, 4)?, at(5, 7)?, at(8, 10)?, at(11, 13)?, at(14, 16)?, at(17, 19)?])?;
    let rest = text[19..].trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
    match rest.as_bytes() {
        b"Z" => Some(moment),
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
            let offset = number(&[*h1, *h2])? * 3600 + number(&[*m1, *m2])? * 60;
            if *sign == b'+' { moment.checked_sub(offset) } else { Some(moment + offset) }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_parsed() {
        assert_eq!(rfc3339("2021-01-12T11:53:27.000Z"), Some(1_610_452_407));
        assert_eq!(rfc3339("2021-01-12T13:53:27+02:00"), Some(1_610_452_407));
        assert_eq!(rfc3339("2000-02-29T00:00:00Z"), Some(951_782_400));
        assert_eq!(rfc3339("1970-01-01T00:00:00Z"), Some(0));
        for bad in [
            "",
            "2021-13-12T11:53:27Z",
            "2021-01-12 11:53:27Z",
            "2021-01-12T11:53:27",
            "\u{e9}021-01-12T11:53:27Z",
        ] {
            assert_eq!(rfc3339(bad), None, "{bad}");
        }
        let utc = wrap(0x17, b"210112115327Z");
        assert_eq!(time(&mut utc.as_slice()), Some(1_610_452_407));
        let long = wrap(0x18, b"20210112115327Z");
        assert_eq!(time(&mut long.as_slice()), Some(1_610_452_407));
    }

    #[test]
    fn lengths_are_validated() {
        for length in [0, 1, 127, 128, 255, 256, 70_000] {
            let content = vec![7; length];
            let whole = wrap(4, &content);
            let mut input = whole.as_slice();
            assert_eq!(element(&mut input, 4), Some(content.as_slice()));
            assert!(input.is_empty());
        }
    }
}
