//! Trusted CAs and logs, from Sigstore's `trusted_root.json`.

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::certificate::{Certificate, rfc3339};
use super::decode;
use crate::PublicKey;

/// Maximum entries of one list.
const MAX_ENTRIES: usize = 100;

/// Error of parsing a trusted root.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TrustRootError {
    #[error("it is not JSON")]
    Json,
    #[error("unsupported TrustedRoot media type: {0}")]
    MediaType(String),
    #[error("an entry of {0} cannot be read")]
    Entry(&'static str),
    #[error("no transparency log entries found in trusted root")]
    NoLogs,
    #[error("no certificate authorities found in trusted root")]
    NoAuthorities,
}

/// Trusted CAs and logs.
#[derive(Clone, Debug)]
pub struct TrustRoot {
    authorities: Vec<Authority>,
    transparency_logs: Vec<Log>,
    certificate_logs: Vec<Log>,
    timestamp_authorities: Vec<Authority>,
}

#[derive(Clone, Debug)]
struct Period {
    start: u64,
    end: u64,
}

impl Period {
    /// Without a start it was always valid, without an end it stays valid.
    fn read(value: &Value) -> Option<Self> {
        let moment = |field: &str, otherwise: u64| match &value[field] {
            Value::Null => Some(otherwise),
            text => rfc3339(text.as_str()?),
        };
        Some(Period { start: moment("start", 0)?, end: moment("end", u64::MAX)? })
    }

    fn holds(&self, when: u64) -> bool {
        (self.start..=self.end).contains(&when)
    }
}

#[derive(Clone, Debug)]
struct Authority {
    /// From the issuing CA to the root.
    chain: Vec<Certificate>,
    period: Period,
}

/// Key of a log.
#[derive(Clone, Debug)]
pub(super) struct Log {
    pub(super) id: Vec<u8>,
    pub(super) key: PublicKey,
    period: Period,
}

impl Log {
    pub(super) fn valid_at(&self, when: u64) -> bool {
        self.period.holds(when)
    }
}

impl TrustRoot {
    /// Parses a `trusted_root.json`.
    ///
    /// # Errors
    /// The file or one of its entries is invalid. Invalid entries are not skipped, since they may be the
    /// relevant ones.
    pub fn from_json(bytes: &[u8]) -> Result<Self, TrustRootError> {
        let root: Value = serde_json::from_slice(bytes).map_err(|_| TrustRootError::Json)?;
        let kind = root["mediaType"].as_str().unwrap_or_default();
        let known = kind.strip_prefix("application/vnd.dev.sigstore.trustedroot");
        if !known.is_some_and(|rest| matches!(rest, "+json;version=0.1" | ".v0.2+json")) {
            return Err(TrustRootError::MediaType(kind.chars().take(100).collect()));
        }
        let list = |name: &str| root[name].as_array().map(Vec::as_slice).unwrap_or_default();
        let read_all = |name: &'static str| {
            let logs = list(name).iter().take(MAX_ENTRIES).map(read_log);
            logs.map(|log| log.ok_or(TrustRootError::Entry(name))).collect::<Result<Vec<_>, _>>()
        };
        let authorities_of = |name: &'static str| {
            let all = list(name).iter().take(MAX_ENTRIES).map(read_authority);
            all.map(|a| a.ok_or(TrustRootError::Entry(name))).collect::<Result<Vec<_>, _>>()
        };
        let root = Self {
            authorities: authorities_of("certificateAuthorities")?,
            transparency_logs: read_all("tlogs")?,
            certificate_logs: read_all("ctlogs")?,
            timestamp_authorities: authorities_of("timestampAuthorities")?,
        };
        if root.transparency_logs.is_empty() {
            return Err(TrustRootError::NoLogs);
        }
        if root.authorities.is_empty() {
            return Err(TrustRootError::NoAuthorities);
        }
        Ok(root)
    }

    /// The transparency log with this id.
    pub(super) fn transparency_log(&self, id: &[u8]) -> Option<&Log> {
        self.transparency_logs.iter().find(|log| log.id == id)
    }

    /// The certificate log with this id.
    pub(super) fn certificate_log(&self, id: &[u8]) -> Option<&Log> {
        self.certificate_logs.iter().find(|log| log.id == id)
    }

    /// The issuer of a certificate that was used at this time. Every certificate of the chain must have been
    /// valid then.
    pub(super) fn issuer_of(&self, leaf: &Certificate, when: u64) -> Result<&Certificate, &'static str> {
        leaf.signs_code()?;
        if !leaf.valid_at(when) {
            return Err("it was not valid when it was used");
        }
        let chain_holds = |authority: &&Authority| {
            authority.holds(when) && authority.chain.first().is_some_and(|first| first.issued(leaf))
        };
        let found = self.authorities.iter().find(chain_holds).and_then(|authority| authority.chain.first());
        found.ok_or("no chain leads to one")
    }

    /// Certificates that may sign a timestamp at this time: the end-entity certificate of an authority, or
    /// one that came with the timestamp and was issued by the authority.
    pub(super) fn timestamp_signers<'a>(
        &'a self,
        embedded: &'a [Certificate],
        when: u64,
    ) -> impl Iterator<Item = &'a Certificate> {
        let valid = self.timestamp_authorities.iter().filter(move |authority| authority.holds(when));
        let candidates = valid.filter_map(|authority| authority.chain.first()).flat_map(move |first| {
            let issued = embedded.iter().filter(move |c| c.valid_at(when) && first.issued(c));
            std::iter::once(first).chain(issued)
        });
        candidates.filter(|certificate| certificate.signs_timestamps())
    }
}

impl Authority {
    /// Whether the chain is consistent and was valid then.
    fn holds(&self, when: u64) -> bool {
        let links = self.chain.iter().skip(1).zip(&self.chain);
        // The first may be an end-entity certificate; then there is no CA below the second.
        let lowest = usize::from(!self.chain.first().is_some_and(Certificate::signs_timestamps));
        self.period.holds(when)
            && links.enumerate().all(|(at, (upper, lower))| upper.issued(lower) && upper.allows(at + lowest))
            && self.chain.iter().all(|certificate| certificate.valid_at(when))
    }
}

fn read_log(value: &Value) -> Option<Log> {
    let raw = decode(&value["publicKey"]["rawBytes"])?;
    let key = PublicKey::from_spki(&raw).ok()?;
    let id = match decode(&value["logId"]["keyId"]) {
        Some(id) if !id.is_empty() => id,
        _ => Sha256::digest(&raw).to_vec(),
    };
    Some(Log { id, key, period: Period::read(&value["publicKey"]["validFor"])? })
}

fn read_authority(value: &Value) -> Option<Authority> {
    let chain = value["certChain"]["certificates"].as_array().filter(|c| !c.is_empty() && c.len() <= 10)?;
    let chain = chain
        .iter()
        .map(|c| Certificate::parse(&decode(&c["rawBytes"])?).ok())
        .collect::<Option<Vec<_>>>()?;
    Some(Authority { chain, period: Period::read(&value["validFor"])? })
}
