//! The CA, the serving certificate and the administrator's client certificate, stored in the data directory.
//!
//! The CA is valid for ten years, certificates it signs for one. They are renewed when a third of that is
//! left, with the same keys: a kubeconfig with the old CA certificate trusts what the renewed one signs.

use std::io::ErrorKind;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType,
};

use super::private_files::{private_dir, replace_private};

const DAY: Duration = Duration::from_secs(24 * 3600);
const CA_VALIDITY: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
const LEAF_VALIDITY: Duration = Duration::from_secs(365 * 24 * 3600);

/// A certificate and its key, both PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    pub certificate: String,
    pub key: String,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Identity(***)")
    }
}

/// All certificates of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pki {
    pub ca: Identity,
    pub server: Identity,
    pub admin: Identity,
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PkiError {
    #[error("cannot make a certificate")]
    Make(#[from] rcgen::Error),
    #[error("cannot read or write {path}")]
    Io {
        path: String,
        #[source]
        source: std::io::Error,
    },
    #[error("{path} does not hold a certificate and its key")]
    Damaged { path: String },
}

fn io_error(path: &Path) -> impl FnOnce(std::io::Error) -> PkiError {
    let path = path.display().to_string();
    move |source| PkiError::Io { path, source }
}

fn params(
    name: &str,
    organization: Option<&str>,
    now: Timestamp,
    life: Duration,
) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(Vec::<String>::new())?;
    let mut dn = DistinguishedName::new();
    if let Some(organization) = organization {
        dn.push(DnType::OrganizationName, organization);
    }
    dn.push(DnType::CommonName, name);
    params.distinguished_name = dn;
    // Clocks of clients may be a little behind.
    let seconds = u64::try_from(now.as_second()).unwrap_or_default().saturating_sub(300);
    params.not_before = rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds);
    params.not_after = params.not_before + life;
    Ok(params)
}

fn ca_params(now: Timestamp) -> Result<CertificateParams, rcgen::Error> {
    let mut ca = params("fluorite-ca", None, now, CA_VALIDITY)?;
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    Ok(ca)
}

fn server_params(addresses: &[IpAddr], now: Timestamp) -> Result<CertificateParams, rcgen::Error> {
    let mut server = params("kube-apiserver", None, now, LEAF_VALIDITY)?;
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    for name in [
        "localhost",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
    ] {
        server.subject_alt_names.push(SanType::DnsName(name.try_into()?));
    }
    let mut all = vec![
        IpAddr::from([127, 0, 0, 1]),
        IpAddr::from([0u16, 0, 0, 0, 0, 0, 0, 1]),
        IpAddr::from([10, 0, 0, 1]),
    ];
    all.extend(addresses.iter().filter(|a| !a.is_unspecified()));
    all.sort();
    all.dedup();
    server.subject_alt_names.extend(all.into_iter().map(SanType::IpAddress));
    Ok(server)
}

fn admin_params(now: Timestamp) -> Result<CertificateParams, rcgen::Error> {
    let mut admin = params("fluorite-admin", Some("system:masters"), now, LEAF_VALIDITY)?;
    admin.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    Ok(admin)
}

impl Identity {
    fn new(certificate: &rcgen::Certificate, key: &KeyPair) -> Self {
        Self { certificate: certificate.pem(), key: key.serialize_pem() }
    }

    fn self_signed(params: CertificateParams, key: &KeyPair) -> Result<Self, rcgen::Error> {
        Ok(Self::new(&params.self_signed(key)?, key))
    }

    fn signed_by(ca: &Self, params: CertificateParams, key: &KeyPair) -> Result<Self, rcgen::Error> {
        let issuer = Issuer::from_ca_cert_pem(&ca.certificate, KeyPair::from_pem(&ca.key)?)?;
        Ok(Self::new(&params.signed_by(key, &issuer)?, key))
    }

    /// First and last second of the validity; `None` for an invalid certificate.
    fn validity(&self) -> Option<(i64, i64)> {
        let (_, pem) = x509_parser::pem::parse_x509_pem(self.certificate.as_bytes()).ok()?;
        let certificate = pem.parse_x509().ok()?;
        let validity = certificate.validity();
        Some((validity.not_before.timestamp(), validity.not_after.timestamp()))
    }

