//! Identities that may sign.

use regex::Regex;

use super::KeylessError;
use super::certificate::Certificate;
use crate::public_key::element;

/// OID of the issuer as plain text, in older certificates.
const ISSUER: &[u8] = &[0x2b, 6, 1, 4, 1, 0x83, 0xbf, 0x30, 1, 1];
/// OID of the issuer in DER.
const ISSUER_V2: &[u8] = &[0x2b, 6, 1, 4, 1, 0x83, 0xbf, 0x30, 1, 8];

/// Pairs of regular expressions of which one must match; without any pair, every identity is accepted.
#[derive(Clone, Debug, Default)]
pub struct Identities(Vec<(Regex, Regex)>);

/// Invalid regular expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no regular expression")]
pub struct IdentityError(String);

impl Identities {
    /// Compiles pairs of issuer and subject.
    pub fn new<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, IdentityError> {
        let compile = |text: &str| {
            fl_go::regexp::compile(text).map_err(|_| IdentityError(text.chars().take(100).collect()))
        };
        let pairs = pairs.into_iter().map(|(issuer, subject)| Ok((compile(issuer)?, compile(subject)?)));
        Ok(Self(pairs.collect::<Result<_, _>>()?))
    }

    pub(super) fn check(&self, certificate: &Certificate) -> Result<(), KeylessError> {
        let subjects = certificate.subjects();
        let issuer = issuer(certificate).unwrap_or_default();
        let fits = |(wanted_issuer, wanted_subject): &(Regex, Regex)| {
            wanted_issuer.is_match(&issuer) && subjects.iter().any(|s| wanted_subject.is_match(s))
        };
        if subjects.is_empty() || (!self.0.is_empty() && !self.0.iter().any(fits)) {
            let subjects = subjects.join(" ").chars().take(500).collect();
            return Err(KeylessError::Identity { subjects, issuer });
        }
        Ok(())
    }
}

fn issuer(certificate: &Certificate) -> Option<String> {
    let newer = certificate.extension(ISSUER_V2).and_then(|mut value| element(&mut value, 0x0c));
    let bytes = newer.or_else(|| certificate.extension(ISSUER))?;
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}