    /// Whether a third of `life` or less is left, or the certificate is valid for longer than allowed.
    fn is_due(&self, now: Timestamp, life: Duration) -> bool {
        let seconds = |d: Duration| i64::try_from(d.as_secs()).unwrap_or(i64::MAX);
        self.validity().is_none_or(|(from, to)| {
            to - from > seconds(life + DAY)
                || now.as_second() < from
                || now.as_second() > to - seconds(life / 3)
        })
    }

    /// Reads `name.crt` and `name.key`; `None` if one of them is missing.
    fn read(dir: &Path, name: &str) -> Result<Option<Self>, PkiError> {
        let read = |suffix: &str| {
            let path = dir.join(format!("{name}.{suffix}"));
            match std::fs::read_to_string(&path) {
                Ok(text) => Ok(Some(text)),
                Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
                Err(e) => Err(io_error(&path)(e)),
            }
        };
        let (Some(certificate), Some(key)) = (read("crt")?, read("key")?) else { return Ok(None) };
        let found = Self { certificate, key };
        if found.validity().is_none() || KeyPair::from_pem(&found.key).is_err() {
            return Err(PkiError::Damaged { path: dir.join(name).display().to_string() });
        }
        Ok(Some(found))
    }

    fn write(&self, dir: &Path, name: &str) -> Result<(), PkiError> {
        // The key first: a certificate without a key would be reported as corrupt.
        for (suffix, text) in [("key", &self.key), ("crt", &self.certificate)] {
            let path = dir.join(format!("{name}.{suffix}"));
            if std::fs::read_to_string(&path).ok().as_ref() != Some(text) {
                replace_private(&path, text.as_bytes()).map_err(io_error(&path))?;
            }
        }
        Ok(())
    }
}

impl Pki {
    /// Generates certificates for a server that listens on `addresses`.
    pub fn generate(addresses: &[IpAddr]) -> Result<Self, PkiError> {
        Self::generate_at(addresses, Timestamp::now())
    }

    /// [`Pki::generate`] with a clock.
    pub fn generate_at(addresses: &[IpAddr], now: Timestamp) -> Result<Self, PkiError> {
        let ca = Identity::self_signed(ca_params(now)?, &KeyPair::generate()?)?;
        Self::issue(ca, addresses, now)
    }

    fn issue(ca: Identity, addresses: &[IpAddr], now: Timestamp) -> Result<Self, PkiError> {
        let server = Identity::signed_by(&ca, server_params(addresses, now)?, &KeyPair::generate()?)?;
        let admin = Identity::signed_by(&ca, admin_params(now)?, &KeyPair::generate()?)?;
        Ok(Self { ca, server, admin })
    }

    /// Renews the certificates that are due, with their existing keys. Returns whether there were any.
    pub fn renew(&mut self, addresses: &[IpAddr], now: Timestamp) -> Result<bool, PkiError> {
        let before = self.clone();
        if self.ca.is_due(now, CA_VALIDITY) {
            self.ca = Identity::self_signed(ca_params(now)?, &KeyPair::from_pem(&self.ca.key)?)?;
        }
        if self.server.is_due(now, LEAF_VALIDITY) {
            let key = KeyPair::from_pem(&self.server.key)?;
            self.server = Identity::signed_by(&self.ca, server_params(addresses, now)?, &key)?;
        }
        if self.admin.is_due(now, LEAF_VALIDITY) {
            let key = KeyPair::from_pem(&self.admin.key)?;
            self.admin = Identity::signed_by(&self.ca, admin_params(now)?, &key)?;
        }
        Ok(*self != before)
    }

    /// Loads the certificates from a directory; generates missing ones and renews those that are due.
    pub fn load_or_generate(dir: &Path, addresses: &[IpAddr]) -> Result<Self, PkiError> {
        Self::load_or_generate_at(dir, addresses, Timestamp::now())
    }

    /// [`Pki::load_or_generate`] with a clock.
    pub fn load_or_generate_at(dir: &Path, addresses: &[IpAddr], now: Timestamp) -> Result<Self, PkiError> {
        private_dir(dir).map_err(io_error(dir))?;
        let found =
            (Identity::read(dir, "ca")?, Identity::read(dir, "server")?, Identity::read(dir, "admin")?);
        let mut pki = match found {
            (Some(ca), Some(server), Some(admin)) => Self { ca, server, admin },
            // Clients trust the CA: as long as it exists, the other certificates can be issued again.
            (Some(ca), _, _) => Self::issue(ca, addresses, now)?,
            (None, _, _) => Self::generate_at(addresses, now)?,
        };
        pki.renew(addresses, now)?;
        pki.write(dir)?;
        Ok(pki)
    }

    /// Writes changed files to a directory.
    pub fn write(&self, dir: &Path) -> Result<(), PkiError> {
        for (name, identity) in [("ca", &self.ca), ("server", &self.server), ("admin", &self.admin)] {
            identity.write(dir, name)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const YEAR: i64 = 365 * 24 * 3600;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("in range")
    }

    #[test]
    fn certificates_are_valid_for_one_year_and_the_ca_for_ten() {
        let now = at(1_800_000_000);
        let pki = Pki::generate_at(&[], now).expect("made");
        for (identity, life) in [(&pki.ca, 10 * YEAR), (&pki.server, YEAR), (&pki.admin, YEAR)] {
            let (from, to) = identity.validity().expect("a certificate");
            assert!(from <= now.as_second() && to - from <= life, "{from} {to}");
            assert!(to > now.as_second() + life * 9 / 10);
        }
    }

    #[test]
    fn certificates_are_renewed_with_the_same_ca_and_keys() {
        let dir = tempfile::tempdir().expect("a directory");
        let start = 1_800_000_000;
        let load = |second: i64| Pki::load_or_generate_at(dir.path(), &[], at(second)).expect("certificates");
        let first = load(start);
        assert_eq!(load(start + YEAR / 2), first, "half of its life is left");
        let renewed = load(start + YEAR * 7 / 10);
        assert_eq!(renewed.ca, first.ca);
        assert_eq!((&renewed.server.key, &renewed.admin.key), (&first.server.key, &first.admin.key));
        assert!(
            renewed.server.certificate != first.server.certificate
                && renewed.admin.certificate != first.admin.certificate
        );
        assert_eq!(load(start + YEAR * 7 / 10), renewed, "the renewed ones were kept");
        // Even after many years everything is signed by the same key.
        let late = load(start + 20 * YEAR);
        assert_eq!(late.ca.key, first.ca.key);
        let (_, end) = late.server.validity().expect("a certificate");
        assert!(end > start + 20 * YEAR);
    }

    #[test]
    fn endless_certificates_are_replaced_and_trusted_by_old_clients() {
        let dir = tempfile::tempdir().expect("a directory");
        let now = at(1_800_000_000);
        // As older versions of this program issued them: from 1975 to 4096.
        let endless = |mut params: CertificateParams| {
            params.not_before = rcgen::date_time_ymd(1975, 1, 1);
            params.not_after = rcgen::date_time_ymd(4096, 1, 1);
            params
        };
        let key = || KeyPair::generate().expect("a key");
        let ca = Identity::self_signed(endless(ca_params(now).expect("params")), &key()).expect("made");
        let sign = |params| Identity::signed_by(&ca, endless(params), &key()).expect("made");
        let server = sign(server_params(&[], now).expect("params"));
        let admin = sign(admin_params(now).expect("params"));
        let old = Pki { ca: ca.clone(), server, admin };
        old.write(dir.path()).expect("written");
        let renewed = Pki::load_or_generate_at(dir.path(), &[], now).expect("renewed");
        let (from, to) = renewed.server.validity().expect("a certificate");
        assert!(to - from <= YEAR);
        let der = |pem: &str| x509_parser::pem::parse_x509_pem(pem.as_bytes()).expect("PEM").1.contents;
        let (old_ca, new_server) = (der(&ca.certificate), der(&renewed.server.certificate));
        let old_ca = x509_parser::parse_x509_certificate(&old_ca).expect("a certificate").1;
        let new_server = x509_parser::parse_x509_certificate(&new_server).expect("a certificate").1;
        assert_eq!(new_server.issuer(), old_ca.subject());
        assert_eq!(renewed.ca.key, ca.key, "what the old CA certificate verifies");
    }

    #[test]
    fn missing_certificates_are_generated_and_corrupt_ones_reported() {
        let dir = tempfile::tempdir().expect("a directory");
        let load = || Pki::load_or_generate(dir.path(), &[]);
        let first = load().expect("made");
        std::fs::remove_file(dir.path().join("server.crt")).expect("removed");
        let second = load().expect("made anew");
        assert_eq!(second.ca, first.ca);
        std::fs::write(dir.path().join("ca.key"), "garbage").expect("written");
        let error = load().expect_err("not replaced in silence");
        assert!(matches!(error, PkiError::Damaged { .. }), "{error}");
    }
}
